/** The runs of all DAGs, newest first: what ran, what runs, what failed; changes of many at once. */
import { keepPreviousData } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import { NoteMark } from "../../actions/note.tsx";
import { SelectedRuns } from "../../actions/selected-runs.tsx";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { dagPath, runPath } from "../../app/paths.ts";
import { usePreferences } from "../../app/preferences.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { serverNow } from "../../time/clock.ts";
import { bounded, briefTime, count } from "../../time/format.ts";
import { timeOfId } from "../../time/run-time.ts";
import { Ago, Elapsed, Exact } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { ListFooter } from "../../ui/list-footer.tsx";
import { PageHeader } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { KIND_WORDS } from "../run/run-data.ts";
import { runKey, useLiveRuns } from "./live-runs.ts";
import { RunFilters, readFilter, SPANS } from "./run-filters.tsx";

type Run = components["schemas"]["DAGRunResponse"];

const PAGE = 100;
const HOUR = 3_600_000;
/** The server counts up to here. */
const COUNTED = 10_000;

export default function RunsPage() {
  const [search, setSearch] = useSearchState();
  const navigate = useNavigate();
  const filter = readFilter((name) => textOf(search, name));
  const orderBy = textOf(search, "sort") ?? "-id";
  const { dag, kind, span, states } = filter;
  // As old as the filter: the list would else be another one with each drawing.
  const since = useMemo(
    () => (span === undefined ? undefined : new Date(serverNow() - SPANS[span] * HOUR).toISOString()),
    [span],
  );
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/dags/{dag_id}/dagRuns",
    {
      params: {
        path: { dag_id: "~" },
        query: {
          limit: PAGE,
          order_by: orderBy,
          ...(states.length > 0 && { state: [...states] }),
          ...(kind && { run_kind: [kind] }),
          ...(dag && { dag_id_pattern: `%${dag}%` }),
          ...(since && { run_after_gte: since }),
        },
      },
    },
    {
      pageParamName: "offset",
      initialPageParam: 0,
      getNextPageParam: (last, pages) =>
        last.dag_runs.length < PAGE ? undefined : pages.reduce((sum, page) => sum + page.dag_runs.length, 0),
      placeholderData: keepPreviousData,
    },
  );
  const read = useMemo(() => (list.data?.pages ?? []).flatMap(({ dag_runs }) => dag_runs), [list.data]);
  const live = useLiveRuns(
    read,
    (run) =>
      (states.length === 0 || states.some((state) => state === run.state)) &&
      (dag === undefined || run.dag_id.toLowerCase().includes(dag.toLowerCase())),
    () => void list.refetch(),
  );
  const rows = read.map(live.now).filter((run) => run !== null);
  const total = list.data?.pages[0]?.total_entries ?? null;
  return (
    <>
      <PageHeader
        title="Runs"
        heading={
          <>
            Runs
            {total !== null && (
              <span className="text-base font-normal text-muted tabular-nums">
                {bounded({ count: Math.min(total, COUNTED), more: total > COUNTED })}
              </span>
            )}
          </>
        }
      />
      <RunFilters filter={filter} onChange={setSearch} />
      {live.fresh > 0 && (
        <button
          type="button"
          className="border-y border-line bg-accent-soft px-4 py-1 text-left font-medium text-accent"
          onClick={() => {
            live.reset();
            void list.refetch();
          }}
        >
          {count(live.fresh)} new {live.fresh === 1 ? "run" : "runs"}: show
        </button>
      )}
      <Loads query={list}>
        {() =>
          rows.length === 0 ? (
            <NoRuns isFiltered={states.length > 0 || Boolean(dag || kind || span)} />
          ) : (
            <div className="min-h-0 flex-1">
              <DataTable
                label="Runs"
                columns={COLUMNS}
                rows={rows}
                rowKey={runKey}
                orderBy={orderBy}
                onOrderBy={(sort) => setSearch({ sort })}
                onOpen={(run) => void navigate({ to: runPath(run.dag_id, run.dag_run_id) })}
                bulk={(chosen) => <SelectedRuns runs={chosen} />}
                footer={
                  <ListFooter
                    shown={rows.length}
                    total={total}
                    hasMore={list.hasNextPage}
                    isLoading={list.isFetchingNextPage}
                    onMore={() => list.fetchNextPage()}
                  />
                }
              />
            </div>
          )
        }
      </Loads>
    </>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return <Empty title="No run matches these filters">Remove a filter, or search for another DAG.</Empty>;
  return (
    <Empty title="No run yet" command="tradewind dags trigger DAG">
      A run appears here when a schedule, an asset, a signal or a person starts a DAG.
    </Empty>
  );
}

/** Generated ids differ at their end, which a narrow screen would cut off: it has their time. */
function RunId({ id }: { readonly id: string }) {
  const { zone } = usePreferences();
  const at = timeOfId(id);
  if (at === null) return id;
  return (
    <>
      <span className="max-md:hidden">{id}</span>
      <span className="md:hidden">{briefTime(at, serverNow(), zone)}</span>
    </>
  );
}

const COLUMNS: readonly Column<Run>[] = [
  {
    id: "state",
    header: "State",
    cell: ({ state }) => <StateBadge state={state} />,
    width: "120px",
  },
  {
    id: "dag",
    header: "DAG",
    sort: "dag_id",
    cell: ({ dag_id }) => (
      <Link to={dagPath(dag_id)} className="font-medium hover:underline">
        {dag_id}
      </Link>
    ),
  },
  {
    id: "run",
    header: "Run",
    cell: ({ dag_id, dag_run_id, note }) => (
      <span className="flex min-w-0 items-center gap-2">
        <Link to={runPath(dag_id, dag_run_id)} title={dag_run_id} className="link truncate font-mono">
          <RunId id={dag_run_id} />
        </Link>
        <NoteMark note={note} />
        {note !== null && (
          <span aria-hidden className="max-w-[32ch] truncate text-muted">
            {note}
          </span>
        )}
      </span>
    ),
  },
  {
    id: "cause",
    header: "Started by",
    cell: ({ run_kind, triggering_user_name }) => (
      <span className="whitespace-nowrap">
        {KIND_WORDS[run_kind]}
        {triggering_user_name !== null && <span className="text-muted"> {triggering_user_name}</span>}
      </span>
    ),
    width: "170px",
    from: "lg",
  },
  {
    id: "date",
    header: "Logical date",
    sort: "logical_date",
    cell: ({ logical_date }) => <Exact at={logical_date} />,
    width: "160px",
    from: "xl",
  },
  {
    id: "started",
    header: "Started",
    sort: "start_date",
    cell: ({ start_date }) => <Ago at={start_date} fallback="not yet" />,
    width: "110px",
    from: "sm",
  },
  {
    id: "took",
    header: "Took",
    sort: "duration",
    cell: ({ end_date, start_date }) => <Elapsed from={start_date} to={end_date} />,
    numeric: true,
    width: "90px",
  },
  {
    id: "version",
    header: "Version",
    cell: ({ dag_versions }) => `v${dag_versions[0]?.version_number ?? "–"}`,
    numeric: true,
    width: "80px",
    from: "xl",
  },
];
