/** The instances of a mapped task: how many in which state, and each of them. */
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { instanceLabel } from "../../actions/instance-list.tsx";
import { NoteMark } from "../../actions/note.tsx";
import { SelectedTasks } from "../../actions/selected-tasks.tsx";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { StateBadge, StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { count } from "../../time/format.ts";
import { Ago, Elapsed } from "../../time/time.tsx";
import { cx } from "../../ui/class-names.ts";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { Loads } from "../../ui/panels.tsx";
import { type Instance, type TaskAddress, useWhy } from "./task-data.ts";

const LIMIT = 1_000;

export function MappedList({ address }: { readonly address: TaskAddress }) {
  const [search, setSearch] = useSearchState();
  const navigate = useNavigate();
  const why = useWhy(address);
  const state = textOf(search, "state");
  const label = textOf(search, "label");
  const order = textOf(search, "order") ?? "map_index";
  const list = $api.useQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances/{task_id}/listMapped",
    {
      params: {
        path: { dag_id: address.dagId, dag_run_id: address.runId, task_id: address.taskId },
        query: {
          limit: LIMIT,
          order_by: order,
          ...(state === undefined ? {} : { state: [state as "success"] }),
          ...(label === undefined ? {} : { rendered_map_index_pattern: `%${label}%` }),
        },
      },
    },
    { placeholderData: (before) => before },
  );
  const columns = useMemo(() => columnsOf(address), [address]);
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 pb-2">
        <SearchBox
          label="Label"
          value={label ?? ""}
          onChange={(value) => setSearch({ label: value })}
          className="w-56"
        />
        {why.data?.instances?.map(({ count: number, state: each }) => (
          <button
            key={each}
            type="button"
            aria-pressed={state === each}
            onClick={() => setSearch({ state: state === each ? undefined : (each ?? undefined) })}
            className={cx(
              "flex h-7 items-center gap-1.5 rounded-md border px-2",
              state === each ? "border-accent bg-accent-soft" : "border-line hover:bg-hover",
            )}
          >
            <StateGlyph state={each} size={14} />
            {lookOf(each).label} <span className="text-muted tabular-nums">{count(number)}</span>
          </button>
        ))}
        <form
          className="ml-auto flex items-center gap-1.5 max-sm:hidden"
          onSubmit={(event) => {
            event.preventDefault();
            const wanted = new FormData(event.currentTarget).get("index");
            if (wanted !== "") setSearch({ map: Number(wanted), tab: undefined }, { replace: false });
          }}
        >
          <label className="flex items-center gap-1.5 text-muted">
            Go to
            <input
              name="index"
              type="number"
              min={0}
              placeholder="#"
              className="h-7 w-20 rounded-md border border-line-strong bg-surface px-2 text-text"
            />
          </label>
        </form>
      </div>
      <Loads query={list}>
        {({ task_instances: rows, total_entries: total }) => (
          <div className="min-h-0 flex-1">
            <DataTable
              label="Instances"
              columns={columns}
              rows={rows}
              rowKey={(row) => row.map_index}
              orderBy={order}
              onOrderBy={(value) => setSearch({ order: value })}
              onOpen={(row) =>
                void navigate({
                  to: ".",
                  search: (() => ({ map: row.map_index })) as never,
                })
              }
              bulk={(chosen) => (
                <SelectedTasks tasks={chosen.map((row) => ({ ...address, mapIndex: row.map_index }))} />
              )}
              footer={
                (total ?? 0) > rows.length ? (
                  <span className="text-muted">
                    The first {count(rows.length)} of {count(total ?? 0)}: filter by label or state to see
                    others.
                  </span>
                ) : undefined
              }
            />
          </div>
        )}
      </Loads>
    </div>
  );
}

function columnsOf(address: TaskAddress): Column<Instance>[] {
  return [
    {
      id: "instance",
      header: "Instance",
      sort: "map_index",
      cell: (row) => (
        <span className="flex min-w-0 items-center gap-2">
          <Link
            to="/dags/$dagId/runs/$runId/tasks/$taskId"
            params={{ dagId: address.dagId, runId: address.runId, taskId: address.taskId }}
            search={{ map: row.map_index }}
            className="link font-mono"
          >
            {instanceLabel(row)}
          </Link>
          <NoteMark note={row.note} />
        </span>
      ),
    },
    { id: "index", header: "#", cell: (row) => row.map_index, numeric: true, width: "70px", from: "sm" },
    { id: "state", header: "State", cell: (row) => <StateBadge state={row.state} />, width: "150px" },
    {
      id: "tries",
      header: "Tries",
      cell: (row) => row.try_number,
      numeric: true,
      width: "70px",
      from: "md",
    },
    {
      id: "took",
      header: "Took",
      sort: "duration",
      cell: (row) => <Elapsed from={row.start_date} to={row.end_date} />,
      numeric: true,
      width: "110px",
    },
    {
      id: "started",
      header: "Started",
      sort: "start_date",
      cell: (row) => <Ago at={row.start_date} />,
      width: "130px",
      from: "md",
    },
    {
      id: "reason",
      header: "Reason",
      cell: (row) => <span className="line-clamp-1 text-muted">{row.reason}</span>,
      from: "lg",
    },
  ];
}
