/**
 * DAGs that fail or are late. Each part starts from an index that contains only the rows that matter: failed runs, unfinished
 * runs, due plans. The cost grows with the number of DAGs, not with their history.
 */
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";

/** A run, or the start of one, counts as late after this time. */
const LATE = "interval '1 minute'";

export interface FailingDag {
  readonly dag_id: string;
  readonly dag_run_id: number;
  readonly run_id: string;
  readonly failed_at: Date;
}

/** "not_created": the due run does not exist yet; "not_started": a queued run; "deadline": an unfinished run missed one. */
type LateBecause = "not_created" | "not_started" | "deadline";

export interface LateDag {
  readonly dag_id: string;
  /** null for "not_created". */
  readonly run_id: string | null;
  readonly since: Date;
  readonly because: LateBecause;
}

export interface DagProblems {
  readonly failing: readonly FailingDag[];
  readonly late: readonly LateDag[];
}

/** @param dagIds undefined: all DAGs. */
export async function dagProblems(connection: Connection, dagIds?: readonly string[]): Promise<DagProblems> {
  const values = dagIds === undefined ? [] : [dagIds];
  const [failing, late] = await Promise.all([
    connection.rows<FailingDag>(adhoc(failingText(dagIds !== undefined)), values),
    connection.rows<LateDag>(adhoc(lateText(dagIds !== undefined)), values),
  ]);
  return { failing, late };
}

const among = (isGiven: boolean, column: string) => (isGiven ? `AND ${column} = ANY($1::text[])` : "");

/**
 * The latest run that has ended, by `run_after`, has failed. The scalar subquery keeps PostgreSQL from hashing all
 * successful runs.
 */
const failingText = (isGiven: boolean) => `
  SELECT d.dag_id, f.id AS dag_run_id, f.run_id, f.failed_at
  FROM dag d CROSS JOIN LATERAL (
    SELECT r.id, r.run_id, r.run_after, coalesce(r.ended_at, r.run_after) AS failed_at FROM dag_run r
    WHERE r.dag_id = d.dag_id AND r.state = 'failed' ORDER BY r.run_after DESC, r.id DESC LIMIT 1) f
  WHERE NOT d.is_stale ${among(isGiven, "d.dag_id")}
    AND (SELECT true FROM dag_run s WHERE s.dag_id = d.dag_id AND (s.run_after, s.id) > (f.run_after, f.id)
         AND s.state = 'success' ORDER BY s.run_after, s.id LIMIT 1) IS NULL
  ORDER BY f.failed_at DESC, d.dag_id`;

/** One branch per state: the partial indexes cover one state each. */
const missed = (state: string, isGiven: boolean) => `
  SELECT r.dag_id, r.run_id, x.due_at AS since, 'deadline' AS because
  FROM dag_run r JOIN deadline x ON x.dag_run_id = r.id
  WHERE r.state = '${state}' AND x.state = 'missed' ${among(isGiven, "r.dag_id")}`;

const lateText = (isGiven: boolean) => `
  SELECT DISTINCT ON (l.dag_id) l.dag_id, l.run_id, l.since, l.because FROM (
    SELECT p.dag_id, NULL AS run_id, p.next_run_after AS since, 'not_created' AS because FROM dag p
    WHERE p.next_run_after IS NOT NULL AND NOT p.is_paused AND NOT p.is_stale AND p.next_run_after < now() - ${LATE}
      ${among(isGiven, "p.dag_id")}
    UNION ALL
    SELECT r.dag_id, r.run_id, r.run_after, 'not_started' FROM dag_run r
    WHERE r.state = 'queued' AND r.run_after < now() - ${LATE} AND r.backfill_id IS NULL ${among(isGiven, "r.dag_id")}
    UNION ALL ${missed("queued", isGiven)}
    UNION ALL ${missed("running", isGiven)}
  ) l JOIN dag d ON d.dag_id = l.dag_id
  WHERE NOT d.is_stale AND (NOT d.is_paused OR l.because = 'deadline')
  ORDER BY l.dag_id, l.since`;
