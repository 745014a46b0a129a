/** The names at the left of a grid: tasks, and groups that open and close. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, type Ref } from "react";
import { duration } from "../time/format.ts";
import { cx } from "../ui/class-names.ts";
import { AXIS, BARS, HEAD, MARK, ROW } from "./grid-layout.ts";
import type { BarScale } from "./grid-painter.ts";
import type { GridRow } from "./grid-rows.ts";

export interface LabelActions {
  readonly onTask: (taskId: string) => void;
  readonly onToggle: (group: string) => void;
}

/** Only the rows from `first` to before `last`; `inner` is moved while the grid scrolls. */
export const GridLabels = memo(function GridLabels({
  rows,
  first,
  last,
  failures,
  selectedTask,
  inner,
  width,
  onTask,
  onToggle,
}: LabelActions & {
  readonly rows: readonly GridRow[];
  readonly first: number;
  readonly last: number;
  readonly failures: readonly number[];
  readonly selectedTask: string | undefined;
  readonly inner: Ref<HTMLDivElement>;
  readonly width: number;
}) {
  return (
    <div className="absolute bottom-0 left-0 overflow-hidden" style={{ top: HEAD, width }}>
      <div ref={inner} className="absolute inset-x-0 top-0 will-change-transform">
        {rows.slice(first, last).map((row, offset) => (
          <button
            key={`${row.kind} ${row.id}`}
            type="button"
            data-grid-row={first + offset}
            title={row.id}
            aria-expanded={row.kind === "group" ? row.isOpen : undefined}
            onClick={() => (row.kind === "group" ? onToggle(row.id) : onTask(row.id))}
            style={{
              top: (first + offset) * ROW,
              height: ROW,
              paddingLeft: 16 + row.depth * 14 + (row.kind === "task" ? 16 : 0),
            }}
            className={cx(
              "absolute inset-x-0 flex items-center gap-1 pr-2 text-left hover:bg-hover data-[hot]:bg-hover",
              row.kind === "task" && row.id === selectedTask && "bg-accent-soft",
            )}
          >
            {row.kind === "group" &&
              (row.isOpen ? (
                <ChevronDown aria-hidden className="size-3 shrink-0 text-muted" />
              ) : (
                <ChevronRight aria-hidden className="size-3 shrink-0 text-muted" />
              ))}
            <span
              className={cx(
                "truncate",
                row.kind === "group" && "font-medium",
                row.kind === "task" && row.isRemoved && "text-faint line-through",
              )}
            >
              {row.label}
            </span>
            {row.kind === "task" && row.isMapped && <span className="shrink-0 text-sm text-faint">[ ]</span>}
            {row.kind === "group" && !row.isOpen && (
              <span className="shrink-0 text-sm text-faint">{row.places.length} tasks</span>
            )}
            {row.kind === "task" && (failures[row.place] ?? 0) > 0 && (
              <span
                className={cx(
                  "ml-auto shrink-0 pl-1 text-sm tabular-nums",
                  failures[row.place]! > 2 ? "font-medium text-danger" : "text-muted",
                )}
              >
                {failures[row.place]}
                <span className="sr-only"> failures in these runs</span>
              </span>
            )}
          </button>
        ))}
      </div>
    </div>
  );
});

/** The scale of the bars, and how many tasks there are. */
export function GridHead({
  scale,
  tasks,
  hasFailures,
  width,
}: {
  readonly scale: BarScale;
  readonly tasks: number;
  readonly hasFailures: boolean;
  readonly width: number;
}) {
  const y = (ms: number) => MARK + BARS * (1 - ms / scale.most) - 9;
  const usualAt = scale.usual === null ? null : y(scale.usual);
  return (
    <div aria-hidden className="absolute top-0 left-0 text-sm text-faint" style={{ width, height: HEAD }}>
      <span className="absolute right-2" style={{ top: MARK - 9 }}>
        {duration(scale.most)}
      </span>
      {usualAt !== null && usualAt > MARK + 6 && usualAt < MARK + BARS - 24 && (
        <span className="absolute right-2 text-muted" style={{ top: usualAt }}>
          usual {duration(scale.usual!)}
        </span>
      )}
      <span className="absolute right-2" style={{ top: MARK + BARS - 9 }}>
        0
      </span>
      <span className="absolute left-4" style={{ top: HEAD - AXIS }}>
        {tasks} {tasks === 1 ? "task" : "tasks"}
      </span>
      {hasFailures && (
        <span className="absolute right-2" style={{ top: HEAD - AXIS }}>
          failures
        </span>
      )}
    </div>
  );
}
