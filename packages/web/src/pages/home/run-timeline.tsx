/** The runs of the last hours: a row per DAG, a bar per run, a histogram of all DAGs above. */
import { Link } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { bytesOf } from "../../api/columns.ts";
import { dagPath, runPath } from "../../app/paths.ts";
import { usePreferences } from "../../app/preferences.ts";
import { lookOf } from "../../state/states.ts";
import { clock, count, day, duration, exact, zoneOffset } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { cx } from "../../ui/class-names.ts";
import { useWidth } from "../../ui/use-width.ts";
import type { Home } from "./home.ts";
import {
  type Bar,
  firstShown,
  type PlacedBar,
  placeBars,
  type Scale,
  type Slices,
  slicesOf,
  ticks,
  xOf,
} from "./timeline-bars.ts";

/** Half the width of the label of a tick; one nearer to the edge would be cut off. */
const HALF_LABEL = 18;
const AXIS = 20;
const HISTOGRAM = 34;
/** A target of the pointer is at least 24 px high. */
const ROW = 24;
const BAR = 12;
/** Time after now, for the next runs. */
const AHEAD = 0.06;

type TimelineDag = Home["timeline"]["dags"][number];

export function RunTimeline({ home }: { readonly home: Home }) {
  const { timeline } = home;
  return (
    <div className="grid grid-cols-[minmax(96px,180px)_minmax(0,1fr)_auto]">
      <div>
        <div
          style={{ height: AXIS + HISTOGRAM }}
          className="flex items-end border-b border-line pb-1 text-sm text-muted"
        >
          All DAGs
        </div>
        {timeline.dags.map((dag) => (
          <DagName key={dag.dag_id} dag={dag} />
        ))}
      </div>
      <Plot home={home} />
      <div className="pl-3 text-sm text-muted max-sm:hidden">
        <div
          style={{ height: AXIS + HISTOGRAM }}
          className="grid grid-cols-[44px_44px_88px] items-end border-b border-line pb-1"
        >
          <span className="num">Runs</span>
          <span className="num">Failed</span>
          <span className="num">Next</span>
        </div>
        {timeline.dags.map((dag) => (
          <div
            key={dag.dag_id}
            style={{ height: ROW }}
            className="grid grid-cols-[44px_44px_88px] items-center"
          >
            <span className="num">{count(dag.runs)}</span>
            <span className={cx("num", dag.failed > 0 ? "font-semibold text-danger" : "text-faint")}>
              {count(dag.failed)}
            </span>
            <span className="num truncate">
              {dag.is_paused ? "paused" : <Ago at={dag.next_run_after} fallback="no schedule" />}
            </span>
          </div>
        ))}
      </div>
    </div>
  );
}

function DagName({ dag }: { readonly dag: TimelineDag }) {
  const mark = dag.failing ? "✕" : dag.late ? "!" : "";
  return (
    <Link
      to={dagPath(dag.dag_id)}
      style={{ height: ROW }}
      className="flex items-center gap-1 pr-3 hover:bg-hover hover:underline"
    >
      <span
        aria-hidden
        className={cx(
          "w-3 shrink-0 text-center text-sm font-semibold",
          dag.failing ? "text-danger" : "text-warn",
        )}
      >
        {mark}
      </span>
      <span className="truncate">{dag.dag_id}</span>
      {mark !== "" && <span className="sr-only">({dag.failing ? "failing" : "late"})</span>}
    </Link>
  );
}

interface Hovered {
  readonly dagId: string;
  readonly row: number;
  readonly lanes: number;
  readonly bar: PlacedBar;
}

