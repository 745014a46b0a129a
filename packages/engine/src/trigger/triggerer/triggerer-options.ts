/** The parts of a triggerer, its times and limits. */

import type { BundleCache } from "../../code/bundle-cache.ts";
import type { LeaseTimes } from "../../job/lease.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import type { SecretMask } from "../../secret/mask.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { TriggerRunner } from "../process/trigger-runner.ts";

export interface TriggererOptions {
  readonly database: Database;
  readonly runner: TriggerRunner;
  readonly bundles: BundleCache;
  readonly logs: LogWriter;
  readonly mask: SecretMask;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  readonly version: string;
  /** Triggers that run at once; timed and cold triggers do not count. */
  readonly capacity: number;
  readonly queues: readonly string[];
  readonly lease?: LeaseTimes;
  /** How long the triggers' loop may be silent before the lease is no longer renewed. */
  readonly stallMs?: number;
  /** A silent trigger is announced in its tasks' logs after this long. */
  readonly announceAfterMs?: number;
}

/** A stall, then the lease, then the others' next poll: all of it in less than 15 s. */
export const LEASE: LeaseTimes = { ttlMs: 7_000, renewMs: 2_000, marginMs: 1_500 };
export const STALL_MS = 5_000;

/** Batch size: a turn must have time left for new reports and the heartbeat. */
export const TIMED_LIMIT = 1_000;
export const CLAIM_LIMIT = 1_000;
/** Cold triggers are claimed this long before they wake. */
export const HORIZON_MS = 250;
/** Released triggers are left to others for this long. */
export const GIVEN_MS = 1_000;
/** A due trigger that another triggerer has locked is polled again after this long. */
export const BUSY_MS = 100;
export const SWEEP_MS = 60_000;
/** Heartbeats between two polls while no job has died and no wake-up arrives. */
export const LOOK_EVERY = 5;
/** Minimum interval of sweeps. */
export const SWEEP_AT_MOST_MS = 250;
/** How long a trigger may take to acknowledge a stored event to its source. */
export const FAREWELL_MS = 1_000;
/** A schedule's trigger that failed restarts after this long. */
export const POSTPONED_MS = 30_000;

/** True if the wait has expired. */
export function isDue(wait: number | null): boolean {
  return wait !== null && wait <= 0;
}
