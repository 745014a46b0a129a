/** The events of an asset: who produced each, with which payload, and which runs it started. */
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { reloadPaths } from "../../actions/change.ts";
import { $api } from "../../api/client.ts";
import { runPath, taskPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useLive } from "../../live/live.ts";
import { StateGlyph } from "../../state/glyph.tsx";
import { lookOf } from "../../state/states.ts";
import { Ago, Exact } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { JsonTree } from "../../ui/json-tree.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { Facts } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Pane } from "../../ui/pane.tsx";
import { Empty } from "../../ui/panels.tsx";
import { ASSET_PATHS, type Asset, type AssetEvent } from "./asset.ts";

export const EVENTS = "/api/v2/assets/events";

export function Events({ asset }: { readonly asset: Asset }) {
  const [search, setSearch] = useSearchState();
  const open = textOf(search, "event");
  const [isNew, setNew] = useState(false);
  const list = $api.useInfiniteQuery(
    "get",
    EVENTS,
    { params: { query: { asset_id: asset.id, limit: 100, order_by: ["-timestamp"] } } },
    {
      ...offsetPages(
        (page: { asset_events: readonly AssetEvent[]; total_entries: number }) => page.asset_events,
        (page) => page.total_entries,
      ),
    },
  );
  useLive("assets", (message) => {
    // At the beginning, and after a break: nothing says whether there is a new event.
    if ("isLost" in message) void reloadPaths([EVENTS]);
    else if ("assets" in message && message.assets.includes(asset.uri)) setNew(true);
  });
  const rows = useMemo(
    () => (list.data?.pages ?? []).flatMap(({ asset_events }) => asset_events),
    [list.data],
  );
  const shown = rows.find(({ id }) => String(id) === open);
  return (
    <div className="relative flex min-h-0 flex-1">
      <div className="flex min-w-0 flex-1 flex-col">
        {isNew && (
          <div className="border-b border-line px-4 py-1.5">
            <Button
              onClick={() => {
                setNew(false);
                void reloadPaths([...ASSET_PATHS, EVENTS]);
              }}
            >
              Show new events
            </Button>
          </div>
        )}
        <div className="min-h-0 flex-1">
          <PagedTable
            query={list}
            empty={
              <Empty title="This asset has no event yet" command={`tradewind assets send ${asset.uri}`}>
                An event is recorded when a task that produces the asset succeeds, or manually.
              </Empty>
            }
            label="Events"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ id }) => id}
            onOpen={({ id }) => setSearch({ event: id })}
            isOpen={({ id }) => String(id) === open}
          />
        </div>
      </div>
      {shown && <EventPane event={shown} onClose={() => setSearch({ event: undefined })} />}
    </div>
  );
}

function Source({ event }: { readonly event: AssetEvent }) {
  const {
    sender,
    source_dag_id: dag,
    source_map_index: map,
    source_run_id: run,
    source_task_id: task,
  } = event;
  if (dag === null || run === null || task === null) return <span>{sender || "unknown"}</span>;
  return (
    <Link to={taskPath(dag, run, task)} search={map < 0 ? {} : { map }} className="hover:underline">
      <span className="text-muted">{dag} ›</span> {task}
      {map >= 0 && `[${map}]`}
    </Link>
  );
}

function RunLink({ run }: { readonly run: AssetEvent["created_dagruns"][number] }) {
  return (
    <Link
      to={runPath(run.dag_id, run.run_id)}
      title={run.run_id}
      className="flex items-center gap-1.5 hover:underline"
    >
      <StateGlyph state={run.state} title={lookOf(run.state).label} size={14} />
      {run.dag_id}
    </Link>
  );
}

const COLUMNS: readonly Column<AssetEvent>[] = [
  {
    id: "time",
    header: "Time",
    width: "120px",
    cell: ({ id, timestamp }) => (
      <Link to="." search={(before: Record<string, unknown>) => ({ ...before, event: id })}>
        <Ago at={timestamp} />
      </Link>
    ),
  },
  { id: "source", header: "Recorded by", cell: (event) => <Source event={event} /> },
  {
    id: "partition",
    header: "Partition",
    from: "lg",
    cell: ({ partition_key }) => partition_key ?? <span className="text-faint">–</span>,
  },
  {
    id: "payload",
    header: "Payload",
    from: "md",
    cell: ({ payload }) => (
      <code className="block max-w-[50ch] truncate text-muted">
        {payload === null ? "" : JSON.stringify(payload)}
      </code>
    ),
  },
  {
    id: "runs",
    header: "Started",
    from: "sm",
    cell: ({ created_dagruns: runs }) => (
      <span className="flex items-center gap-3">
        {runs.slice(0, 3).map((run) => (
          <RunLink key={`${run.dag_id}/${run.run_id}`} run={run} />
        ))}
        {runs.length > 3 && <span className="text-muted">and {runs.length - 3} more</span>}
      </span>
    ),
  },
];

function EventPane({ event, onClose }: { readonly event: AssetEvent; readonly onClose: () => void }) {
  const { alias, created_dagruns: runs, partition_key, payload, source_dag_id, source_run_id } = event;
  return (
    <Pane title={`Event ${event.id}`} onClose={onClose}>
      <div className="flex flex-col gap-4 p-4">
        <Facts
          rows={[
            ["Time", <Exact key="time" at={event.timestamp} />],
            ["Recorded by", <Source key="source" event={event} />],
            source_dag_id === null || source_run_id === null
              ? null
              : [
                  "Run",
                  <Link
                    key="run"
                    to={runPath(source_dag_id, source_run_id)}
                    className="link font-mono break-all"
                  >
                    {source_run_id}
                  </Link>,
                ],
            partition_key === null ? null : ["Partition", partition_key],
            alias === null ? null : ["Alias", alias],
          ]}
        />
        <section className="flex flex-col gap-1.5">
          <h3>Payload</h3>
          {payload === null ? (
            <p className="text-muted">none</p>
          ) : (
            <JsonTree value={payload} name="payload" />
          )}
        </section>
        <section className="flex flex-col gap-1.5">
          <h3>Runs that it started</h3>
          {runs.length === 0 && <p className="text-muted">none so far</p>}
          {runs.map((run) => (
            <div key={`${run.dag_id}/${run.run_id}`} className="flex items-center gap-2">
              <RunLink run={run} />
              <span className="min-w-0 truncate font-mono text-sm text-muted">{run.run_id}</span>
            </div>
          ))}
        </section>
      </div>
    </Pane>
  );
}
