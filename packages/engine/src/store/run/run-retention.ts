/**
 * Deletes old ended runs with everything that belongs to them, by cascading foreign keys. A transaction deletes runs with
 * about `rows` rows together. A run that has more rows is emptied in batches first, its tasks last: a map of 100,000 must
 * not become one transaction.
 *
 * Kept regardless of age: the previous run by date of an unfinished run, which may depend on it (`dependsOnPast`); the
 * newest run of a DAG, for its next run; runs of an open backfill, for its counts; runs with a pending callback or
 * delivery.
 *
 * Locked rows are skipped, so that an edit waits for one batch at most, and retention waits for no edit. A separate
 * statement checks the condition again on the locked rows, including later commits: a run that was just cleared stays.
 * Crash before the commit: no effect. Crash after it, or a lost reply: the batch is deleted, and the next call continues
 * with the rest. Concurrent calls: each takes rows that the other has not locked. A run that is cleared while it is being
 * emptied stays, without the deleted rows.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { Deletable } from "./history-count.ts";

const ENDED = "('success', 'failed')";

/** SQL for `dag_run`; $1: the age. Null: none. */
const DELETABLE = `dag_run.state IN ${ENDED} AND dag_run.ended_at < now() - $1::float8 * interval '1 millisecond'
   AND NOT EXISTS (SELECT 1 FROM callback c WHERE c.dag_run_id = dag_run.id)
   AND NOT EXISTS (SELECT 1 FROM delivery y WHERE y.dag_run_id = dag_run.id AND y.state IN ('pending', 'handed'))
   AND NOT EXISTS (SELECT 1 FROM backfill b WHERE b.id = dag_run.backfill_id AND b.ended_at IS NULL)
   AND NOT EXISTS (SELECT 1 FROM backfill_date d JOIN backfill b ON b.id = d.backfill_id
                   WHERE d.dag_run_id = dag_run.id AND b.ended_at IS NULL)
   AND (dag_run.logical_date IS NULL OR coalesce(
     (SELECT n.state FROM dag_run n WHERE n.dag_id = dag_run.dag_id AND n.logical_date > dag_run.logical_date
      ORDER BY n.logical_date LIMIT 1),
     (SELECT CASE WHEN g.is_stale THEN 'success' END FROM dag g WHERE g.dag_id = dag_run.dag_id)) IN ${ENDED})`;

/** For counting. */
export const DELETABLE_RUNS: Deletable = {
  table: "dag_run",
  key: "id",
  old: DELETABLE,
  takes: ["run_drive", "run_start", "asset_event_run"],
};

/** Index: dag_run_ended. */
const CHOOSE = statement(
  "clean-choose-runs",
  `SELECT id, ended_at FROM dag_run
   WHERE ${DELETABLE} AND ended_at >= coalesce($3::timestamptz, '-infinity') ORDER BY ended_at LIMIT $2
   FOR UPDATE SKIP LOCKED`,
);

/** Tables with many rows per run, in the order in which a large run is emptied. */
const PARTS = [
  "attempt_version",
  "task_attempt",
  "deferral",
  "journal",
  "xcom",
  "map_label",
  "delivery",
  "task_instance",
] as const;

const SIZES = statement(
  "clean-size-runs",
  `SELECT u.id, 1 + ${PARTS.map((table) => `(SELECT count(*) FROM ${table} p WHERE p.dag_run_id = u.id)`).join(" + ")} AS size
   FROM unnest($1::bigint[]) WITH ORDINALITY AS u(id, place) ORDER BY u.place`,
);

const REMOVE = statement(
  "clean-remove-runs",
  `DELETE FROM dag_run WHERE id = ANY($2::bigint[]) AND ${DELETABLE} RETURNING id`,
);

const IS_STILL = statement("clean-still-run", `SELECT id FROM dag_run WHERE id = $2 AND ${DELETABLE}`);

const EMPTY = PARTS.map((table) =>
  statement(
    `clean-empty-${table}`,
    `DELETE FROM ${table}
     WHERE ctid = ANY(ARRAY(SELECT ctid FROM ${table} WHERE dag_run_id = $1 LIMIT $2)) RETURNING 1`,
  ),
);

/** Where the last batch stopped: earlier rows were kept or locked, and are not read again. */
export interface RunCursor {
  readonly endedAt: Date;
  /** The average number of rows per run in the last batch. */
  readonly rowsPerRun: number;
}

export interface RemovedRuns {
  readonly runs: number;
  /** Null: nothing left. */
  readonly cursor: RunCursor | null;
}

/** One batch of about `rows` rows, within a transaction of the caller. */
export async function removeRuns(
  tx: Connection,
  { cursor, olderThanMs, rows }: { cursor: RunCursor | null; olderThanMs: number; rows: number },
): Promise<RemovedRuns> {
  const most = Math.max(1, Math.min(rows, Math.ceil(rows / (cursor?.rowsPerRun ?? 10))));
  const chosen = await tx.rows<{ id: number; ended_at: Date }>(CHOOSE, [
    olderThanMs,
    most,
    cursor?.endedAt ?? null,
  ]);
  const first = chosen[0];
  if (!first) return { runs: 0, cursor: null };
  const sizes = await tx.rows<{ id: number; size: number }>(SIZES, [chosen.map(({ id }) => id)]);
  let taken = 0;
  const fitting: number[] = [];
  for (const { id, size } of sizes) {
    if (taken + size > rows) break;
    taken += size;
    fitting.push(id);
  }
  if (fitting.length === 0) {
    const large = sizes[0]!;
    const isLeft = await emptyRun(tx, { id: large.id, olderThanMs, rows });
    const rowsPerRun = Math.max(1, large.size - rows);
    // If it was cleared meanwhile, the next batch does not find it anyway.
    return { runs: 0, cursor: { endedAt: first.ended_at, rowsPerRun: isLeft ? rowsPerRun : 10 } };
  }
  const removed = await tx.rows(REMOVE, [olderThanMs, fitting]);
  const endedAt = chosen[fitting.length - 1]!.ended_at;
  return { runs: removed.length, cursor: { endedAt, rowsPerRun: taken / fitting.length } };
}

/** Deletes at most `rows` rows of it; the run's row is locked. False: the run no longer qualifies. */
async function emptyRun(
  tx: Connection,
  { id, olderThanMs, rows }: { id: number; olderThanMs: number; rows: number },
): Promise<boolean> {
  if (!(await tx.one(IS_STILL, [olderThanMs, id]))) return false;
  let left = rows;
  for (const empty of EMPTY) {
    if (left > 0) left -= (await tx.rows(empty, [id, left])).length;
  }
  return true;
}

const EXISTING = statement(
  "clean-existing-runs",
  `SELECT id FROM dag_run WHERE id = ANY($2::bigint[]) AND (${DELETABLE}) IS NOT TRUE`,
);

/** The numbers among these that runs have. With an age: without runs that ended before it. */
export async function existingRuns(
  db: Connection,
  { ids, olderThanMs }: { ids: readonly number[]; olderThanMs: number | null },
): Promise<ReadonlySet<number>> {
  return new Set((await db.rows<{ id: number }>(EXISTING, [olderThanMs, ids])).map(({ id }) => id));
}
