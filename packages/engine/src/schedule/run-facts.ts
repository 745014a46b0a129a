import type { RunFacts } from "@tradewind/sdk/program";

interface StoredRun {
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_type: string;
  readonly logical_date: Date | null;
  readonly interval_start: Date | null;
  readonly interval_end: Date | null;
  readonly run_after: Date;
  readonly started_at: Date | null;
  readonly version_number: number;
}

/** A stored run as user code sees it. */
export function runFacts(run: StoredRun): RunFacts {
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
