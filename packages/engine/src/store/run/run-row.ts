/** The facts of a run that its tasks can read. */
import type { Json } from "@tradewind/sdk/manifest";
import type { RunFacts } from "@tradewind/sdk/program";

export interface RunRow {
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_type: string;
  readonly logical_date: Date | null;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
  readonly run_after: Date;
  readonly started_at: Date | null;
  readonly conf: Json;
  readonly version_number: number;
}

/** For a query with the run as `r` and its version as `v`. */
export const RUN_COLUMNS = `r.dag_id, r.run_id, r.run_type, r.logical_date, r.interval_start, r.interval_end, r.run_after,
  r.started_at, r.conf, v.number AS version_number`;

/** A stored run as user code sees it. */
export function runFacts(run: RunRow): RunFacts {
  return {
    dagId: run.dag_id,
    runId: run.run_id,
    runType: run.run_type,
    logicalDate: run.logical_date?.toISOString() ?? null,
    intervalStart: run.interval_start?.toISOString() ?? null,
    intervalEnd: run.interval_end?.toISOString() ?? null,
    runAfter: run.run_after.toISOString(),
    startedAt: run.started_at?.toISOString() ?? null,
    version: run.version_number,
  };
}