function Plot({ home }: { readonly home: Home }) {
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const { zone } = usePreferences();
  const [hovered, setHovered] = useState<Hovered | null>(null);
  const { timeline } = home;
  const now = Date.parse(home.now);
  const bars = useMemo(() => timeline.dags.flatMap((dag) => barsOf(dag, timeline.run_states)), [timeline]);
  const wanted = Date.parse(timeline.from);
  const from = shownFrom(home);
  const slices =
    from === wanted ? timeline.slices : slicesOf(bars, from, now, timeline.slices.success.length);
  const scale: Scale = useMemo(() => ({ from, to: now + (now - from) * AHEAD, width }), [from, now, width]);
  const rows = useMemo(
    () => timeline.dags.map((dag) => ({ dag, ...placeBars(barsOf(dag, timeline.run_states), scale, now) })),
    [timeline, scale, now],
  );
  const height = AXIS + HISTOGRAM + rows.length * ROW;
  const nowX = xOf(now, scale);
  return (
    <div
      ref={box}
      className="relative"
      style={{ height }}
      onPointerMove={(event) => {
        const area = event.currentTarget.getBoundingClientRect();
        const at = Math.floor((event.clientY - area.top - AXIS - HISTOGRAM) / ROW);
        const x = event.clientX - area.left;
        const row = rows[at];
        const bar = row?.placed.findLast((each) => x >= each.x - 2 && x <= each.x + each.width + 2);
        setHovered(row && bar ? { dagId: row.dag.dag_id, row: at, lanes: row.lanes, bar } : null);
      }}
      onPointerLeave={() => setHovered(null)}
    >
      {width > 0 && (
        <svg width={width} height={height} className="absolute inset-0" aria-hidden>
          <rect
            x={nowX}
            y={AXIS}
            width={Math.max(0, width - nowX)}
            height={height - AXIS}
            fill="var(--raised)"
          />
          {ticks(scale, 64, zoneOffset(now, zone)).map((at) => (
            <Tick key={at} at={at} x={xOf(at, scale)} width={width} height={height} zone={zone} />
          ))}
          <Histogram slices={slices} width={nowX} />
          <path d={`M0 ${AXIS + HISTOGRAM - 0.5}H${width}`} stroke="var(--line)" />
          {rows.map(({ dag, placed, lanes }, row) => (
            <RowBars key={dag.dag_id} placed={placed} lanes={lanes} row={row} />
          ))}
          {rows.map(({ dag }, row) => (
            <NextRun key={dag.dag_id} dag={dag} scale={scale} row={row} />
          ))}
          <path d={`M${Math.round(nowX) + 0.5} ${AXIS}V${height}`} stroke="var(--text)" />
          {hovered && (
            <rect {...boxOf(hovered, 1.5)} fill="none" stroke="var(--text)" strokeWidth={1.5} rx={3} />
          )}
        </svg>
      )}
      {hovered && <HoverLink hovered={hovered} now={now} width={width} />}
    </div>
  );
}

/** Where the timeline begins: later than wanted while its first run is young. */
export function shownFrom({ now, timeline }: Home): number {
  const starts = timeline.dags.flatMap(({ bars }) =>
    bars.run_ids.map((_, index) => bars.started[index] ?? bars.run_after[index]!),
  );
  return firstShown(starts, Date.parse(timeline.from), Date.parse(now));
}

function barsOf({ bars }: TimelineDag, legend: readonly string[]): Bar[] {
  const states = bytesOf(bars.states);
  return bars.run_ids.map((runId, index) => ({
    runId,
    state: legend[states[index]!]!,
    from: bars.started[index] ?? bars.run_after[index]!,
    to: bars.ended[index] ?? null,
  }));
}

function boxOf({ bar, row, lanes }: Pick<Hovered, "bar" | "row" | "lanes">, margin = 0) {
  const height = lanes === 1 ? BAR : Math.floor((ROW - 3) / lanes);
  const top = AXIS + HISTOGRAM + row * ROW + (lanes === 1 ? (ROW - BAR) / 2 : 1 + bar.lane * (height + 1));
  return {
    x: bar.x - margin,
    y: top - margin,
    width: bar.width + 2 * margin,
    height: height + 2 * margin,
  };
}

/** One path per state: thousands of bars cost a few elements. Failures are drawn over the rest. */
function RowBars({
  placed,
  lanes,
  row,
}: {
  readonly placed: readonly PlacedBar[];
  readonly lanes: number;
  readonly row: number;
}) {
  const states = Map.groupBy(placed, ({ state }) => state);
  const order = ["success", "queued", "running", "failed"];
  return order
    .filter((state) => states.has(state))
    .map((state) => (
      <path
        key={state}
        fill={state === "success" ? "var(--s-success-soft)" : `var(${lookOf(state).color})`}
        d={states
          .get(state)!
          .map((bar) => {
            const { x, y, width, height } = boxOf({ bar, row, lanes });
            const tall = state === "failed" ? 2 : 0;
            return `M${x.toFixed(1)} ${y - tall}h${Math.max(state === "failed" ? 3 : 1.5, width - 1).toFixed(1)}v${height + 2 * tall}H${x.toFixed(1)}z`;
          })
          .join("")}
      />
    ));
}

