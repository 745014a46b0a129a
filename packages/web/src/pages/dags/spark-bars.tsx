/** The latest 30 runs of a DAG: one small drawing per row, and one link that follows the pointer. */
import { Link } from "@tanstack/react-router";
import { memo, useState } from "react";
import { runPath, taskPath } from "../../app/paths.ts";
import { usePreferences } from "../../app/preferences.ts";
import { lookOf } from "../../state/states.ts";
import { serverNow } from "../../time/clock.ts";
import { duration, exact } from "../../time/format.ts";
import { BAR_STEP, type BarRun, barPaths, tookOf } from "./bar-shapes.ts";

const SLOTS = 30;
const HEIGHT = 24;
const WIDTH = SLOTS * BAR_STEP - 1;

export const SparkBars = memo(function SparkBars({
  dagId,
  taskId,
  runs,
}: {
  readonly dagId: string;
  /** The bars are those of a task. */
  readonly taskId?: string;
  readonly runs: readonly BarRun[];
}) {
  const [hovered, setHovered] = useState(-1);
  const { zone } = usePreferences();
  const now = serverNow();
  const paths = barPaths(runs, { slots: SLOTS, height: HEIGHT, now });
  const first = SLOTS - Math.min(SLOTS, runs.length);
  const run = hovered < 0 ? runs.at(-1) : runs[hovered];
  const drawing = (
    <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden>
      {first > 0 && (
        <path
          d={`M0 ${HEIGHT - 0.5}H${first * BAR_STEP - 1}`}
          stroke="var(--line-strong)"
          strokeDasharray="4 1"
        />
      )}
      {hovered >= 0 && (
        <rect
          x={(first + hovered) * BAR_STEP - 0.5}
          y={0}
          width={5}
          height={HEIGHT}
          fill="var(--line-strong)"
        />
      )}
      {[...paths].map(([state, path]) => (
        <path
          key={state}
          d={path}
          fill={state === "success" ? "var(--s-success-soft)" : `var(${lookOf(state).color})`}
        />
      ))}
    </svg>
  );
  if (run === undefined) return drawing;
  const took = tookOf(run, now);
  const at = run.started || run.runAfter;
  const words = [
    lookOf(run.state).label,
    took === null ? null : duration(took),
    at === null ? null : exact(at, zone),
    run.runId,
  ];
  return (
    <Link
      to={taskId === undefined ? runPath(dagId, run.runId) : taskPath(dagId, run.runId, taskId)}
      preload={false}
      tabIndex={-1}
      aria-label={`Run ${words.filter(Boolean).join(", ")}`}
      title={words.filter(Boolean).join(" · ")}
      className="block w-fit"
      onPointerMove={(event) => {
        const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
        const index = Math.floor(x / BAR_STEP) - first;
        setHovered(index >= 0 && index < runs.length ? index : -1);
      }}
      onPointerLeave={() => setHovered(-1)}
    >
      {drawing}
    </Link>
  );
});
