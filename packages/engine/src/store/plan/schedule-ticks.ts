/**
 * The times of schedules that are more than times: when one has come, the log is told, and what that means is for the
 * schedule's condition. In the transaction that plans the next one, with the DAGs' rows locked: whoever tells of a DAG's
 * schedule has locked the DAG. Died before: the time is still to come. Died after: it was told, once.
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

export async function tellTicks(tx: Connection, ticks: readonly ScheduleTick[]): Promise<void> {
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
