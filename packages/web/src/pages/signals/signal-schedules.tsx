/** DAGs that are scheduled on several signals together: what has arrived since the last run, and what is missing. */
import { Link } from "@tanstack/react-router";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { dagPath } from "../../app/paths.ts";
import { useReload } from "../../live/reload.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Failure } from "../../ui/panels.tsx";
import { ConditionParts } from "./condition-parts.tsx";

const SCHEDULES = "/ui/signals/schedules";

type Schedule = components["schemas"]["UiSignalSchedules"]["schedules"][number];

export function SignalSchedules() {
  const { data, error, refetch } = $api.useQuery("get", SCHEDULES);
  useReload("signals", [SCHEDULES]);
  useReload("dags", [SCHEDULES]);
  if (error && data === undefined) return <Failure error={error} onRetry={() => void refetch()} />;
  if (data === undefined || data.schedules.length === 0) return null;
  return (
    <div className="max-h-[40%] overflow-auto border-b border-line">
      <DataTable
        label="Schedules on several signals"
        columns={COLUMNS}
        rows={data.schedules}
        rowKey={({ dag_id }) => dag_id}
        {...(data.more && {
          footer: (
            <p className="px-1.5 text-sm text-muted">Only the first {data.schedules.length} are shown.</p>
          ),
        })}
      />
    </div>
  );
}

const COLUMNS: readonly Column<Schedule>[] = [
  {
    id: "schedule",
    header: "Schedule",
    width: "26%",
    cell: ({ dag_id }) => (
      <span className="block max-w-[48ch] truncate">
        create a run of{" "}
        <Link to={dagPath(dag_id)} className="font-medium hover:underline">
          {dag_id}
        </Link>
      </span>
    ),
  },
  {
    id: "condition",
    header: "Condition",
    cell: ({ condition, parts }) => <ConditionParts condition={condition} parts={parts} />,
  },
  {
    id: "state",
    header: "State",
    width: "160px",
    from: "md",
    cell: ({ is_paused, missing, parts }) => (
      <span
        className="block max-w-[24ch] truncate text-muted"
        title={missing === null ? undefined : `Waits for ${missing}`}
      >
        {is_paused ? "paused" : missing === null ? "–" : stateText(parts)}
      </span>
    ),
  },
];

function stateText(parts: Schedule["parts"]): string {
  const met = parts.filter(({ is_met }) => is_met).length;
  return met === 0 ? "waits" : `partly met: ${met} of ${parts.length}`;
}
