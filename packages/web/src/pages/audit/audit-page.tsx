/** Who did what, and when? */
import { useCallback, useMemo } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { SearchBox } from "../../ui/field.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PageHeader } from "../../ui/page.tsx";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { AUDIT_COLUMNS } from "./audit-columns.tsx";

type Entry = components["schemas"]["EventLogResponse"];

export default function AuditPage() {
  const [search, setSearch] = useSearchState();
  const who = textOf(search, "who") ?? "";
  const what = textOf(search, "what") ?? "";
  const dag = textOf(search, "dag") ?? "";
  const list = $api.useInfiniteQuery(
    "get",
    "/api/v2/eventLogs",
    {
      params: {
        query: {
          limit: 100,
          order_by: ["-when"],
          ...(who && { owner_pattern: `%${who}%` }),
          ...(what && { event_pattern: `%${what}%` }),
          ...(dag && { dag_id_pattern: `%${dag}%` }),
        },
      },
    },
    {
      ...offsetPages(
        (page: { event_logs: readonly Entry[]; total_entries: number }) => page.event_logs,
        (page) => page.total_entries,
      ),
    },
  );
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ event_logs }) => event_logs), [list.data]);
  useReload("audit", ["/api/v2/eventLogs"]);
  return (
    <>
      <PageHeader
        title="Audit"
        facts="Every change by a person or a program, with the name of the token that made it."
        actions={
          <>
            <SearchBox
              label="By whom"
              value={who}
              onChange={useCallback((text) => setSearch({ who: text }), [setSearch])}
              className="w-36"
            />
            <SearchBox
              label="Action"
              value={what}
              onChange={useCallback((text) => setSearch({ what: text }), [setSearch])}
              className="w-36"
            />
            <SearchBox
              label="DAG"
              value={dag}
              onChange={useCallback((text) => setSearch({ dag: text }), [setSearch])}
              className="w-36"
            />
          </>
        }
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={
            <Empty title="No change matches" command="tradewind events --limit 20">
              Triggering, clearing, pausing, editing and signing in are recorded here.
            </Empty>
          }
          label="Audit log"
          columns={AUDIT_COLUMNS}
          rows={rows}
          rowKey={({ event_log_id }) => event_log_id}
        />
      </div>
    </>
  );
}
