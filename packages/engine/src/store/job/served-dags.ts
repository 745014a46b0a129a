/** Which DAGs a job serves: `tradewind scheduler --dags`. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** null: all. */
export type ServedDags = readonly string[] | null;

/** SQL: whether the DAG in this column is served by `parameter`, e.g. "$2". A filter only, never an index condition. */
export const isServed = (column: string, parameter: string) =>
  `(${parameter}::text[] IS NULL OR ${column} = ANY(${parameter}::text[]))`;

const UNKNOWN = statement(
  "served-unknown",
  `SELECT u.dag_id FROM unnest($1::text[]) AS u(dag_id)
   WHERE NOT EXISTS (SELECT FROM dag d WHERE d.dag_id = u.dag_id AND NOT d.is_stale) ORDER BY u.dag_id`,
);

const LIVE = "j.kind = 'scheduler' AND j.state = 'running' AND j.lease_until > now()";
/** A draining scheduler starts no runs. */
const STARTS = "coalesce(j.facts->>'draining', 'false') <> 'true'";

/** Called often, and without a token: if one scheduler serves all DAGs, the statement reads no DAG. */
const UNSERVED = statement(
  "served-unserved",
  `SELECT d.dag_id FROM dag d
   WHERE (SELECT count(*) > 0 AND NOT bool_or(j.dags IS NULL AND ${STARTS}) FROM job j WHERE ${LIVE})
     AND NOT d.is_paused AND NOT d.is_stale
     AND NOT EXISTS (SELECT FROM job j WHERE ${LIVE} AND ${STARTS} AND d.dag_id = ANY(j.dags))
   ORDER BY d.dag_id LIMIT $1`,
);

const IS_SERVED = statement(
  "served-is-served",
  `SELECT count(j.id) = 0 OR bool_or(${STARTS} AND (j.dags IS NULL OR r.dag_id = ANY(j.dags)))
     OR EXISTS (SELECT FROM job o WHERE o.id = r.owner_job AND o.state = 'running' AND o.lease_until > now()) AS is_served
   FROM dag_run r LEFT JOIN job j ON ${LIVE} WHERE r.id = $1 GROUP BY r.id`,
);

/** The ids without a DAG now; they may be published later. */
export async function unknownDags(db: Connection, dags: readonly string[]): Promise<string[]> {
  return (await db.rows<{ dag_id: string }>(UNKNOWN, [dags])).map((row) => row.dag_id);
}

/** DAGs that could run and that no live scheduler serves. Empty if there is no scheduler at all. */
export async function unservedDags(db: Connection, limit: number): Promise<string[]> {
  return (await db.rows<{ dag_id: string }>(UNSERVED, [limit])).map((row) => row.dag_id);
}

/**
 * True if a live job owns the run, a live scheduler serves its DAG, or there is no scheduler at all (reported
 * separately).
 */
export async function isRunServed(db: Connection, dagRunId: number): Promise<boolean> {
  return (await db.one<{ is_served: boolean }>(IS_SERVED, [dagRunId]))?.is_served ?? true;
}
