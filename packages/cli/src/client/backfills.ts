/** Backfills as the API returns them, and waiting for the end of one. */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import { type Client, path } from "./client.ts";

export interface Backfill {
  readonly id: number;
  readonly dag_id: string;
  readonly state: "running" | "paused" | "done" | "failed" | "cancelled";
  readonly from_date: string;
  readonly to_date: string;
  readonly reprocess_behavior: "none" | "failed" | "completed";
  readonly run_backwards: boolean;
  readonly max_active_runs: number;
  readonly stop_on_failure: boolean;
  readonly run_on_latest_version: boolean;
  readonly dag_run_conf: unknown;
  readonly total_runs: number;
  readonly created_at: string;
  readonly created_by: string | null;
  readonly started_at: string | null;
  readonly completed_at: string | null;
  readonly is_stopping: boolean;
  readonly waits_because: string | null;
}

/** The answer to a create request: also has the first and the last date. */
export interface MadeBackfill extends Backfill {
  readonly first_date: string;
  readonly last_date: string;
}

interface BackfillTally {
  readonly total: number;
  readonly finished: number;
  readonly succeeded: number;
  readonly skipped: number;
  readonly failed: number;
  readonly running: number;
}

export interface BackfillProgress {
  readonly backfill: Backfill;
  readonly runs: BackfillTally & { readonly elsewhere: number; readonly cleared: number };
  readonly tasks: BackfillTally;
  readonly percent: number;
  readonly eta: string | null;
  readonly remaining_seconds: number | null;
}

/** What a backfill would do for one date. */
export interface DryRunDate {
  readonly logical_date: string;
  readonly action: "created" | "cleared" | "kept" | "awaited";
  readonly state: string | null;
}

export interface DryRun {
  /** The first dates only, if there are very many. */
  readonly backfills: DryRunDate[];
  readonly total_entries: number;
  /** Both ends of the range are included. */
  readonly from_date: string;
  readonly to_date: string;
  /** The earliest and the latest date in the range. */
  readonly first_date: string;
  readonly last_date: string;
}

export interface BackfillWatch {
  readonly id: number;
  readonly timeoutMs: number | undefined;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: BackfillProgress) => void;
}

export type BackfillWatchResult =
  | { readonly kind: "over"; readonly progress: BackfillProgress }
  | { readonly kind: "timeout" }
  | { readonly kind: "detached" };

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 1_000;
/** Give up if the server is unreachable for longer than this. */
const PATIENCE_MS = 30_000;

export function readProgress(client: Client, id: number, signal?: AbortSignal): Promise<BackfillProgress> {
  return client.get(path`/backfills/${id}/progress`, { what: `cannot read the backfill ${id}`, signal });
}

/** Polls until the backfill has ended, more slowly the longer it takes and the longer the server needs to count. */
export async function watchToEnd(client: Client, watch: BackfillWatch): Promise<BackfillWatchResult> {
  const deadline = watch.timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + watch.timeoutMs;
  let pause = FIRST_PAUSE_MS;
  let answeredAt = Date.now();
  while (!watch.signal.aborted) {
    const asked = Date.now();
    try {
      const progress = await readProgress(client, watch.id, watch.signal);
      watch.onProgress(progress);
      if (progress.backfill.completed_at !== null) return { kind: "over", progress };
      answeredAt = Date.now();
    } catch (error) {
      if (watch.signal.aborted) break;
      const away = error instanceof CliError && error.exit === EXIT.server;
      if (!away || Date.now() - answeredAt > PATIENCE_MS) throw error;
    }
    if (Date.now() >= deadline) return { kind: "timeout" };
    const rest = Math.min(Math.max(pause, 5 * (Date.now() - asked)), deadline - Date.now());
    await sleep(rest, undefined, { signal: watch.signal }).catch(() => {});
    pause = Math.min(LONGEST_PAUSE_MS, pause * 1.5);
  }
  return { kind: "detached" };
}
