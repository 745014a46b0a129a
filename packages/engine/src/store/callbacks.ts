/** Callbacks as rows: written with the event they belong to, deleted when a worker has run them. At least once. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "./database.ts";
import { RUN_COLUMNS, type RunRow } from "./run-row.ts";
import { statement } from "./statement.ts";

export interface StoredCallback extends RunRow {
  readonly id: string;
  readonly dag_run_id: number;
  readonly task_id: string | null;
  readonly event: "success" | "failure" | "retry";
  readonly try_number: number;
  readonly error: Json;
  readonly bundle_hash: string;
}

const COLUMNS = `c.id, c.dag_run_id, c.task_id, c.event, c.try_number, c.error, ${RUN_COLUMNS}, v.bundle_hash`;

const LOAD = statement(
  "callback-load",
  `SELECT ${COLUMNS} FROM callback c JOIN dag_run r ON r.id = c.dag_run_id JOIN dag_version v ON v.id = r.version_id
   WHERE c.id = ANY($1)`,
);

/** After `tries` processes died over it, a callback is left where it is, for people to see. */
const ADOPT = statement(
  "callback-adopt",
  `UPDATE callback SET owner_job = $1, tries = tries + 1
   WHERE tries < 5 AND id IN (
     SELECT c.id FROM callback c LEFT JOIN job j ON j.id = c.owner_job
     WHERE j.id IS NULL OR j.state <> 'running' OR j.lease_until <= now()
     LIMIT 100 FOR UPDATE OF c SKIP LOCKED)
   RETURNING id`,
);

const DELETE = statement("callback-delete", "DELETE FROM callback WHERE id = $1");

export function loadCallbacks(db: Connection, ids: readonly string[]): Promise<StoredCallback[]> {
  return db.rows<StoredCallback>(LOAD, [ids]);
}

export async function adoptCallbacks(db: Connection, jobId: number): Promise<string[]> {
  return (await db.rows<{ id: string }>(ADOPT, [jobId])).map((row) => row.id);
}

export async function deleteCallback(db: Connection, id: string): Promise<void> {
  await db.rows(DELETE, [id]);
}
