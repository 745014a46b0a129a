/** How are the pipelines doing? All DAGs with their latest runs, the next run, and what is wrong. */
import { keepPreviousData } from "@tanstack/react-query";
import { useCallback, useMemo, useState } from "react";
import { useSetPaused } from "../../actions/pause/use-pause.ts";
import { SelectedDags } from "../../actions/selected-dags.tsx";
import { TriggerDialog } from "../../actions/trigger/trigger-dialog.tsx";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useLive } from "../../live/live.ts";
import { useThrottled } from "../../live/throttled.ts";
import { bounded, count } from "../../time/format.ts";
import { Button } from "../../ui/button.tsx";
import { cx } from "../../ui/class-names.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { PageHeader } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { SortSelect } from "../../ui/sort-select.tsx";
import { runsOf } from "./bar-shapes.ts";
import { type DagRow, dagColumns } from "./dag-columns.tsx";
import { SHOWN, type Shown, StateFilters, TagFilters } from "./filters.tsx";
import { useStableOrder } from "./stable-order.ts";

const PAGE = 100;
/** Between two readings of a list that changes all the time. */
const RELOAD_MS = 2_000;
const keyOf = ({ dag }: DagRow) => dag.dag_id;
const selectedOf = ({ dag, runs }: DagRow) => ({
  dagId: dag.dag_id,
  isPaused: dag.is_paused,
  nextRun: dag.next_run_after,
  runs,
});
const ORDERS = {
  problems: "Problems first",
  dag_id: "By name",
  "-dag_id": "By name, reversed",
  "-last_run": "Latest run first",
  last_run: "Oldest run first",
  next_run: "Next run first",
  "-next_run": "Next run last",
} as const;

export default function DagsPage() {
  const [search, setSearch] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const shown = SHOWN.find((each) => each === search["show"]);
  const owner = textOf(search, "owner");
  const tags = useMemo(() => (textOf(search, "tags") ?? "").split(",").filter(Boolean), [search]);
  const orderBy = (textOf(search, "sort") ?? "problems") as keyof typeof ORDERS;
  const filter = { ...(q && { q }), ...(owner && { owner }), ...(tags.length > 0 && { tag: tags }) };
  const list = $api.useInfiniteQuery(
    "get",
    "/ui/dags",
    {
      params: {
        query: {
          ...filter,
          ...(shown === "paused" ? { paused: "true" } : shown && { state: shown }),
          order_by: orderBy === "problems" ? ["problems", "dag_id"] : [orderBy],
          limit: PAGE,
        },
      },
    },
    {
      initialPageParam: "",
      getNextPageParam: (last) => last.next_cursor ?? undefined,
      placeholderData: keepPreviousData,
    },
  );
  const facets = $api.useQuery(
    "get",
    "/ui/dags/facets",
    { params: { query: filter } },
    { placeholderData: keepPreviousData },
  );
  const pages = list.data?.pages;
  const sent = useMemo<DagRow[]>(
    () =>
      (pages ?? []).flatMap(({ dags, run_states }) =>
        dags.map((dag) => ({ dag, runs: runsOf(dag.bars, run_states) })),
      ),
    [pages],
  );
  const question = JSON.stringify([filter, shown, orderBy, list.isPlaceholderData]);
  const { shown: rows, sort } = useStableOrder(sent, question, keyOf);
  const reload = useThrottled(
    () => Promise.all([list.refetch({ cancelRefetch: false }), facets.refetch({ cancelRefetch: false })]),
    RELOAD_MS,
  );
  useLive("runs", reload);
  useLive("dags", reload);
  const setPaused = useSetPaused();
  const [triggered, setTriggered] = useState<string>();
  const columns = useMemo(() => dagColumns({ onPause: setPaused, onTrigger: setTriggered }), [setPaused]);
  const keys = useMemo(
    () => ({
      t: ({ dag }: DagRow) => setTriggered(dag.dag_id),
      p: ({ dag }: DagRow) => void setPaused(dag.dag_id, !dag.is_paused),
    }),
    [setPaused],
  );
  const onSearch = useCallback((text: string) => setSearch({ q: text }), [setSearch]);
  const total = pages?.[0]?.total;
  const isFiltered = q !== "" || shown !== undefined || owner !== undefined || tags.length > 0;
  const heading = total ? `${bounded(total)} ${total.count === 1 && !total.more ? "DAG" : "DAGs"}` : "DAGs";
  return (
    <>
      {triggered !== undefined && <TriggerDialog dagId={triggered} onClose={() => setTriggered(undefined)} />}
      <PageHeader
        title="DAGs"
        heading={
          <>
            <span className="min-w-24 whitespace-nowrap" aria-live="polite">
              {heading}
            </span>
            <SearchBox
              label="Filter by name, owner, tag"
              value={q}
              onChange={onSearch}
              className="w-72 text-base font-normal tracking-normal max-sm:w-full"
            />
          </>
        }
        actions={
          <>
            {sort && <Button onClick={sort}>Sort again: the order has changed</Button>}
            <SortSelect orders={ORDERS} value={orderBy} onChange={(sort) => setSearch({ sort })} />
          </>
        }
      />
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5 border-b border-line px-4 pb-2">
        <StateFilters
          facets={facets.data}
          value={shown}
          onChange={(value: Shown | undefined) => setSearch({ show: value })}
        />
        <TagFilters
          facets={facets.data}
          tags={tags}
          onTags={(value) => setSearch({ tags: value.join(",") })}
          owner={owner}
          onOwner={(value) => setSearch({ owner: value })}
        />
      </div>
      <div
        aria-busy={list.isPlaceholderData}
        className={cx("min-h-0 flex-1", list.isPlaceholderData && "opacity-60")}
      >
        <Loads query={list}>
          {() =>
            rows.length === 0 ? (
              isFiltered ? (
                <Empty title="No DAG matches these filters">
                  <Button
                    onClick={() =>
                      setSearch({ q: undefined, show: undefined, owner: undefined, tags: undefined })
                    }
                  >
                    Show all DAGs
                  </Button>
                </Empty>
              ) : (
                <Empty title="There is no DAG yet" command="tradewind standalone --dags ./dags">
                  Each TypeScript file in the folder of the DAGs that exports a DAG appears here, two seconds
                  after it is saved. Files that do not load are listed under Errors.
                </Empty>
              )
            ) : (
              <DataTable
                fixed
                label="DAGs"
                columns={columns}
                rows={rows}
                rowKey={keyOf}
                rowHeight={40}
                keys={keys}
                bulk={(chosen) => <SelectedDags dags={chosen.map(selectedOf)} />}
                orderBy={orderBy}
                onOrderBy={(value) => setSearch({ sort: value })}
                footer={
                  <div className="flex items-center gap-3 px-1.5 text-sm text-muted">
                    1–{count(rows.length)} of {total && bounded(total)}
                    {list.hasNextPage && (
                      <Button disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
                        {list.isFetchingNextPage ? "Loading…" : `Show ${PAGE} more`}
                      </Button>
                    )}
                  </div>
                }
              />
            )
          }
        </Loads>
      </div>
    </>
  );
}
