/** How many slots are there, and who uses them? */
import { Pencil, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { count } from "../../time/format.ts";
import { IconButton } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { Meter } from "../../ui/meter.tsx";
import { NamedListHeader } from "../../ui/named-list-header.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { DeletePool } from "./delete-pool.tsx";
import { EditPool } from "./edit-pool.tsx";
import type { Pool } from "./pool.ts";

export default function PoolsPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const [edited, setEdited] = useState<Pool | "new" | null>(null);
  const [deleted, setDeleted] = useState<Pool | null>(null);
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/pools",
    { params: { query: { limit: 100, ...(q && { pool_name_pattern: `%${q}%` }) } } },
    {
      ...offsetPages(
        (page: { pools: readonly Pool[]; total_entries: number }) => page.pools,
        (page) => page.total_entries,
      ),
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ pools }) => pools), [list.data]);
  useReload("settings", ["/api/v2/pools"]);
  const columns = useMemo(() => columnsOf(setEdited, setDeleted), []);
  return (
    <>
      <NamedListHeader
        title="Pools"
        facts="A pool limits how many tasks run at once, over all DAGs."
        filter="Filter by name"
        create="New pool"
        onCreate={() => setEdited("new")}
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={<Empty title="No pool has this name" command="tradewind pools set warehouse 4" />}
          label="Pools"
          columns={columns}
          rows={rows}
          rowKey={({ name }) => name}
          onOpen={setEdited}
        />
      </div>
      {edited !== null && (
        <EditPool pool={edited === "new" ? null : edited} onClose={() => setEdited(null)} />
      )}
      {deleted !== null && <DeletePool pool={deleted} onClose={() => setDeleted(null)} />}
    </>
  );
}

function columnsOf(onEdit: (pool: Pool) => void, onDelete: (pool: Pool) => void): readonly Column<Pool>[] {
  const state = (id: keyof Pool & `${string}_slots`, header: string): Column<Pool> => ({
    id,
    header,
    numeric: true,
    width: "90px",
    from: "md",
    cell: (pool) => (pool[id] === 0 ? <span className="text-faint">0</span> : count(pool[id])),
  });
  return [
    { id: "name", header: "Name", cell: ({ name }) => <span className="font-medium">{name}</span> },
    {
      id: "use",
      header: "Used",
      width: "220px",
      cell: (pool) => (
        <span className="grid grid-cols-[100px_1fr] items-center gap-3">
          <Meter
            label={`${pool.occupied_slots} of ${pool.slots < 0 ? "unlimited" : pool.slots} slots are used`}
            total={Math.max(0, pool.slots)}
            parts={[
              { value: pool.running_slots, color: "--s-running" },
              { value: pool.queued_slots, color: "--s-queued" },
              { value: pool.include_deferred ? pool.deferred_slots : 0, color: "--s-deferred" },
            ]}
          />
          <span className="whitespace-nowrap tabular-nums">
            {count(pool.occupied_slots)} of {pool.slots < 0 ? "∞" : count(pool.slots)}
          </span>
        </span>
      ),
    },
    state("running_slots", "Running"),
    state("queued_slots", "Queued"),
    state("deferred_slots", "Deferred"),
    state("scheduled_slots", "Want slots"),
    {
      id: "description",
      header: "Description",
      from: "lg",
      cell: ({ description }) => (
        <span className="block max-w-[60ch] truncate text-muted">{description}</span>
      ),
    },
    {
      id: "actions",
      header: <span className="sr-only">Actions</span>,
      width: "80px",
      cell: (pool) => (
        <span className="flex justify-end">
          <IconButton label={`Edit ${pool.name}`} onClick={() => onEdit(pool)}>
            <Pencil />
          </IconButton>
          <IconButton
            label={`Delete ${pool.name}`}
            disabled={pool.name === "default_pool"}
            onClick={() => onDelete(pool)}
          >
            <Trash2 />
          </IconButton>
        </span>
      ),
    },
  ];
}
