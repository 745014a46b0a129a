/** The name of a row, at the left of its bars. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo } from "react";
import { StateGlyph } from "../state/glyph.tsx";
import { lookOf } from "../state/states.ts";
import { count, duration } from "../time/format.ts";
import { cx } from "../ui/class-names.ts";
import type { Timeline } from "./timeline-data.ts";
import { type Row, stateOf, type TaskRow } from "./timeline-rows.ts";

const INDENT = 14;

interface LabelProps {
  readonly row: Row;
  readonly top: number;
  readonly timeline: Timeline;
  readonly now: number;
  readonly isSelected: boolean;
  readonly isHovered: boolean;
  readonly isOnPath: boolean;
  readonly onSelect: (taskId: string | null) => void;
  readonly onOpen: (taskId: string) => void;
  readonly onToggle: (groupId: string) => void;
}

export const TimelineLabel = memo(function TimelineLabel({
  row,
  top,
  timeline,
  now,
  isSelected,
  isHovered,
  isOnPath,
  onSelect,
  onOpen,
  onToggle,
}: LabelProps) {
  const style = { top, height: row.height, paddingLeft: 16 + row.depth * INDENT };
  const frame = "absolute inset-x-0 flex items-center gap-2 pr-3 text-left";
  if (row.kind === "group")
    return (
      <button
        type="button"
        tabIndex={-1}
        aria-expanded={row.isOpen}
        style={style}
        className={cx(frame, "border-t border-line font-medium", isHovered && "bg-hover")}
        onClick={() => onToggle(row.groupId)}
      >
        {row.isOpen ? (
          <ChevronDown aria-hidden className="size-3.5 shrink-0 text-muted" />
        ) : (
          <ChevronRight aria-hidden className="size-3.5 shrink-0 text-muted" />
        )}
        <span className="truncate">{row.label}</span>
        <span className="shrink-0 text-sm font-normal text-muted tabular-nums">
          {row.done} of {row.tasks}
        </span>
      </button>
    );
  const state = stateOf(row.task);
  const took = tookOf(row, timeline, now);
  const instances = row.task.map?.instances ?? 0;
  return (
    <button
      type="button"
      tabIndex={-1}
      style={style}
      aria-pressed={isSelected}
      className={cx(
        frame,
        row.depth === 0 && "border-t border-line",
        isSelected ? "bg-accent-soft" : isHovered && "bg-hover",
      )}
      onClick={() => onSelect(isSelected ? null : row.task.taskId)}
      onDoubleClick={() => onOpen(row.task.taskId)}
    >
      <StateGlyph state={state} title={lookOf(state).label} />
      <span className={cx("truncate", isOnPath && "font-semibold", state === null && "text-muted")}>
        {row.label}
      </span>
      {instances > 1 && <span className="shrink-0 text-sm text-muted">× {count(instances)}</span>}
      {row.task.isRemoved && <span className="shrink-0 text-sm text-muted">removed</span>}
      <span className="ml-auto flex shrink-0 items-baseline gap-2 pl-2 tabular-nums max-sm:hidden">
        <Difference took={took} before={timeline.compared?.tasks[row.position]} />
        {took !== null && <span>{duration(took)}</span>}
      </span>
    </button>
  );
});

/** Against the compared run, where it matters. */
function Difference({
  took,
  before,
}: {
  readonly took: number | null;
  readonly before: number | null | undefined;
}) {
  if (took === null || before === null || before === undefined) return null;
  const more = took - before;
  if (Math.abs(more) < Math.max(100, before * 0.1)) return null;
  return (
    <span className={cx("text-sm", more > 0 ? "text-warn" : "text-muted")}>
      {more > 0 ? "+" : "−"}
      {duration(Math.abs(more))}
    </span>
  );
}

/** From its first moment to its last; a task that waits, until now. */
function tookOf({ span, task }: TaskRow, timeline: Timeline, now: number): number | null {
  if (span === null) return null;
  const goesOn =
    timeline.run.ended === null && task.instances.some(({ intervals }) => intervals.at(-1)?.next === null);
  return (goesOn ? Math.max(span.end, now) : span.end) - span.start;
}
