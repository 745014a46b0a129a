/** Who changed what about a DAG and its runs. */
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { useReload } from "../../live/reload.ts";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { AUDIT_COLUMNS } from "../audit/audit-columns.tsx";

const LOGS = "/api/v2/eventLogs";

export function AuditTab({ dagId }: { readonly dagId: string }) {
  const list = $api.useInfiniteQuery(
    "get",
    LOGS,
    { params: { query: { limit: 100, order_by: ["-when"], dag_id: dagId } } },
    offsetPages(
      (page: { event_logs: readonly components["schemas"]["EventLogResponse"][]; total_entries: number }) =>
        page.event_logs,
      (page) => page.total_entries,
    ),
  );
  useReload("audit", [LOGS]);
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ event_logs }) => event_logs), [list.data]);
  return (
    <div className="min-h-0 flex-1">
      <PagedTable
        query={list}
        empty={
          <Empty title={`No change of ${dagId} yet`} command={`tradewind events --dag ${dagId}`}>
            Triggering, clearing, marking and pausing are recorded here, with the name of the token.
          </Empty>
        }
        label={`Audit log of ${dagId}`}
        columns={AUDIT_COLUMNS}
        rows={rows}
        rowKey={({ event_log_id }) => event_log_id}
      />
    </div>
  );
}
