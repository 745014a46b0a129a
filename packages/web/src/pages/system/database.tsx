import type { components } from "../../api/schema.gen.ts";
import { bytes, count, duration } from "../../time/format.ts";
import { Meter } from "../../ui/meter.tsx";
import { Facts } from "../../ui/page.tsx";

type State = components["schemas"]["UiDatabase"];

/** A transaction of the engine takes milliseconds. */
const LONG_S = 60;
const MANY_CONNECTIONS = 0.9;

export function Database({ state }: { readonly state: State }) {
  const { connections, max_connections: most, oldest_transaction: oldest } = state;
  const isLong = oldest !== null && oldest.age_seconds >= LONG_S;
  const isFull = connections >= most * MANY_CONNECTIONS;
  return (
    <div className="flex max-w-3xl flex-col gap-4 p-4">
      <Facts
        rows={[
          ["Answers in", state.latency_ms < 1 ? "less than 1 ms" : duration(state.latency_ms)],
          ["PostgreSQL", state.version],
          ["Size", bytes(state.size_bytes)],
          [
            "Connections",
            <span key="connections" className="grid grid-cols-[120px_1fr] items-center gap-3">
              <Meter
                label={`${connections} of ${most} connections are used`}
                total={most}
                parts={[{ value: connections, color: isFull ? "--s-failed" : "--s-running" }]}
              />
              <span className="tabular-nums">
                {count(connections)} of {count(most)}
              </span>
            </span>,
          ],
          [
            "Oldest transaction",
            oldest === null ? (
              "none is open"
            ) : (
              <span key="oldest">
                <span className={isLong ? "font-medium text-danger" : undefined}>
                  {duration(oldest.age_seconds * 1_000)}
                </span>{" "}
                <span className="text-muted">
                  session {oldest.pid}
                  {oldest.application !== null && `, ${oldest.application}`}, user {oldest.user},{" "}
                  {oldest.state}
                </span>
              </span>
            ),
          ],
        ]}
      />
      {isLong && (
        <p>
          While a transaction is open, PostgreSQL cannot remove rows that were deleted since, and signals may
          have to wait for it. To end it: <code>SELECT pg_terminate_backend({oldest.pid})</code>
        </p>
      )}
      {isFull && (
        <p>Services cannot connect when no connection is left. Raise max_connections, or stop clients.</p>
      )}
    </div>
  );
}
