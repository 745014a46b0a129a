/** The runs of the last hours: how many ended when, and in which DAGs. Index: dag_run_ended; the cost does not grow with history. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface RecentRuns {
  /** The first moment that is counted: later than asked for if there were too many runs. */
  readonly from: Date;
  readonly is_partial: boolean;
  /** Ended runs by slice of time. */
  readonly success: readonly number[];
  readonly failed: readonly number[];
  readonly dags: readonly RecentDag[];
}

interface RecentDag {
  readonly dag_id: string;
  readonly is_paused: boolean;
  readonly next_run_after: Date | null;
  /** Runs that ended. */
  readonly runs: number;
  readonly failed: number;
}

/** More runs are not read: the answer then begins later. */
const MOST_RUNS = 100_000;

const SLICES = statement(
  "ui-recent-slices",
  `SELECT width_bucket(extract(epoch FROM r.ended_at), extract(epoch FROM $1::timestamptz), extract(epoch FROM $2::timestamptz), $3) AS slice,
     count(*) FILTER (WHERE r.state = 'success')::int AS success, count(*) FILTER (WHERE r.state = 'failed')::int AS failed,
     min(r.ended_at) AS first
   FROM (SELECT x.state, x.ended_at FROM dag_run x WHERE x.ended_at >= $1 ORDER BY x.ended_at DESC LIMIT ${MOST_RUNS}) r
   GROUP BY slice ORDER BY slice`,
);

/** First the DAGs of $2, in this order; then those with the most runs. */
const DAGS = statement(
  "ui-recent-dags",
  `WITH ended AS MATERIALIZED (
     SELECT r.dag_id, count(*)::int AS runs, count(*) FILTER (WHERE r.state = 'failed')::int AS failed
     FROM (SELECT x.dag_id, x.state FROM dag_run x WHERE x.ended_at >= $1 ORDER BY x.ended_at DESC LIMIT ${MOST_RUNS}) r
     GROUP BY r.dag_id
   ), active AS MATERIALIZED (
     SELECT DISTINCT r.dag_id FROM (SELECT x.dag_id FROM dag_run x WHERE x.state = 'running' LIMIT ${MOST_RUNS}) r
   ), seen AS (
     SELECT dag_id FROM ended UNION SELECT dag_id FROM active UNION SELECT unnest($2::text[])
   )
   SELECT d.dag_id, d.is_paused, d.next_run_after, coalesce(e.runs, 0) AS runs, coalesce(e.failed, 0) AS failed
   FROM seen s JOIN dag d USING (dag_id) LEFT JOIN ended e USING (dag_id)
   ORDER BY coalesce(array_position($2::text[], s.dag_id), 2147483647), coalesce(e.failed, 0) DESC, coalesce(e.runs, 0) DESC, s.dag_id
   LIMIT $3`,
);

export async function recentRuns(
  connection: Connection,
  asked: {
    readonly from: Date;
    readonly to: Date;
    readonly slices: number;
    readonly dags: number;
    readonly first: readonly string[];
  },
): Promise<RecentRuns> {
  const [slices, dags] = await Promise.all([
    connection.rows<{ slice: number; success: number; failed: number; first: Date }>(SLICES, [
      asked.from,
      asked.to,
      asked.slices,
    ]),
    connection.rows<RecentDag>(DAGS, [asked.from, asked.first.slice(0, asked.dags), asked.dags]),
  ]);
  const success = Array.from({ length: asked.slices }, () => 0);
  const failed = [...success];
  for (const row of slices) {
    // A run that ends while this is read has the slice after the last one.
    const at = Math.min(Math.max(row.slice, 1), asked.slices) - 1;
    success[at] = (success[at] ?? 0) + row.success;
    failed[at] = (failed[at] ?? 0) + row.failed;
  }
  const total = slices.reduce((sum, row) => sum + row.success + row.failed, 0);
  const isPartial = total >= MOST_RUNS;
  return {
    from: isPartial ? (slices[0]?.first ?? asked.from) : asked.from,
    is_partial: isPartial,
    success,
    failed,
    dags,
  };
}
