/**
 * Objects that hold large outputs. A row is made before its object, so that whatever exists is known; the output refers
 * to it in the batch that stores the success.
 *
 * Dies after the row: a row without an object, or with one that no output refers to; the sweep removes both. The answer
 * is lost: the same, the attempt fails and another one makes a row of its own. Two at once: each attempt has its own row
 * and key. Woke up late: the batch refuses the attempt (TW003), its row stays unreferenced. While an attempt is under
 * way its row is kept whatever happens: a foreign key holds what an output refers to, the sweep asks for the rest in one
 * statement, which sees either the attempt or the output.
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

const REGISTER = statement(
  "objects-register",
  `INSERT INTO output_object (dag_run_id, task_id, map_index, attempt, store, key, bytes, sha256, items)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
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
 * $2: how old it must be, so that nobody who made the row is still writing its object. Subqueries that cannot become
 * joins: one look into an index for each object, however many tasks there are.
 */
const unused = (isReference: string) => `FROM output_object o
   WHERE o.created_at < now() - $2::float8 * interval '1 millisecond'
     AND (SELECT count(*) FROM xcom x WHERE x.object_id = o.id ${isReference}) = 0
     AND coalesce((SELECT t.attempt IS DISTINCT FROM o.attempt OR t.state NOT IN ('queued', 'running', 'restarting')
                   FROM task_instance t WHERE t.dag_run_id = o.dag_run_id AND t.task_id = o.task_id
                     AND t.map_index = o.map_index), true)`;

/** $1: the age of runs that are taken for gone; null: none is. */
const COUNT_UNUSED = statement(
  "objects-count-unused",
  `SELECT count(*) AS n ${unused(`AND EXISTS (
     SELECT 1 FROM dag_run WHERE dag_run.id = x.dag_run_id AND (${DELETABLE_RUNS.old}) IS NOT TRUE)`)}`,
);

/** $1: after which row. */
const LIST_UNUSED = statement(
  "objects-list-unused",
  `SELECT o.id, o.store, o.key ${unused("")} AND o.id > $1 ORDER BY o.id LIMIT $3`,
);

/** An attempt that is over never comes back: what was unused stays so. */
const REMOVE = statement("objects-remove", "DELETE FROM output_object WHERE id = ANY($1::bigint[])");

/** Before the object is written; answers its reference. */
export async function registerObject(db: Connection, draft: ObjectDraft): Promise<OutputReference> {
  const { attempt, mapIndex, runId, taskId, ...facts } = draft;
  const { bytes, items, key, sha256, store } = facts;
  const values = [runId, taskId, mapIndex, attempt, store, key, bytes, sha256, items];
  const row = await db.one<{ id: number }>(REGISTER, values);
  return { id: row!.id, ...facts };
}

/** An output as it is stored: by value, or by reference. */
export interface StoredValue {
  readonly value: Json;
  readonly object_id: number | null;
}

/** The rows with what stands for large outputs; references are asked for only where there are any. */
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

/** Outputs of a batch that are references. */
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

/** With an age of runs: that will be unused once what ended before that is gone. */
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

/** Once their objects are gone. */
export async function removeObjectRows(db: Connection, ids: readonly number[]): Promise<void> {
  await db.rows(REMOVE, [ids]);
}
