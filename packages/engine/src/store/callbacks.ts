/** Callbacks as rows: written with the event they belong to, deleted when a worker has run them (`endCallbacks`). At least once. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "./database.ts";
import { RUN_COLUMNS, type RunRow } from "./run-row.ts";
import { statement } from "./statement.ts";

export interface StoredCallback extends RunRow {
  readonly id: string;
  readonly dag_run_id: number;
  readonly task_id: string | null;
  readonly map_index: number | null;
  readonly group_id: string | null;
  readonly event: "success" | "failure" | "retry" | "deadline";
  /** With the event "deadline": which one, which of its actions, and when it was due. */
  readonly deadline_ordinal: number | null;
  readonly deadline_place: number | null;
  readonly deadline_due_at: Date | null;
  readonly try_number: number;
  readonly error: Json;
  readonly bundle_hash: string;
}

const COLUMNS = `c.id, c.dag_run_id, c.task_id, c.map_index, c.group_id, c.event, c.try_number, c.error, ${RUN_COLUMNS}, v.bundle_hash,
  d.ordinal AS deadline_ordinal, y.place AS deadline_place, y.due_at AS deadline_due_at`;

const LOAD = statement(
  "callback-load",
  `SELECT ${COLUMNS} FROM callback c JOIN dag_run r ON r.id = c.dag_run_id JOIN dag_version v ON v.id = r.version_id
     LEFT JOIN deadline_delivery y ON y.id = c.delivery_id LEFT JOIN deadline d ON d.id = y.deadline_id
   WHERE c.id = ANY($1)`,
);

/**
 * Callbacks that nobody is running: those of jobs that are over, and the job's own that it does not have in hand (its
 * hands failed it, or nobody told it that the row was stored after all). A lease that merely ran out is no reason:
 * after a time without database all have, and their owners are still running what they own. `tries` counts the jobs
 * that died over a callback; after five it is left where it is, for people to see.
 */
const ADOPT = statement(
  "callback-adopt",
  `UPDATE callback SET owner_job = $1, tries = tries + CASE WHEN owner_job = $1 THEN 0 ELSE 1 END
   WHERE id IN (
     SELECT c.id FROM callback c LEFT JOIN job j ON j.id = c.owner_job
     WHERE c.tries < 5 AND c.id <> ALL($2::uuid[])
       AND (j.id IS NULL OR j.state <> 'running'
            OR c.owner_job = $1 AND c.created_at < now() - $3 * interval '1 millisecond')
     ORDER BY c.created_at LIMIT 100 FOR UPDATE OF c SKIP LOCKED)
   RETURNING id`,
);

/** A row of the job's own that is younger may be on its way: stored, and not yet submitted. */
const ON_ITS_WAY_MS = 5_000;

export function loadCallbacks(db: Connection, ids: readonly string[]): Promise<StoredCallback[]> {
  return db.rows<StoredCallback>(LOAD, [ids]);
}

/** `inHand`: the ids to leave alone. */
export async function adoptCallbacks(
  db: Connection,
  jobId: number,
  inHand: readonly string[],
): Promise<string[]> {
  return (await db.rows<{ id: string }>(ADOPT, [jobId, inHand, ON_ITS_WAY_MS])).map((row) => row.id);
}
