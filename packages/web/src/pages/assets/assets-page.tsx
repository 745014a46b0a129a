/** What feeds what, how fresh is it? */
import { Link } from "@tanstack/react-router";
import { useCallback, useMemo } from "react";
import { $api } from "../../api/client.ts";
import { assetPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { SearchBox } from "../../ui/field.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PageHeader } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { TabLinks } from "../../ui/tabs.tsx";
import { ASSETS, type Asset, consumersOf, producersOf } from "./asset.ts";
import { Lineage } from "./lineage.tsx";
import { RecordEvent } from "./record-event.tsx";

export default function AssetsPage() {
  const [search, setSearch] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const tab = textOf(search, "tab") === "lineage" ? "lineage" : "list";
  return (
    <>
      <PageHeader
        title="Assets"
        facts="Data with an address: tasks record when they have changed it, and DAGs run on it."
        actions={
          <>
            <SearchBox
              label="Filter by address"
              value={q}
              onChange={useCallback((text) => setSearch({ q: text }), [setSearch])}
            />
            <Button onClick={() => setSearch({ record: "1" })}>Record event…</Button>
          </>
        }
      />
      <TabLinks
        label="Views of assets"
        selected={tab}
        tabs={[
          { id: "list", label: "List" },
          { id: "lineage", label: "Lineage" },
        ]}
      />
      <div className="min-h-0 flex-1">{tab === "list" ? <AssetList q={q} /> : <Lineage text={q} />}</div>
      {search["record"] !== undefined && (
        <RecordEvent asset={null} onClose={() => setSearch({ record: undefined })} />
      )}
    </>
  );
}

function AssetList({ q }: { readonly q: string }) {
  const [search, setSearch] = useSearchState();
  const orderBy = textOf(search, "sort") ?? "uri";
  const list = $api.useInfiniteQuery(
    "get",
    ASSETS,
    { params: { query: { limit: 100, order_by: [orderBy], ...(q && { uri_pattern: q }) } } },
    {
      ...offsetPages(
        (page: { assets: readonly Asset[]; total_entries: number }) => page.assets,
        (page) => page.total_entries,
      ),
    },
  );
  useReload("assets", [ASSETS]);
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ assets }) => assets), [list.data]);
  return (
    <PagedTable
      query={list}
      empty={
        <Empty
          title={q ? "No asset has this in its address" : "No asset is known yet"}
          command={`tradewind assets send s3://lake/orders '{"rows": 120}'`}
        >
          An asset appears here when a DAG names it, or with its first event. In a DAG:{" "}
          <code>
            d.task("load", {"{"} produces: [asset("s3://lake/orders")] {"}"}, …)
          </code>
        </Empty>
      }
      label="Assets"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ id }) => id}
      orderBy={orderBy}
      onOrderBy={(next) => setSearch({ sort: next === "uri" ? undefined : next })}
    />
  );
}

function Names({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span className="text-faint">none</span>;
  return (
    <span className="block max-w-[40ch] truncate" title={names.join(", ")}>
      {names.length > 1 && <span className="text-muted">{names.length}: </span>}
      {names.join(", ")}
    </span>
  );
}

const COLUMNS: readonly Column<Asset>[] = [
  {
    id: "uri",
    header: "Asset",
    sort: "uri",
    cell: ({ description, id, uri }) => (
      <Link
        to={assetPath(id)}
        title={description ?? uri}
        className="block max-w-[52ch] truncate font-mono font-medium hover:underline max-sm:max-w-[26ch]"
      >
        {uri}
      </Link>
    ),
  },
  {
    id: "event",
    header: "Last event",
    width: "120px",
    cell: ({ last_asset_event }) => <Ago at={last_asset_event?.timestamp} fallback="none" />,
  },
  { id: "producers", header: "Produced by", from: "md", cell: (row) => <Names names={producersOf(row)} /> },
  { id: "consumers", header: "Used by", from: "md", cell: (row) => <Names names={consumersOf(row)} /> },
  {
    id: "group",
    header: "Group",
    width: "120px",
    from: "xl",
    cell: ({ group }) => <span className="text-muted">{group}</span>,
  },
];
