/** The tasks of a DAG: how long they take, how often they fail, and how that has changed. */
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { $api } from "../../api/client.ts";
import { dagPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useLive } from "../../live/live.ts";
import { useThrottled } from "../../live/throttled.ts";
import { duration } from "../../time/format.ts";
import { cx } from "../../ui/class-names.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { SparkBars } from "../dags/spark-bars.tsx";
import { sortedTasks, type TaskRow, taskRows } from "./task-trends.ts";

const RUNS = 30;
const RELOAD_MS = 5_000;

export function TasksTab({ dagId }: { readonly dagId: string }) {
  const [search, setSearch] = useSearchState();
  const text = textOf(search, "tasks") ?? "";
  const orderBy = textOf(search, "sort") ?? "";
  const trends = $api.useQuery("get", "/ui/dags/{dag_id}/task-trends", {
    params: { path: { dag_id: dagId }, query: { runs: RUNS } },
  });
  useLive(
    `dag:${dagId}`,
    useThrottled(() => trends.refetch({ cancelRefetch: false }), RELOAD_MS),
  );
  const rows = useMemo(() => (trends.data ? taskRows(trends.data) : []), [trends.data]);
  const shown = useMemo(() => {
    const wanted = text.trim().toLowerCase();
    return sortedTasks(
      rows.filter(({ task_id }) => task_id.toLowerCase().includes(wanted)),
      orderBy,
    );
  }, [rows, text, orderBy]);
  const columns = useMemo(() => columnsOf(dagId), [dagId]);
  return (
    <>
      <div className="flex items-center gap-3 px-4 py-2">
        <SearchBox
          label="Filter tasks"
          value={text}
          onChange={useCallback((value) => setSearch({ tasks: value }), [setSearch])}
          className="w-56"
        />
        {trends.data && (
          <span className="text-muted">
            {shown.length} {shown.length === 1 ? "task" : "tasks"} in the last {trends.data.run_ids.length}{" "}
            {trends.data.run_ids.length === 1 ? "run" : "runs"}
          </span>
        )}
      </div>
      <div className="min-h-0 flex-1 border-t border-line">
        <Loads query={trends}>
          {() =>
            shown.length === 0 ? (
              <Empty title={text === "" ? "This DAG has no tasks" : "No task matches this filter"} />
            ) : (
              <DataTable
                fixed
                label={`Tasks of ${dagId}`}
                columns={columns}
                rows={shown}
                rowKey={({ task_id }) => task_id}
                orderBy={orderBy}
                onOrderBy={(value) => setSearch({ sort: value })}
              />
            )
          }
        </Loads>
      </div>
    </>
  );
}

function columnsOf(dagId: string): readonly Column<TaskRow>[] {
  const took = (ms: number | null) => (ms === null ? <span className="text-faint">–</span> : duration(ms));
  return [
    {
      id: "task",
      header: "Task",
      sort: "task_id",
      cell: ({ task_id }) => (
        <Link
          to={dagPath(dagId)}
          search={{ tab: "overview", task: task_id } as never}
          className="block truncate font-medium hover:underline"
        >
          {task_id}
        </Link>
      ),
    },
    {
      id: "runs",
      header: `Last ${RUNS} runs`,
      width: "169px",
      from: "md",
      cell: ({ runs, task_id }) => <SparkBars dagId={dagId} taskId={task_id} runs={runs} />,
    },
    {
      ...{ id: "p50", header: "Usually takes", width: "120px", sort: "p50", numeric: true },
      cell: ({ p50 }) => took(p50),
    },
    {
      ...{ id: "p95", header: "95 % within", width: "130px", sort: "p95", numeric: true, from: "md" },
      cell: ({ p95 }) => took(p95),
    },
    {
      ...{ id: "failures", header: "Failed", width: "130px", sort: "failures", numeric: true },
      cell: ({ ended, failed, failureRate }) =>
        failureRate === null ? (
          <span className="text-faint">–</span>
        ) : (
          <span className={cx(failed > 0 && "font-medium text-danger")} title={`${failed} of ${ended} runs`}>
            {failed === 0 ? "0" : `${failed} of ${ended}, ${Math.round(failureRate * 100)} %`}
          </span>
        ),
    },
    {
      ...{ id: "retries", header: "Retried", width: "90px", sort: "retries", numeric: true, from: "lg" },
      cell: ({ retried }) => retried,
    },
  ];
}
