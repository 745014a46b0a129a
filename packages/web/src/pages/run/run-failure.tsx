/** Why a run failed: the first task that failed, with its error and a link to its log. */
import { Link } from "@tanstack/react-router";
import { instanceLabel } from "../../actions/instance-list.tsx";
import { $api } from "../../api/client.ts";
import { taskPath } from "../../app/paths.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { count } from "../../time/format.ts";
import type { Run } from "./run-data.ts";

/** Reasons that the scheduler stores as a code; others are sentences. */
const REASONS: Readonly<Record<string, string>> = {
  task_failure: "A task failed.",
  all_tasks_deadlocked: "No task could start: each waits for another one.",
};

export function RunFailure({ run }: { readonly run: Run }) {
  const failed = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances",
    {
      params: {
        path: { dag_id: run.dag_id, dag_run_id: run.dag_run_id },
        query: { state: ["failed"], limit: 1, order_by: "end_date" },
      },
    },
    { enabled: run.end_reason === "task_failure" },
  );
  const first = failed.data?.task_instances[0];
  const others = (failed.data?.total_entries ?? 0) - 1;
  if (first === undefined)
    return <p className="break-words text-danger">{REASONS[run.end_reason ?? ""] ?? run.end_reason}</p>;
  return (
    <div className="flex min-w-0 items-center gap-2">
      <StateGlyph state="failed" />
      <Link
        to={taskPath(first.dag_id, first.dag_run_id, first.task_id)}
        search={first.map_index < 0 ? {} : { map: first.map_index }}
        className="link shrink-0 font-medium"
      >
        {instanceLabel(first)}
      </Link>
      {first.reason !== null && (
        <span title={first.reason} className="min-w-0 truncate font-mono text-danger">
          {first.reason}
        </span>
      )}
      {others > 0 && (
        <Link to="." search={{ tab: "tasks", state: "failed" } as never} className="link shrink-0">
          and {count(others)} more
        </Link>
      )}
    </div>
  );
}
