/** Who changed what about a DAG and its runs. */
import { useMemo } from "react";
import { $api } from "../../api/client.ts";
import type { components } from "../../api/schema.gen.ts";
import { useReload } from "../../live/reload.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { ListFooter } from "../../ui/list-footer.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { Empty, Loads } from "../../ui/panels.tsx";
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
      <Loads query={list}>
        {() =>
          rows.length === 0 ? (
            <Empty title={`No change of ${dagId} yet`} command={`tradewind events --dag ${dagId}`}>
              Triggering, clearing, marking and pausing are recorded here, with the name of the token.
            </Empty>
          ) : (
            <DataTable
              label={`Audit log of ${dagId}`}
              columns={AUDIT_COLUMNS}
              rows={rows}
              rowKey={({ event_log_id }) => event_log_id}
              footer={
                <ListFooter
                  shown={rows.length}
                  total={list.data?.pages[0]?.total_entries}
                  hasMore={list.hasNextPage}
                  isLoading={list.isFetchingNextPage}
                  onMore={list.fetchNextPage}
                />
              }
            />
          )
        }
      </Loads>
    </div>
  );
}