function NextRun({
  dag,
  scale,
  row,
}: {
  readonly dag: TimelineDag;
  readonly scale: Scale;
  readonly row: number;
}) {
  if (dag.next_run_after === null || dag.is_paused) return null;
  const x = xOf(Date.parse(dag.next_run_after), scale);
  if (x < 0 || x > scale.width - 4) return null;
  return (
    <rect
      x={x}
      y={AXIS + HISTOGRAM + row * ROW + (ROW - BAR) / 2 + 0.5}
      width={5}
      height={BAR - 1}
      rx={1.5}
      fill="none"
      stroke={dag.late ? "var(--s-retry)" : "var(--s-scheduled)"}
    />
  );
}

function Tick({
  at,
  x,
  width,
  height,
  zone,
}: {
  readonly at: number;
  readonly x: number;
  readonly width: number;
  readonly height: number;
  readonly zone: string;
}) {
  const time = clock(at, zone).slice(0, 5);
  const isDay = time === "00:00";
  return (
    <>
      <path
        d={`M${Math.round(x) + 0.5} ${AXIS}V${height}`}
        stroke={isDay ? "var(--line-strong)" : "var(--line)"}
      />
      {x > HALF_LABEL && x < width - HALF_LABEL && (
        <text x={x} y={13} textAnchor="middle" fontSize={12} fill={isDay ? "var(--text)" : "var(--muted)"}>
          {isDay ? day(at, zone).slice(5) : time}
        </text>
      )}
    </>
  );
}

function Histogram({
  slices: { failed, success },
  width,
}: {
  readonly slices: Slices;
  /** Until now. */
  readonly width: number;
}) {
  const most = Math.max(1, ...success.map((each, index) => each + failed[index]!));
  const step = width / success.length;
  const room = HISTOGRAM - 6;
  const path = (heights: readonly number[], below: readonly number[]) =>
    heights
      .map((each, index) => {
        if (each === 0) return "";
        const height = Math.max(1.5, (each / most) * room);
        const bottom = AXIS + HISTOGRAM - 1 - ((below[index] ?? 0) / most) * room;
        return `M${(index * step).toFixed(1)} ${bottom}v${-height}h${Math.max(1, step - 1).toFixed(1)}v${height}z`;
      })
      .join("");
  return (
    <>
      <path d={path(success, [])} fill="var(--s-success-soft)" />
      <path d={path(failed, success)} fill="var(--s-failed)" />
    </>
  );
}

/** A real link over the bar under the pointer, and its facts. */
function HoverLink({
  hovered,
  now,
  width,
}: {
  readonly hovered: Hovered;
  readonly now: number;
  readonly width: number;
}) {
  const { zone } = usePreferences();
  const { bar, dagId } = hovered;
  const { x, y, width: barWidth, height } = boxOf(hovered, 3);
  return (
    <>
      <Link
        to={runPath(dagId, bar.runId)}
        aria-label={`Run ${bar.runId} of ${dagId}`}
        className="absolute"
        style={{ left: x, top: y, width: barWidth, height }}
      />
      <div
        role="tooltip"
        className="pointer-events-none absolute z-20 rounded-md border border-line bg-surface px-2.5 py-1.5 whitespace-nowrap shadow-lg"
        style={{ top: y + height + 6, ...(x > width / 2 ? { right: width - x - barWidth } : { left: x }) }}
      >
        <p className="font-medium">{dagId}</p>
        <p className="text-sm text-muted">
          {lookOf(bar.state).label}, {duration((bar.to ?? now) - bar.from)}
        </p>
        <p className="text-sm text-muted">{exact(bar.from, zone)}</p>
      </div>
    </>
  );
}
