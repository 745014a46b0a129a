/** Which other systems do tasks and triggers reach? */
import { Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { $api, api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { IconButton } from "../../ui/button.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { NamedListHeader } from "../../ui/named-list-header.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { PagedTable } from "../../ui/paged-table.tsx";
import { Empty } from "../../ui/panels.tsx";
import { addressOf, CONNECTIONS, type Connection } from "./connection.ts";
import { EditConnection } from "./edit-connection.tsx";

export default function ConnectionsPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
  const [edited, setEdited] = useState<Connection | "new" | null>(null);
  const [deleted, setDeleted] = useState<Connection | null>(null);
  const list = $api.useInfiniteQuery(
    "get",
    CONNECTIONS,
    { params: { query: { limit: 100, ...(q && { connection_id_pattern: `%${q}%` }) } } },
    {
      ...offsetPages(
        (page: { connections: readonly Connection[]; total_entries: number }) => page.connections,
        (page) => page.total_entries,
      ),
    },
  );
  useReload("settings", [CONNECTIONS]);
  const rows = useMemo(() => (list.data?.pages ?? []).flatMap(({ connections }) => connections), [list.data]);
  const columns = useMemo(() => columnsOf(setEdited, setDeleted), []);
  return (
    <>
      <NamedListHeader
        title="Connections"
        facts={
          <span>
            Tasks read them with <code>await ctx.connection(id)</code>. Passwords can be written here, and
            never read.
          </span>
        }
        filter="Filter by id"
        create="New connection"
        onCreate={() => setEdited("new")}
      />
      <div className="min-h-0 flex-1 border-t border-line">
        <PagedTable
          query={list}
          empty={
            <Empty
              title={q ? "No connection has this id" : "There is no connection yet"}
              command="tradewind connections set warehouse --uri 'postgres://user:password@db.example.com:5432/sales'"
            >
              A connection is the address of another system and how to sign in there: a database, a bucket, a
              mail server.
            </Empty>
          }
          label="Connections"
          columns={columns}
          rows={rows}
          rowKey={({ connection_id }) => connection_id}
          onOpen={setEdited}
        />
      </div>
      {edited !== null && (
        <EditConnection connection={edited === "new" ? null : edited} onClose={() => setEdited(null)} />
      )}
      {deleted !== null && (
        <Confirm
          title={`Delete connection ${deleted.connection_id}?`}
          action={`Delete connection ${deleted.connection_id}`}
          done={`Connection ${deleted.connection_id} is deleted`}
          reload={[CONNECTIONS]}
          run={() =>
            api.DELETE("/api/v2/connections/{connection_id}", {
              params: { path: { connection_id: deleted.connection_id } },
            })
          }
          cli={commandOf("tradewind", "connections", "delete", deleted.connection_id, "--yes")}
          request={{ method: "DELETE", path: `${CONNECTIONS}/${encodeURIComponent(deleted.connection_id)}` }}
          onClose={() => setDeleted(null)}
        >
          <p>A task that reads a missing connection fails, and is not retried.</p>
        </Confirm>
      )}
    </>
  );
}

function columnsOf(
  onEdit: (connection: Connection) => void,
  onDelete: (connection: Connection) => void,
): readonly Column<Connection>[] {
  return [
    {
      id: "id",
      header: "Id",
      cell: (connection) => (
        <button type="button" className="font-medium hover:underline" onClick={() => onEdit(connection)}>
          {connection.connection_id}
        </button>
      ),
    },
    { id: "type", header: "Type", width: "100px", cell: ({ conn_type }) => conn_type },
    {
      id: "address",
      header: "Address",
      cell: (connection) => (
        <code className="block max-w-[60ch] truncate text-muted">{addressOf(connection)}</code>
      ),
    },
    {
      id: "description",
      header: "Description",
      from: "md",
      cell: ({ description }) => (
        <span className="block max-w-[50ch] truncate text-muted">{description}</span>
      ),
    },
    {
      id: "actions",
      header: <span className="sr-only">Actions</span>,
      width: "56px",
      cell: (connection) => (
        <IconButton label={`Delete ${connection.connection_id}`} onClick={() => onDelete(connection)}>
          <Trash2 />
        </IconButton>
      ),
    },
  ];
}
