/**
 * Times of schedules that are part of a condition: when one has come, a signal is sent, and the condition decides about a
 * run. The signal is sent in the transaction that plans the next time, with the DAGs' rows locked, as required for
 * signals about a schedule. Crash before the commit: the time is still due. Crash after it: the signal was sent once.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface ScheduleTick {
  readonly dagId: string;
  readonly logicalDate: number | null;
  readonly runAfter: number;
}

const TELL = statement(
  "schedule-tell-ticks",
  `INSERT INTO signal (namespace, key, value, sender)
   SELECT 'schedule', u.dag, u.value, 'engine' FROM unnest($1::text[], $2::json[]) AS u(dag, value)`,
);

export async function publishTicks(tx: Connection, ticks: readonly ScheduleTick[]): Promise<void> {
  if (ticks.length === 0) return;
  const values = ticks.map(({ logicalDate, runAfter }) =>
    JSON.stringify({
      runId: null,
      logicalDate: logicalDate === null ? null : iso(logicalDate),
      runAfter: iso(runAfter),
    }),
  );
  await tx.rows(TELL, [ticks.map(({ dagId }) => dagId), values]);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
