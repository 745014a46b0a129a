/** Health of the triggerers, for the health check and for `doctor`. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { liveTriggerers } from "../list/jobs.ts";
import type { TriggererFacts } from "../trigger/triggers.ts";

export interface TriggererHealth {
  readonly triggers: number;
  readonly capacity: number;
  /** Triggerers at their maximum number of triggers. */
  readonly full: number;
  readonly crashes: number;
  readonly suspects: number;
  /** Triggers that should run and have not been claimed for a while, by queue. */
  readonly unclaimed: readonly { readonly queue: string; readonly triggers: number }[];
}

/** A new trigger is claimed within 200 ms; a longer wait indicates a problem. */
const UNCLAIMED_MS = 5_000;
/** Limits the count: the health check is called often, and without a token. */
const MAX_UNCLAIMED = 1_000;

/** One index step per queue, however many triggers sleep in each. */
const UNCLAIMED = `
  WITH RECURSIVE queues(queue) AS (
    (SELECT min(queue) FROM trigger WHERE timed IS NULL AND owner_job IS NULL)
    UNION ALL
    SELECT (SELECT min(t.queue) FROM trigger t WHERE t.timed IS NULL AND t.owner_job IS NULL AND t.queue > q.queue)
    FROM queues q WHERE q.queue IS NOT NULL
  )
  SELECT q.queue, count(*)::int AS triggers FROM queues q CROSS JOIN LATERAL (
    SELECT 1 FROM trigger t
    WHERE t.queue = q.queue AND t.timed IS NULL AND t.owner_job IS NULL AND t.dag_id IS NULL
      AND t.wake_at <= now() - $1 * interval '1 millisecond'
    LIMIT $2) AS due
  GROUP BY q.queue ORDER BY q.queue`;

export async function triggererHealth(connection: Connection): Promise<TriggererHealth> {
  const jobs = await liveTriggerers(connection);
  const unclaimed = await connection.rows<TriggererHealth["unclaimed"][number]>(adhoc(UNCLAIMED), [
    UNCLAIMED_MS,
    MAX_UNCLAIMED,
  ]);
  // A job that has just started has no facts yet; a job of an earlier version has fewer.
  const facts = jobs.map((job) => (job.facts ?? {}) as Partial<TriggererFacts>);
  const sum = (name: "triggers" | "capacity" | "crashes" | "suspects") =>
    facts.reduce((total, each) => total + (each[name] ?? 0), 0);
  return {
    ...{ triggers: sum("triggers"), capacity: sum("capacity") },
    full: facts.filter(({ triggers = 0, capacity = 1 }) => triggers >= capacity).length,
    ...{ crashes: sum("crashes"), suspects: sum("suspects"), unclaimed },
  };
}
