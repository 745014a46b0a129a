/** One asset: its events, what waits for it, and its lineage. */
import { Link, useParams } from "@tanstack/react-router";
import { Play } from "lucide-react";
import { useState } from "react";
import { TriggerDialog } from "../../actions/trigger/trigger-dialog.tsx";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { dagPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Menu, MenuItem } from "../../ui/menu.tsx";
import { Fact, PageHeader } from "../../ui/page.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { ASSET_PATHS, type Asset, consumersOf, producersOf } from "./asset.ts";
import { Events } from "./events.tsx";
import { Lineage } from "./lineage.tsx";
import { RecordEvent } from "./record-event.tsx";

const TABS = ["events", "queued", "lineage"] as const;

export default function AssetPage() {
  const { assetId } = useParams({ strict: false }) as { readonly assetId: string };
  const query = $api.useQuery("get", "/api/v2/assets/{asset_id}", {
    params: { path: { asset_id: Number(assetId) } },
  });
  useReload("assets", ASSET_PATHS);
  return <Loads query={query}>{(asset) => <Shown key={asset.id} asset={asset} />}</Loads>;
}

function Shown({ asset }: { readonly asset: Asset }) {
  const [search, setSearch] = useSearchState();
  const tab = TABS.find((each) => each === textOf(search, "tab")) ?? "events";
  const [triggered, setTriggered] = useState<string>();
  const queued = $api.useQuery("get", "/api/v2/assets/{asset_id}/queuedEvents", {
    params: { path: { asset_id: asset.id } },
  });
  const producers = producersOf(asset);
  return (
    <>
      <PageHeader
        title={asset.uri}
        heading={
          <span className="flex min-w-0 items-center gap-1">
            <span className="break-all">{asset.uri}</span>
            <CopyButton text={asset.uri} label="Copy address" />
          </span>
        }
        facts={
          <>
            {asset.description !== null && <span className="basis-full">{asset.description}</span>}
            <Fact name="Last event">
              <Ago at={asset.last_asset_event?.timestamp} fallback="none" />
            </Fact>
            <Dags name="Produced by" ids={producers} />
            <Dags name="Used by" ids={consumersOf(asset)} />
            {asset.aliases.length > 0 && (
              <Fact name="Alias">{asset.aliases.map(({ name }) => name).join(", ")}</Fact>
            )}
            {asset.group !== "asset" && <Fact name="Group">{asset.group}</Fact>}
          </>
        }
        actions={
          <>
            <Button onClick={() => setSearch({ record: "1" })}>Record event…</Button>
            {producers.length === 1 && (
              <Button kind="primary" onClick={() => setTriggered(producers[0])}>
                <Play aria-hidden /> Trigger {producers[0]}…
              </Button>
            )}
            {producers.length > 1 && (
              <Menu
                trigger={
                  <Button kind="primary">
                    <Play aria-hidden /> Trigger a producer…
                  </Button>
                }
              >
                {producers.map((dagId) => (
                  <MenuItem key={dagId} onSelect={() => setTriggered(dagId)}>
                    {dagId}
                  </MenuItem>
                ))}
              </Menu>
            )}
          </>
        }
      />
      <TabLinks
        label="Parts of the asset"
        selected={tab}
        tabs={[
          { id: "events", label: "Events" },
          { id: "queued", label: "Queued", count: queued.data?.total_entries || undefined },
          { id: "lineage", label: "Lineage" },
        ]}
      />
      {tab === "events" && <Events asset={asset} />}
      {tab === "queued" && (
        <div className="min-h-0 flex-1">
          <Loads query={queued}>{({ queued_events: rows }) => <Queued rows={rows} />}</Loads>
        </div>
      )}
      {tab === "lineage" && (
        <div className="min-h-0 flex-1">
          <Lineage assetId={asset.id} />
        </div>
      )}
      {search["record"] !== undefined && (
        <RecordEvent asset={asset} onClose={() => setSearch({ record: undefined })} />
      )}
      {triggered !== undefined && <TriggerDialog dagId={triggered} onClose={() => setTriggered(undefined)} />}
    </>
  );
}

function Dags({ name, ids }: { readonly name: string; readonly ids: readonly string[] }) {
  if (ids.length === 0) return null;
  return (
    <span className="inline-flex flex-wrap items-baseline gap-x-1.5">
      <span>{name}</span>
      {ids.map((id) => (
        <Link key={id} to={dagPath(id)} className="text-text hover:underline">
          {id}
        </Link>
      ))}
    </span>
  );
}

type QueuedEvents = components["schemas"]["QueuedEventResponse"];

function Queued({ rows }: { readonly rows: readonly QueuedEvents[] }) {
  if (rows.length === 0)
    return (
      <Empty title="No event is queued">
        Events wait here for a DAG whose schedule needs more than this asset, or that is paused.
      </Empty>
    );
  return <DataTable label="Queued events" columns={QUEUED} rows={rows} rowKey={({ dag_id }) => dag_id} />;
}

const QUEUED: readonly Column<QueuedEvents>[] = [
  {
    id: "dag",
    header: "For DAG",
    cell: ({ dag_id }) => (
      <Link to={dagPath(dag_id)} className="font-medium hover:underline">
        {dag_id}
      </Link>
    ),
  },
  { id: "events", header: "Events", numeric: true, width: "100px", cell: ({ events }) => count(events) },
  { id: "since", header: "Since", width: "140px", cell: ({ created_at }) => <Ago at={created_at} /> },
];
