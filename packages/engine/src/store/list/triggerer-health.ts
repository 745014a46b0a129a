/** How the triggerers are: for the health check and for `doctor`. */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import type { TriggererFacts } from "../trigger/triggers.ts";
import { liveTriggerers } from "./jobs.ts";

export interface TriggererHealth {
  readonly triggers: number;
  readonly capacity: number;
  /** Triggerers that run as many triggers as they may. */
  readonly full: number;
  readonly crashes: number;
  readonly suspects: number;
  /** Triggers that should run and that no triggerer has claimed for a while, by queue. */
  readonly unclaimed: readonly { readonly queue: string; readonly triggers: number }[];
}

/** A new trigger is owned within 200 ms; after this long something is wrong. */
const UNCLAIMED_MS = 5_000;
/** Counted no further: this is asked for often, and without a token. */
const MAX_UNCLAIMED = 1_000;

/** From queue to queue by one step in the index, however many triggers wait in each for their moment. */
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
  // One that has just started has told nothing yet; one of an earlier version less.
  const facts = jobs.map((job) => (job.facts ?? {}) as Partial<TriggererFacts>);
  const sum = (name: "triggers" | "capacity" | "crashes" | "suspects") =>
    facts.reduce((total, each) => total + (each[name] ?? 0), 0);
  return {
    ...{ triggers: sum("triggers"), capacity: sum("capacity") },
    full: facts.filter(({ triggers = 0, capacity = 1 }) => triggers >= capacity).length,
    ...{ crashes: sum("crashes"), suspects: sum("suspects"), unclaimed },
  };
}
