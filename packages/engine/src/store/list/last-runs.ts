/** The latest run of each of many DAGs. */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LastRunRow {
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly logical_date: Date | null;
  readonly run_after: Date;
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
}

/** Index: dag_run_latest, one probe per DAG. */
const LAST_RUNS = statement(
  "last-runs",
  `SELECT r.* FROM unnest($1::text[]) AS k(dag_id) CROSS JOIN LATERAL (
     SELECT r.dag_id, r.run_id, r.state, r.logical_date, r.run_after, r.queued_at, r.started_at, r.ended_at FROM dag_run r
     WHERE r.dag_id = k.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1
   ) AS r`,
);

/** By DAG; DAGs without runs are missing. */
export async function readLastRuns(
  connection: Connection,
  dagIds: readonly string[],
): Promise<ReadonlyMap<string, LastRunRow>> {
  const rows = await connection.rows<LastRunRow>(LAST_RUNS, [dagIds]);
  return new Map(rows.map((row) => [row.dag_id, row]));
}
