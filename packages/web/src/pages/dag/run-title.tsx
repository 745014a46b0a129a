/** The title of the pane of a run: its date, the runs before and after it, and its page. */
import { Link } from "@tanstack/react-router";
import { ChevronLeft, ChevronRight, SquareArrowOutUpRight } from "lucide-react";
import { usePreferences } from "../../app/preferences.ts";
import { dateOf } from "../../grid/grid-axis.ts";
import type { GridModel } from "../../grid/grid-model.ts";
import type { GridSelection } from "../../grid/grid-view.tsx";
import { shortDate } from "../../time/format.ts";
import { buttonClass, IconButton } from "../../ui/button.tsx";

export function RunTitle({
  dagId,
  model,
  runId,
  taskId,
  onSelect,
}: {
  readonly dagId: string;
  readonly model: GridModel;
  readonly runId: string;
  readonly taskId: string | undefined;
  readonly onSelect: (selection: GridSelection) => void;
}) {
  const { zone } = usePreferences();
  const index = model.columns.findIndex((each) => each.runId === runId);
  const column = model.columns[index];
  const step = (by: number) => {
    const to = model.columns[index + by];
    return index < 0 || to === undefined ? undefined : () => onSelect({ runId: to.runId, taskId });
  };
  const path = `/dags/${encodeURIComponent(dagId)}/runs/${encodeURIComponent(runId)}`;
  const date = column ? shortDate(dateOf(column), zone) : runId;
  return (
    <span className="flex items-center gap-1 font-normal">
      <span className="min-w-0 flex-1 truncate font-semibold" title={taskId ?? runId}>
        {taskId ?? `Run of ${date}`}
      </span>
      <IconButton label="Earlier run" disabled={step(-1) === undefined} onClick={step(-1)}>
        <ChevronLeft />
      </IconButton>
      <IconButton label="Later run" disabled={step(1) === undefined} onClick={step(1)}>
        <ChevronRight />
      </IconButton>
      <Link
        to={(taskId === undefined ? path : `${path}/tasks/${encodeURIComponent(taskId)}`) as "/"}
        aria-label={taskId === undefined ? "Page of this run" : "Page of this task"}
        title={taskId === undefined ? "Page of this run" : "Page of this task"}
        className={buttonClass("quiet", "w-7 !px-0")}
      >
        <SquareArrowOutUpRight aria-hidden />
      </Link>
    </span>
  );
}
