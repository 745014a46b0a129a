/** A backfill in Airflow's form, with additional fields and its progress. */
import { z } from "zod";
import type { BackfillRow } from "../../store/backfill/backfills.ts";
import { date, iso, nullableDate } from "../server/fields.ts";

export const REPROCESS = ["none", "failed", "completed"] as const;

export const backfillDocument = z
  .object({
    id: z.number(),
    dag_id: z.string(),
    from_date: date,
    to_date: date,
    dag_run_conf: z.any(),
    is_paused: z.boolean(),
    reprocess_behavior: z.enum(REPROCESS),
    max_active_runs: z.number(),
    created_at: date,
    completed_at: nullableDate,
    updated_at: date,
    dag_display_name: z.string(),
    state: z.enum(["running", "paused", "done", "failed", "cancelled"]),
    run_backwards: z.boolean(),
    stop_on_failure: z.boolean(),
    run_on_latest_version: z.boolean(),
    total_runs: z.number(),
    started_at: nullableDate,
    created_by: z.string().nullable(),
    /** No more runs are created; it ends when its running runs have ended. */
    is_stopping: z.boolean(),
    /** Why no runs start although it has not ended; null otherwise. */
    waits_because: z.string().nullable(),
  })
  .meta({ id: "BackfillResponse" });

/** The response to a create request: also has the first and the last date. */
export const madeDocument = backfillDocument.extend({ first_date: date, last_date: date }).meta({
  id: "CreatedBackfillResponse",
});

const tally = {
  total: z.number(),
  finished: z.number(),
  succeeded: z.number(),
  skipped: z.number(),
  failed: z.number(),
  running: z.number(),
};

export const progressDocument = z
  .object({
    backfill: backfillDocument,
    runs: z.object({ ...tally, elsewhere: z.number(), cleared: z.number() }),
    tasks: z.object(tally),
    percent: z.number(),
    /** Estimated from the latest runs; null if unknown or if no runs start at present. */
    eta: nullableDate,
    remaining_seconds: z.number().nullable(),
  })
  .meta({ id: "BackfillProgressResponse" });

export const dryRunDocument = z
  .object({
    logical_date: nullableDate,
    partition_key: z.null(),
    partition_date: z.null(),
    action: z.enum(["created", "cleared", "kept", "awaited"]),
    state: z.string().nullable(),
  })
  .meta({ id: "DryRunBackfillResponse" });

export function showBackfill(row: BackfillRow): z.output<typeof backfillDocument> {
  return {
    id: row.id,
    dag_id: row.dag_id,
    from_date: iso(row.from_date),
    to_date: iso(row.to_date),
    dag_run_conf: row.conf,
    is_paused: row.state === "paused",
    reprocess_behavior: row.reprocess,
    max_active_runs: row.max_active,
    created_at: iso(row.created_at),
    completed_at: iso(row.ended_at),
    updated_at: iso(row.updated_at),
    dag_display_name: row.dag_id,
    state: row.state,
    run_backwards: row.is_reverse,
    stop_on_failure: row.stop_on_failure,
    run_on_latest_version: row.version_id === null,
    total_runs: row.total_runs,
    started_at: iso(row.started_at),
    created_by: row.created_by,
    is_stopping: row.ended_at === null && row.ending !== null,
    waits_because: waitsBecause(row),
  };
}

function waitsBecause(row: BackfillRow): string | null {
  if (row.ended_at !== null || row.ending !== null) return null;
  if (row.state === "paused") return "the backfill is paused";
  if (row.dag_is_stale) return "no file exports the DAG any more";
  if (row.dag_is_paused) return "the DAG is paused";
  if (!row.is_owned)
    return "no scheduler has picked it up; start `tradewind standalone`, `scheduler` or `backfill serve`";
  const awaited = row.awaited_run;
  if (awaited === null) return null;
  return `run ${awaited.run_id}, started outside of the backfill, is ${awaited.state}; see \`tradewind runs show ${row.dag_id} ${awaited.run_id}\``;
}
