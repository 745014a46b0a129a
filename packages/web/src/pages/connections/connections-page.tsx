/** Which other systems do tasks and triggers reach? */
import { useMemo } from "react";
import { apiPath } from "../../actions/api-call.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Confirm } from "../../actions/confirm.tsx";
import { $api } from "../../api/client.ts";
import { textOf, useSearchState } from "../../app/search.ts";
import { useReload } from "../../live/reload.ts";
import { CONNECTION_KIND } from "../../settings/kinds.ts";
import { NamedListPage } from "../../settings/named-list-page.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { offsetPages } from "../../ui/offset-pages.ts";
import { Empty } from "../../ui/panels.tsx";
import { addressOf, CONNECTIONS, type Connection } from "./connection.ts";
import { EditConnection } from "./edit-connection.tsx";

export default function ConnectionsPage() {
  const [search] = useSearchState();
  const q = textOf(search, "q") ?? "";
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
  return (
    <NamedListPage
      kind={CONNECTION_KIND}
      title="Connections"
      facts={
        <span>
          Tasks read them with <code>await ctx.connection(id)</code>. Passwords can be written here, and never
          read.
        </span>
      }
      query={list}
      rows={rows}
      nameHeader="Id"
      nameOf={nameOf}
      columns={COLUMNS}
      empty={
        <Empty
          title={q ? "No connection has this id" : "There is no connection yet"}
          command="tradewind connections set warehouse --uri 'postgres://user:password@db.example.com:5432/sales'"
        >
          A connection is the address of another system and how to sign in there: a database, a bucket, a mail
          server.
        </Empty>
      }
      edit={(connection, onClose) => <EditConnection connection={connection} onClose={onClose} />}
      remove={(connection, onClose) => <DeleteConnection id={nameOf(connection)} onClose={onClose} />}
    />
  );
}

const nameOf = ({ connection_id }: Connection) => connection_id;

function DeleteConnection({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  return (
    <Confirm
      title={`Delete connection ${id}?`}
      action={`Delete connection ${id}`}
      done={`Connection ${id} is deleted`}
      reload={[CONNECTIONS]}
      request={{ method: "DELETE", path: apiPath`/connections/${id}` }}
      cli={commandOf("tradewind", "connections", "delete", id, "--yes")}
      onClose={onClose}
    >
      <p>A task that reads a missing connection fails, and is not retried.</p>
    </Confirm>
  );
}

const COLUMNS: readonly Column<Connection>[] = [
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
    cell: ({ description }) => <span className="block max-w-[50ch] truncate text-muted">{description}</span>,
  },
];
