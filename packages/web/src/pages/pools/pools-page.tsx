/** How many slots are there, and who uses them? */
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { POOL_KIND } from "../../settings/kinds.ts";
import { NamedListPage } from "../../settings/named-list-page.tsx";
import { count } from "../../time/format.ts";
import type { Column } from "../../ui/data-table.tsx";
import { Meter } from "../../ui/meter.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { Empty } from "../../ui/panels.tsx";
import { DeletePool } from "./delete-pool.tsx";
import { EditPool } from "./edit-pool.tsx";
import { POOLS, type Pool } from "./pool.ts";

export default function PoolsPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const list = $api.useInfiniteQuery(
    "get",
    POOLS,
    { params: { query: { limit: 100, ...(q && { pool_name_pattern: `%${q}%` }) } } },
    {
      ...offsetPages(
        (page: { pools: readonly Pool[]; total_entries: number }) => page.pools,
        (page) => page.total_entries,
      ),
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ pools }) => pools), [list.data]);
  useReload("settings", [POOLS]);
  return (
    <NamedListPage
      kind={POOL_KIND}
      title="Pools"
      facts="A pool limits how many tasks run at once, over all DAGs."
      query={list}
      rows={rows}
      nameHeader="Name"
      nameOf={nameOf}
      columns={COLUMNS}
      empty={<Empty title="No pool has this name" command="tradewind pools set warehouse 4" />}
      canDelete={isOwn}
      edit={(pool, onClose) => <EditPool pool={pool} onClose={onClose} />}
      remove={(pool, onClose) => <DeletePool pool={pool} onClose={onClose} />}
    />
  );
}

const nameOf = ({ name }: Pool) => name;
const isOwn = ({ name }: Pool) => name !== "default_pool";

const state = (id: keyof Pool & `${string}_slots`, header: string): Column<Pool> => ({
  id,
  header,
  numeric: true,
  width: "90px",
  from: "md",
  cell: (pool) => (pool[id] === 0 ? <span className="text-faint">0</span> : count(pool[id])),
});

const COLUMNS: readonly Column<Pool>[] = [
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
    cell: ({ description }) => <span className="block max-w-[60ch] truncate text-muted">{description}</span>,
  },
];
