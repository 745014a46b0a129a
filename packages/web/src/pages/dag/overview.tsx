/** Grid, graph or calendar at the left; at the right, the run or task that is selected in it. */
import { memo, useCallback, useMemo } from "react";
import { textOf, useSearchState } from "../../app/search.ts";
import { gridRows } from "../../grid/grid-rows.ts";
import { type GridSelection, GridView } from "../../grid/grid-view.tsx";
import { useLive } from "../../live/live.ts";
import { useKept } from "../../state/kept.ts";
import { SearchBox } from "../../ui/field.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { Segmented } from "../../ui/tabs.tsx";
import { CalendarView } from "./calendar-view.tsx";
import { Choice, RUN_STATES, RUN_TYPES } from "./choice.tsx";
import { DagGraph } from "./dag-graph.tsx";
import { Details } from "./details.tsx";
import { Legend } from "./legend.tsx";
import { useGrid, useLiveGrid } from "./use-grid.ts";

/** Running runs whose tasks are followed. */
const MOST_FOLLOWED = 16;
const VIEWS = [
  { value: "grid", label: "Grid" },
  { value: "graph", label: "Graph" },
  { value: "calendar", label: "Calendar" },
] as const;
export function Overview({ dagId }: { readonly dagId: string }) {
  const [search, setSearch] = useSearchState();
  const view = VIEWS.find(({ value }) => value === search["view"])?.value ?? "grid";
  const filter = { state: textOf(search, "state"), runType: textOf(search, "type") };
  const { query, model, refreshRun } = useGrid(dagId, filter);
  const onRun = useLiveGrid(dagId, query, refreshRun);
  const openRuns = useMemo(
    () => (model?.columns ?? []).filter(({ state }) => state === "running").slice(-MOST_FOLLOWED),
    [model],
  );
  const collapsedText = textOf(search, "collapsed") ?? "";
  const collapsed = useMemo(() => new Set(collapsedText.split(",").filter(Boolean)), [collapsedText]);
  const text = textOf(search, "tasks") ?? "";
  const { groups, tasks } = model ?? {};
  const removed = useKept(model?.removed ?? []);
  // The rows stay the same while states change.
  const rows = useMemo(
    () => (tasks && groups ? gridRows({ groups, removed, tasks }, { collapsed, text }) : []),
    [groups, removed, tasks, collapsed, text],
  );
  const selection = { runId: textOf(search, "run"), taskId: textOf(search, "task") };
  const onSelect = useCallback(
    ({ runId, taskId }: GridSelection) => setSearch({ run: runId, task: taskId }, { replace: false }),
    [setSearch],
  );
  const onToggle = useCallback(
    (group: string) => {
      const next = new Set(collapsed);
      if (!next.delete(group)) next.add(group);
      setSearch({ collapsed: [...next].join(",") });
    },
    [collapsed, setSearch],
  );
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = query;
  const onOlder = useMemo(
    () => (hasNextPage && !isFetchingNextPage ? () => void fetchNextPage() : undefined),
    [hasNextPage, isFetchingNextPage, fetchNextPage],
  );
  const isFiltered = filter.state !== undefined || filter.runType !== undefined;
  return (
    <div className="relative flex min-h-0 flex-1">
      {openRuns.map(({ runId }) => (
        <RunTopic key={runId} dagId={dagId} runId={runId} onRun={onRun} />
      ))}
      <div className="flex min-w-0 flex-1 flex-col">
        <Toolbar
          view={view}
          runType={filter.runType}
          state={filter.state}
          text={text}
          setSearch={setSearch}
        />
        <div className="min-h-0 flex-1">
          <Loads query={query}>
            {() =>
              model === undefined ? null : model.columns.length === 0 && view === "grid" ? (
                <Empty
                  title={isFiltered ? "No run matches these filters" : `${dagId} has not run yet`}
                  {...(isFiltered ? {} : { command: `tradewind dags trigger ${dagId}` })}
                >
                  {isFiltered
                    ? "Choose another trigger or state."
                    : "Each run becomes a column here, and each task a row. A run starts at the next date of the schedule, or manually:"}
                </Empty>
              ) : view === "calendar" ? (
                <CalendarView dagId={dagId} selection={selection} onSelect={onSelect} />
              ) : view === "graph" ? (
                <DagGraph
                  model={model}
                  selection={selection}
                  collapsed={collapsed}
                  text={text}
                  onSelect={onSelect}
                  onToggle={onToggle}
                />
              ) : (
                <GridView
                  dagId={dagId}
                  model={model}
                  rows={rows}
                  selection={selection}
                  onSelect={onSelect}
                  onToggle={onToggle}
                  onOlder={onOlder}
                />
              )
            }
          </Loads>
        </div>
        {model && view !== "calendar" && (
          <Legend
            columns={model.columns.length}
            failed={model.columns.filter((column) => column.state === "failed").length}
            hasMore={hasNextPage}
            isLoading={isFetchingNextPage}
          />
        )}
      </div>
      {model && (selection.runId !== undefined || selection.taskId !== undefined) && (
        <Details dagId={dagId} model={model} selection={selection} onSelect={onSelect} />
      )}
    </div>
  );
}

const Toolbar = memo(function Toolbar({
  runType,
  setSearch,
  state,
  text,
  view,
}: {
  readonly runType: string | undefined;
  readonly setSearch: ReturnType<typeof useSearchState>[1];
  readonly state: string | undefined;
  readonly text: string;
  readonly view: (typeof VIEWS)[number]["value"];
}) {
  const onFilter = useCallback((value: string) => setSearch({ tasks: value }), [setSearch]);
  return (
    <div className="flex flex-wrap items-center gap-2 px-4 py-2">
      <Segmented
        label="View"
        options={VIEWS}
        value={view}
        onChange={(value) => setSearch({ view: value === "grid" ? undefined : value })}
      />
      <Choice label="Trigger" options={RUN_TYPES} value={runType} onChange={(type) => setSearch({ type })} />
      <Choice label="State" options={RUN_STATES} value={state} onChange={(state) => setSearch({ state })} />
      <SearchBox label="Filter tasks" value={text} onChange={onFilter} className="ml-auto w-44" />
    </div>
  );
});

/** Tasks of a run have changed. */
function RunTopic({
  dagId,
  runId,
  onRun,
}: {
  readonly dagId: string;
  readonly runId: string;
  readonly onRun: (runId: string) => void;
}) {
  useLive(`run:${dagId}/${runId}`, () => onRun(runId));
  return null;
}
