import { RotateCcw } from "lucide-react";
import { apiPath } from "../../actions/api-call.ts";
import { change } from "../../actions/change.ts";
import { commandOf } from "../../actions/command-text.ts";
import { Twin } from "../../actions/twin.tsx";
import type { components } from "../../api/schema.gen.ts";
import { Ago } from "../../time/time.tsx";
import { Button } from "../../ui/button.tsx";
import { type Column, DataTable } from "../../ui/data-table.tsx";
import { Empty, Loads } from "../../ui/panels.tsx";

type DeadLetter = components["schemas"]["SignalDeadLetter"];

interface LettersQuery {
  readonly data: { readonly dead_letters: readonly DeadLetter[] } | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}

export function DeadLetters({ query }: { readonly query: LettersQuery }) {
  return (
    <div className="min-w-0 flex-1">
      <Loads query={query}>
        {({ dead_letters: letters }) =>
          letters.length === 0 ? (
            <Empty title="Every signal was delivered" command="tradewind signals dead-letters list">
              A signal that a listener rejects again and again is set aside here, with its error, so that
              later ones are not held up.
            </Empty>
          ) : (
            <DataTable label="Dead letters" columns={COLUMNS} rows={letters} rowKey={({ id }) => id} />
          )
        }
      </Loads>
    </div>
  );
}

const COLUMNS: readonly Column<DeadLetter>[] = [
  { id: "time", header: "Time", width: "110px", cell: ({ time }) => <Ago at={time} /> },
  {
    id: "listener",
    header: "Listener",
    cell: ({ listener }) => <span className="font-medium">{listener}</span>,
  },
  { id: "key", header: "Signal", cell: ({ signal }) => <span className="font-mono">{signal.key}</span> },
  { id: "attempts", header: "Attempts", numeric: true, width: "90px", cell: ({ attempts }) => attempts },
  {
    id: "error",
    header: "Error",
    cell: ({ error }) => (
      <code className="block max-w-[60ch] truncate text-danger" title={error}>
        {error}
      </code>
    ),
  },
  {
    id: "retry",
    header: <span className="sr-only">Actions</span>,
    width: "190px",
    cell: (letter) =>
      letter.is_retried ? <span className="text-muted">being retried</span> : <Retry letter={letter} />,
  },
];

function Retry({ letter: { id, listener } }: { readonly letter: DeadLetter }) {
  const request = { method: "POST", path: apiPath`/signals/deadLetters/${id}/retry` } as const;
  return (
    <span className="flex items-center gap-1">
      <Button
        onClick={() =>
          void change({
            request,
            done: `${listener} receives the signal again`,
            reload: ["/api/v2/signals/deadLetters", "/api/v2/signals/listeners"],
          })
        }
      >
        <RotateCcw aria-hidden /> Retry delivery
      </Button>
      <Twin cli={commandOf("tradewind", "signals", "dead-letters", "retry", id)} request={request} />
    </span>
  );
}
