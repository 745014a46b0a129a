/** The task instances of a run as a table, with a selection for changes. */
import { Link, useNavigate } from "@tanstack/react-router";
import { type Instance, instanceLabel } from "../../actions/instance-list.tsx";
import { NoteMark } from "../../actions/note.tsx";
import { SelectedTasks } from "../../actions/selected-tasks.tsx";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { TASK_LOOKS } from "../../state/states.ts";
import { count } from "../../time/format.ts";
import { Ago, Elapsed } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { SearchBox, Select } from "../../ui/field.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import type { RunAddress } from "./run-data.ts";

const LIMIT = 1_000;

export function RunTasks({ address }: { readonly address: RunAddress }) {
  const [search, setSearch] = useSearchState();
  const navigate = useNavigate();
  const state = textOf(search, "state");
  const q = textOf(search, "q");
  const order = textOf(search, "sort") ?? "start_date";
  const list = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances",
    {
      params: {
        path: { dag_id: address.dagId, dag_run_id: address.runId },
        query: {
          limit: LIMIT,
          order_by: order,
          ...(state === undefined ? {} : { state: [state as "success"] }),
          ...(q === undefined ? {} : { task_display_name_pattern: `%${q}%` }),
        },
      },
    },
    { placeholderData: (before) => before },
  );
  return (
    <div className="flex min-h-0 min-w-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-2">
        <SearchBox
          label="Find a task"
          value={q ?? ""}
          onChange={(value) => setSearch({ q: value })}
          className="w-52"
        />
        <Select
          aria-label="State"
          value={state ?? ""}
          onChange={(event) => setSearch({ state: event.target.value })}
        >
          <option value="">All states</option>
          {Object.entries(TASK_LOOKS).map(([value, { label }]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
      </div>
      <Loads query={list}>
        {({ task_instances: rows, total_entries: total }) =>
          rows.length === 0 ? (
            <Empty
              title={
                state === undefined && q === undefined ? "No task has been created yet" : "No task matches"
              }
            >
              The tasks of a run are created when the run starts.
            </Empty>
          ) : (
            <div className="min-h-0 flex-1">
              <DataTable
                label="Tasks"
                columns={COLUMNS}
                rows={rows}
                rowKey={({ id }) => id}
                orderBy={order}
                onOrderBy={(sort) => setSearch({ sort })}
                onOpen={(row) =>
                  void navigate({
                    to: "/dags/$dagId/runs/$runId/tasks/$taskId",
                    params: { dagId: row.dag_id, runId: row.dag_run_id, taskId: row.task_id },
                    search: row.map_index >= 0 ? { map: row.map_index } : {},
                  })
                }
                bulk={(chosen) => (
                  <SelectedTasks
                    tasks={chosen.map(({ map_index, task_id }) => ({
                      ...address,
                      taskId: task_id,
                      mapIndex: map_index < 0 ? null : map_index,
                    }))}
                  />
                )}
                footer={
                  (total ?? 0) > rows.length ? (
                    <span className="text-muted">
                      The first {count(rows.length)} of {count(total ?? 0)}: filter to see others.
                    </span>
                  ) : undefined
                }
              />
            </div>
          )
        }
      </Loads>
    </div>
  );
}

const COLUMNS: readonly Column<Instance>[] = [
  {
    id: "task",
    header: "Task",
    cell: (row) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link
          to="/dags/$dagId/runs/$runId/tasks/$taskId"
          params={{ dagId: row.dag_id, runId: row.dag_run_id, taskId: row.task_id }}
          search={row.map_index >= 0 ? { map: row.map_index } : {}}
          className="link"
        >
          {instanceLabel(row)}
        </Link>
        <NoteMark note={row.note} />
      </span>
    ),
  },
  { id: "state", header: "State", cell: ({ state }) => <StateBadge state={state} />, width: "150px" },
  {
    id: "tries",
    header: "Tries",
    sort: "try_number",
    cell: ({ try_number }) => try_number,
    numeric: true,
    width: "70px",
    from: "md",
  },
  {
    id: "started",
    header: "Started",
    sort: "start_date",
    cell: ({ start_date }) => <Ago at={start_date} />,
    width: "120px",
    from: "sm",
  },
  {
    id: "took",
    header: "Took",
    sort: "duration",
    cell: ({ end_date, start_date }) => <Elapsed from={start_date} to={end_date} />,
    numeric: true,
    width: "100px",
  },
  { id: "host", header: "Ran on", cell: ({ hostname }) => hostname ?? "–", width: "130px", from: "xl" },
  {
    id: "reason",
    header: "Reason",
    cell: ({ reason }) => <span className="line-clamp-1 text-muted">{reason}</span>,
    from: "lg",
  },
];
