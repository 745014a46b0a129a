/** The runs of a DAG as a list, with actions on a selection of them. */
import { keepPreviousData } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo } from "react";
import { NoteMark } from "../../actions/note.tsx";
import { SelectedRuns } from "../../actions/selected-runs.tsx";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { runPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { useLiveRuns } from "../runs/live-runs.ts";
import { Choice, RUN_STATES, RUN_TYPES } from "./choice.tsx";

type Run = components["schemas"]["DAGRunResponse"];

const RUNS = "/api/v2/dags/{dag_id}/dagRuns";
const PAGE = 100;
export function RunsTab({ dagId }: { readonly dagId: string }) {
  const [search, setSearch] = useSearchState();
  const state = textOf(search, "state");
  const type = textOf(search, "type");
  const orderBy = textOf(search, "sort") ?? "-run_after";
  const list = $api.useInfiniteQuery(
    "get",
    RUNS,
    {
      params: {
        path: { dag_id: dagId },
        query: {
          limit: PAGE,
          order_by: orderBy,
          ...(state !== undefined && { state: [state] as never }),
          ...(type !== undefined && { run_kind: [type] as never }),
        },
      },
    },
    {
      pageParamName: "cursor",
      initialPageParam: "",
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  const read = useMemo(() => (list.data?.pages ?? []).flatMap((page) => page.dag_runs), [list.data]);
  const live = useLiveRuns(
    read,
    (run) =>
      run.dag_id === dagId &&
      (state === undefined || run.state === state) &&
      (type === undefined || run.run_type === type),
    () => void list.refetch(),
  );
  const rows = read.map(live.now).filter((run) => run !== null);
  const showNew = () => {
    live.reset();
    void list.refetch();
  };
  return (
    <>
      <div className="flex flex-wrap items-center gap-2 px-4 py-2">
        <Choice
          label="Trigger"
          options={RUN_TYPES}
          value={type}
          onChange={(value) => setSearch({ type: value })}
        />
        <Choice
          label="State"
          options={RUN_STATES}
          value={state}
          onChange={(value) => setSearch({ state: value })}
        />
        {live.fresh > 0 && (
          <Button onClick={showNew}>
            Show {live.fresh} new {live.fresh === 1 ? "run" : "runs"}
          </Button>
        )}
      </div>
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={
            <Empty
              title={state || type ? "No run matches these filters" : `${dagId} has not run yet`}
              command={`tradewind dags trigger ${dagId}`}
            />
          }
          fixed
          label={`Runs of ${dagId}`}
          columns={columnsOf(dagId)}
          rows={rows}
          rowKey={({ dag_run_id }) => dag_run_id}
          orderBy={orderBy}
          onOrderBy={(value) => setSearch({ sort: value })}
          bulk={(chosen) => <SelectedRuns runs={chosen} />}
        />
      </div>
    </>
  );
}

function columnsOf(dagId: string): readonly Column<Run>[] {
  return [
    { id: "state", header: "State", width: "120px", cell: ({ state }) => <StateBadge state={state} /> },
    {
      id: "run",
      header: "Run",
      cell: ({ dag_run_id: runId, logical_date: date, note }) => (
        <span className="flex min-w-0 items-center gap-2">
          <Link to={runPath(dagId, runId)} title={runId} className="truncate font-medium hover:underline">
            {date === null ? <span className="font-mono">{runId}</span> : <Exact at={date} />}
          </Link>
          <NoteMark note={note} />
        </span>
      ),
    },
    {
      id: "kind",
      header: "Triggered by",
      width: "170px",
      from: "md",
      cell: ({ run_kind: kind, triggering_user_name: user }) => (
        <span className="block truncate">
          {RUN_TYPES[kind]}
          {user !== null && <span className="text-muted"> · {user}</span>}
        </span>
      ),
    },
    {
      id: "version",
      header: "Version",
      width: "80px",
      from: "lg",
      cell: ({ dag_versions: versions }) =>
        versions.map(({ version_number }) => `v${version_number}`).join(", "),
    },
    {
      id: "note",
      header: "Note",
      from: "xl",
      cell: ({ end_reason: reason, note }) => (
        <span
          aria-hidden={note !== null}
          className="block truncate text-muted"
          title={note ?? reason ?? undefined}
        >
          {note ?? reason?.replaceAll("_", " ")}
        </span>
      ),
    },
    {
      ...{ id: "started", header: "Started", width: "130px", sort: "start_date", numeric: true },
      cell: ({ start_date }) => <Ago at={start_date} fallback="not yet" />,
    },
    {
      ...{ id: "took", header: "Took", width: "100px", sort: "duration", numeric: true },
      cell: ({ end_date, start_date }) => <Elapsed from={start_date} to={end_date} />,
    },
  ];
}
