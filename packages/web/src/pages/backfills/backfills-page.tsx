/** Which date ranges are run again, and how far are they? */
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import { backfillPath, dagPath } from "../../app/paths.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { StateBadge } from "../../state/glyph.tsx";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PageHeader } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { Segmented } from "../../ui/tabs.tsx";
import { BACKFILLS, type Backfill, lookOfBackfill, REPROCESS } from "./backfill.ts";
import { CreateBackfill } from "./create-backfill.tsx";

export default function BackfillsPage() {
  const [search, setSearch] = useSearchState();
  const shown = textOf(search, "show") === "all" ? "all" : "open";
  const dag = textOf(search, "dag");
  const list = $api.useInfiniteQuery(
    "get",
    BACKFILLS,
    {
      params: {
        query: {
          limit: 100,
          order_by: ["-id"],
          ...(shown === "open" && { active: "true" }),
          ...(dag && { dag_id: dag }),
        },
      },
    },
    {
      ...offsetPages(
        (page: { backfills: readonly Backfill[]; total_entries: number }) => page.backfills,
        (page) => page.total_entries,
      ),
    },
  );
  useReload("backfills", [BACKFILLS]);
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ backfills }) => backfills), [list.data]);
  return (
    <>
      <PageHeader
        title="Backfills"
        actions={
          <>
            {dag && <Button onClick={() => setSearch({ dag: undefined })}>DAG {dag} ✕</Button>}
            <Segmented
              label="Backfills shown"
              options={[
                { value: "open", label: "Open" },
                { value: "all", label: "All" },
              ]}
              value={shown}
              onChange={(value) => setSearch({ show: value === "all" ? "all" : undefined })}
            />
            <Button kind="primary" onClick={() => setSearch({ create: "1" })}>
              <Plus aria-hidden /> New backfill
            </Button>
          </>
        }
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={
            <Empty
              title={shown === "open" ? "No backfill is open" : "There was no backfill yet"}
              command="tradewind backfill create <dag> --from 2026-01-01 --to 2026-01-31 --dry-run"
            >
              A backfill runs a DAG for a range of dates of its schedule, in order, with a limit of its own.
            </Empty>
          }
          label="Backfills"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ id }) => id}
        />
      </div>
      {search["create"] !== undefined && (
        <CreateBackfill dagId={dag ?? ""} onClose={() => setSearch({ create: undefined })} />
      )}
    </>
  );
}

const COLUMNS: readonly Column<Backfill>[] = [
  {
    id: "id",
    header: "Backfill",
    width: "90px",
    cell: ({ id }) => (
      <Link to={backfillPath(id)} className="font-medium hover:underline">
        {id}
      </Link>
    ),
  },
  {
    id: "dag",
    header: "DAG",
    cell: ({ dag_id }) => (
      <Link to={dagPath(dag_id)} className="hover:underline">
        {dag_id}
      </Link>
    ),
  },
  {
    id: "state",
    header: "State",
    width: "130px",
    cell: (row) => (
      <StateBadge state={lookOfBackfill(row)} label={row.is_stopping ? "stopping" : row.state} />
    ),
  },
  {
    id: "dates",
    header: "Dates",
    width: "210px",
    cell: ({ from_date, to_date }) => `${from_date.slice(0, 10)} to ${to_date.slice(0, 10)}`,
  },
  { id: "runs", header: "Runs", numeric: true, width: "80px", cell: ({ total_runs }) => count(total_runs) },
  {
    id: "limit",
    header: "At once",
    numeric: true,
    width: "80px",
    cell: ({ max_active_runs }) => count(max_active_runs),
  },
  {
    id: "existing",
    header: "Existing runs",
    width: "170px",
    from: "lg",
    cell: ({ reprocess_behavior }) => REPROCESS[reprocess_behavior],
  },
  { id: "by", header: "By", width: "100px", from: "md", cell: ({ created_by }) => created_by ?? "–" },
  { id: "created", header: "Created", width: "110px", cell: ({ created_at }) => <Ago at={created_at} /> },
];
