import type { components } from "../../api/schema.gen.ts";
import { count } from "../../time/format.ts";
import { Ago } from "../../time/time.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";

type Listener = components["schemas"]["SignalListener"];

interface ListenersQuery {
  readonly data: { readonly listeners: readonly Listener[] } | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

export function Listeners({ query }: { readonly query: ListenersQuery }) {
  return (
    <div className="min-w-0 flex-1">
      <Loads query={query}>
        {({ listeners }) =>
          listeners.length === 0 ? (
            <Empty title="No program listens by name" command="tradewind signals listen 'model.*'">
              A named listener keeps its position in the log: it receives every signal, also those sent while
              it was away.
            </Empty>
          ) : (
            <DataTable label="Listeners" columns={COLUMNS} rows={listeners} rowKey={({ name }) => name} />
          )
        }
      </Loads>
    </div>
  );
}

const COLUMNS: readonly Column<Listener>[] = [
  { id: "name", header: "Listener", cell: ({ name }) => <span className="font-medium">{name}</span> },
  {
    id: "active",
    header: "State",
    width: "110px",
    cell: ({ is_active }) => (is_active ? "listening" : "away"),
  },
  {
    id: "behind",
    header: "Behind",
    numeric: true,
    width: "100px",
    cell: ({ behind }) => (
      <span className={behind > 0 ? "font-semibold" : "text-faint"}>{count(behind)}</span>
    ),
  },
  {
    id: "processed",
    header: "Processed",
    numeric: true,
    width: "110px",
    cell: ({ processed }) => count(processed),
  },
  {
    id: "retrying",
    header: "Retrying",
    numeric: true,
    width: "100px",
    cell: ({ retrying }) => <span title={retrying[0]?.error ?? undefined}>{count(retrying.length)}</span>,
  },
  {
    id: "dead",
    header: "Dead letters",
    numeric: true,
    width: "110px",
    cell: ({ dead_letters }) => count(dead_letters),
  },
  {
    id: "seen",
    header: "Last seen",
    width: "120px",
    from: "md",
    cell: ({ seen_at }) => <Ago at={seen_at} />,
  },
  {
    id: "host",
    header: "Host",
    from: "lg",
    cell: ({ host }) => <span className="text-muted">{host ?? "–"}</span>,
  },
];
