/** For a scheduler that ends after a number of runs: the runs it owns, and the outcome of those it owned. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

const OWNED = statement(
  "count-owned",
  `SELECT id, parent_run_id IS NULL AS "isCounted" FROM dag_run WHERE owner_job = $1 AND state = 'running'`,
);

const ENDED = statement(
  "count-ended",
  `SELECT count(*)::int AS ended FROM dag_run
   WHERE id = ANY($1::bigint[]) AND parent_run_id IS NULL AND state IN ('success', 'failed')`,
);

export interface CountedRun {
  readonly id: number;
  /** False: a task of another run created it. */
  readonly isCounted: boolean;
}

export function countedRuns(db: Connection, jobId: number): Promise<CountedRun[]> {
  return db.rows<CountedRun>(OWNED, [jobId]);
}

/** The number of ended runs among them, without those created by tasks of other runs. */
export async function countEnded(db: Connection, ids: readonly number[]): Promise<number> {
  return (await db.one<{ ended: number }>(ENDED, [ids]))?.ended ?? 0;
}
