/** Signal-driven runs and runs with manual commands, with the state of their drive. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { COUNTED_EXACTLY, Conditions, first, type ListedPage, listPage, type Page } from "../page/query.ts";

export interface DrivenRunRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly state: string;
  readonly conf: Json;
  readonly started_at: Date | null;
  readonly version_id: number;
  /** As stored by the owner; null: not stored yet, or the run has ended. */
  readonly drive: Json;
  readonly has_drive: boolean;
  /** The number of pending starts by task; null: none. */
  readonly starts: Readonly<Record<string, number>> | null;
  /** For an ended run: what closed it, while its end is in the log; null: nothing, or unknown. */
  readonly closed_by: string | null;
}

export const DRIVEN_RUN_ORDER = {
  start_date: "r.started_at",
  dag_id: "r.dag_id",
  dag_run_id: "r.run_id",
} as const;

const COLUMNS = `r.id, r.dag_id, r.run_id, r.state, r.conf, r.started_at, r.version_id, d.state AS drive,
  d.dag_run_id IS NOT NULL AS has_drive,
  (SELECT json_object_agg(w.task_id, w.n) FROM
     (SELECT task_id, count(*) AS n FROM run_start WHERE dag_run_id = r.id GROUP BY task_id) AS w) AS starts,
  CASE WHEN r.state IN ('success', 'failed') THEN
    (SELECT s.value->>'closedBy' FROM signal s WHERE s.namespace = 'run' AND s.key = r.dag_id || '/' || r.run_id
     ORDER BY s.id DESC LIMIT 1) END AS closed_by`;

/** Running runs with a drive. */
export function listDrivenRuns(
  connection: Connection,
  filter: { readonly dagId?: string | undefined },
  page: Page,
): Promise<ListedPage<DrivenRunRow>> {
  return listPage(connection, {
    columns: COLUMNS,
    from: "run_drive d JOIN dag_run r ON r.id = d.dag_run_id",
    where: new Conditions().equals("r.state", "running").equals("r.dag_id", filter.dagId),
    order: DRIVEN_RUN_ORDER,
    tiebreak: "r.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

/** Any run, with or without a drive. */
export function findDrivenRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<DrivenRunRow | undefined> {
  return first(connection, {
    columns: COLUMNS,
    from: "dag_run r LEFT JOIN run_drive d ON d.dag_run_id = r.id",
    where: new Conditions().equals("r.dag_id", dagId).equals("r.run_id", runId),
  });
}
