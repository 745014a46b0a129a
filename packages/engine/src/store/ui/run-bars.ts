/** The latest runs of many DAGs, one row of columns per DAG. Index: dag_run_latest, one probe per DAG. */
import type { RunState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** Columns of equal length, the oldest run first. Times are milliseconds since 1970. */
export interface RunBars {
  readonly dag_id: string;
  readonly run_ids: readonly string[];
  readonly states: readonly RunState[];
  readonly run_after: readonly number[];
  readonly logical_dates: readonly (number | null)[];
  readonly started: readonly (number | null)[];
  readonly ended: readonly (number | null)[];
}

const ms = (column: string) => `(extract(epoch FROM r.${column}) * 1000)::int8`;
const column = (expression: string) => `json_agg(${expression} ORDER BY r.run_after, r.id)`;

const BARS = statement(
  "ui-run-bars",
  `SELECT k.dag_id, b.* FROM unnest($1::text[]) AS k(dag_id) CROSS JOIN LATERAL (
     SELECT ${column("r.run_id")} AS run_ids, ${column("r.state")} AS states, ${column(ms("run_after"))} AS run_after,
       ${column(ms("logical_date"))} AS logical_dates, ${column(ms("started_at"))} AS started, ${column(ms("ended_at"))} AS ended
     FROM (SELECT x.* FROM dag_run x WHERE x.dag_id = k.dag_id ORDER BY x.run_after DESC, x.id DESC LIMIT $2) r
     WHERE $3::timestamptz IS NULL OR r.ended_at IS NULL OR r.ended_at >= $3
     HAVING count(*) > 0
   ) b`,
);

/** The latest `count` runs, of them those that ended after `since` or have not ended. By DAG; DAGs without any are missing. */
export async function readRunBars(
  connection: Connection,
  dagIds: readonly string[],
  { count, since = null }: { readonly count: number; readonly since?: Date | null },
): Promise<ReadonlyMap<string, RunBars>> {
  if (dagIds.length === 0) return new Map();
  const rows = await connection.rows<RunBars>(BARS, [dagIds, count, since]);
  return new Map(rows.map((row) => [row.dag_id, row]));
}
