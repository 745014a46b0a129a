/**
 * Objects that hold large outputs. A row is created before its object, so that every object has a row; the output
 * references it in the batch that stores the success.
 *
 * Crash after the row, or a lost reply: the row has no object, or an object without a reference; the attempt fails, and
 * the sweep removes both. A repeated call finds the row. Concurrent attempts: each has its own row and key. Stale attempt: its batch is rejected (TW003)
 * and its row stays unreferenced. The row of a running attempt is never removed. A foreign key protects the rows of
 * outputs; the sweep checks both in one statement, which sees either the attempt or the output.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { LargeValue, type OutputReference } from "../../model/index.ts";
import { type Call, type Connection, call } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { DELETABLE_RUNS } from "../run/run-retention.ts";

export interface ObjectDraft extends Omit<OutputReference, "id"> {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly attempt: string;
}

/** A second row with the same key would be swept as unused, and the object with it. The update returns the row. */
const REGISTER = statement(
  "objects-register",
  `INSERT INTO output_object AS o (dag_run_id, task_id, map_index, attempt, store, key, bytes, sha256, items)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
   ON CONFLICT (attempt) DO UPDATE SET items = o.items WHERE (o.bytes, o.sha256) = (EXCLUDED.bytes, EXCLUDED.sha256)
   RETURNING id, store`,
);

const LOAD = statement(
  "objects-load",
  `SELECT o.id, o.store, o.key, o.bytes, o.sha256, o.items, r.run_id AS run
   FROM output_object o LEFT JOIN dag_run r ON r.id = o.dag_run_id WHERE o.id = ANY($1::bigint[])`,
);

const REFER = statement(
  "objects-refer",
  `INSERT INTO xcom (dag_run_id, task_id, map_index, key, object_id)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::bigint[])
   ON CONFLICT (dag_run_id, task_id, map_index, key)
     DO UPDATE SET value = NULL, object_id = EXCLUDED.object_id, created_at = now()`,
);

/**
 * $2: minimum age, so that the object is no longer being written. Subqueries that PostgreSQL cannot turn into joins: one
 * index lookup per object, however many tasks there are.
 */
const unused = (isReference: string) => `FROM output_object o
   WHERE o.created_at < now() - $2::float8 * interval '1 millisecond'
     AND (SELECT count(*) FROM xcom x WHERE x.object_id = o.id ${isReference}) = 0
     AND coalesce((SELECT t.attempt IS DISTINCT FROM o.attempt OR t.state NOT IN ('queued', 'running', 'restarting')
                   FROM task_instance t WHERE t.dag_run_id = o.dag_run_id AND t.task_id = o.task_id
                     AND t.map_index = o.map_index), true)`;

/** $1: runs older than this count as deleted; null: none. */
const COUNT_UNUSED = statement(
  "objects-count-unused",
  `SELECT count(*) AS n ${unused(`AND EXISTS (
     SELECT 1 FROM dag_run WHERE dag_run.id = x.dag_run_id AND (${DELETABLE_RUNS.old}) IS NOT TRUE)`)}`,
);

/** $1: the last row of the previous page. */
const LIST_UNUSED = statement(
  "objects-list-unused",
  `SELECT o.id, o.store, o.key ${unused("")} AND o.id > $1 ORDER BY o.id LIMIT $3`,
);

/** An ended attempt does not resume, so an unused object stays unused. */
const REMOVE = statement("objects-remove", "DELETE FROM output_object WHERE id = ANY($1::bigint[])");

/**
 * Called before the object is written; returns its reference, or that of an earlier call.
 * @throws if the attempt has another output already.
 */
export async function registerObject(db: Connection, draft: ObjectDraft): Promise<OutputReference> {
  const { attempt, mapIndex, runId, taskId, ...facts } = draft;
  const { bytes, items, key, sha256, store } = facts;
  const values = [runId, taskId, mapIndex, attempt, store, key, bytes, sha256, items];
  const row = await db.one<{ id: number; store: string }>(REGISTER, values);
  if (row === undefined) throw new Error("the attempt has stored another output");
  return { ...facts, ...row };
}

const OF_ATTEMPTS = statement(
  "objects-of-attempts",
  `SELECT o.attempt, o.id, o.store, o.key, o.bytes, o.sha256, o.items, r.run_id AS run
   FROM output_object o LEFT JOIN dag_run r ON r.id = o.dag_run_id WHERE o.attempt = ANY($1::uuid[])`,
);

/** The objects that these attempts have stored, by attempt. */
export async function objectsOfAttempts(
  db: Connection,
  attempts: readonly string[],
): Promise<ReadonlyMap<string, OutputReference>> {
  const rows = await db.rows<OutputReference & { attempt: string }>(OF_ATTEMPTS, [attempts]);
  return new Map(rows.map(({ attempt, ...reference }) => [attempt, reference]));
}

export async function findObject(db: Connection, id: number): Promise<OutputReference | undefined> {
  return await db.one<OutputReference>(LOAD, [[id]]);
}

/** A stored output: a value or a reference. */
export interface StoredValue {
  readonly value: Json;
  readonly object_id: number | null;
}

/** Adds the references of large outputs; they are read only if there are any. */
export async function withReferences<R>(
  db: Connection,
  rows: readonly (R & StoredValue)[],
): Promise<(Omit<R, "value"> & { readonly value: Json | LargeValue })[]> {
  const ids = rows.flatMap(({ object_id: id }) => id ?? []);
  if (ids.length === 0) return rows as (R & StoredValue)[];
  const found = await db.rows<OutputReference>(LOAD, [ids]);
  const references = new Map(found.map((row) => [row.id, row]));
  return rows.map((row) => {
    const reference = row.object_id === null ? undefined : references.get(row.object_id);
    return reference ? { ...row, value: new LargeValue(reference) } : row;
  });
}

/** The call of a batch for outputs that are references. */
export function referCall(
  outputs: readonly {
    readonly runId: number;
    readonly taskId: string;
    readonly mapIndex: number;
    readonly key: string;
    readonly objectId: number;
  }[],
): Call {
  return call(
    REFER,
    outputs.map(({ runId }) => runId),
    outputs.map(({ taskId }) => taskId),
    outputs.map(({ mapIndex }) => mapIndex),
    outputs.map(({ key }) => key),
    outputs.map(({ objectId }) => objectId),
  );
}

export type UnusedObject = Pick<OutputReference, "id" | "store" | "key">;

/** With an age of runs: also counts objects that become unused when the runs that ended before are deleted. */
export async function countUnusedObjects(
  db: Connection,
  { olderThanMs, runsOlderThanMs }: { olderThanMs: number; runsOlderThanMs: number | null },
): Promise<number> {
  return (await db.one<{ n: number }>(COUNT_UNUSED, [runsOlderThanMs, olderThanMs]))?.n ?? 0;
}

export function listUnusedObjects(
  db: Connection,
  { after, limit, olderThanMs }: { after: number; limit: number; olderThanMs: number },
): Promise<UnusedObject[]> {
  return db.rows<UnusedObject>(LIST_UNUSED, [after, olderThanMs, limit]);
}

/** Called after the objects are deleted. */
export async function removeObjectRows(db: Connection, ids: readonly number[]): Promise<void> {
  await db.rows(REMOVE, [ids]);
}
