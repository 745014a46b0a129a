/** Numbers in the rail, from the same answer as the home page, and the open approvals. */
import { $api } from "../api/client.ts";
import { useReload } from "../live/reload.ts";
import { bounded, count } from "../time/format.ts";

export function RailCounts({ page }: { readonly page: string }) {
  if (page === "/waiting" || page === "/errors") return <Count page={page} />;
  if (page === "/approvals") return <OpenApprovals />;
  return null;
}

function OpenApprovals() {
  const { data } = $api.useQuery("get", "/api/v2/approvals", {
    params: { query: { state: ["open"], limit: 1 } },
  });
  useReload("approvals", ["/api/v2/approvals", "/api/v2/approvals/{approval_id}"]);
  if (!data?.total_entries) return null;
  return <span className="ml-auto text-sm text-faint tabular-nums">{count(data.total_entries)}</span>;
}

function Count({ page }: { readonly page: "/waiting" | "/errors" }) {
  const { data } = $api.useQuery("get", "/ui/home", { params: { query: {} } });
  if (data === undefined) return null;
  if (page === "/waiting" && data.counts.waiting.count > 0)
    return <span className="ml-auto text-sm text-faint tabular-nums">{bounded(data.counts.waiting)}</span>;
  if (page === "/errors" && data.errors.import_errors > 0)
    return (
      <span className="ml-auto text-sm font-semibold text-danger tabular-nums">
        {data.errors.import_errors}
      </span>
    );
  return null;
}
