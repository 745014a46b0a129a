import type { RunFacts } from "@tradewind/sdk/program";
import type { RunRow } from "../../store/run/run-row.ts";

/** The facts of a stored run for user code. */
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
