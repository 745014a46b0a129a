/** What a job that drives runs is made of. */
import type { BundleCache } from "../execute/bundle-cache.ts";
import type { Executor } from "../execute/contract.ts";
import type { LeaseTimes } from "../job/lease.ts";
import type { Logger } from "../service/logger.ts";
import type { WakeUps } from "../signal/wake-up.ts";
import type { Database } from "../store/database.ts";
import type { LargeLengths } from "./large-lengths.ts";

export interface DagRunJobOptions {
  readonly database: Database;
  /** The first one runs what names no executor. */
  readonly executors: readonly Executor[];
  readonly bundles: BundleCache;
  readonly logsDir: string;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  readonly version: string;
  readonly lease?: LeaseTimes;
  /** How often an attempt may be lost to the infrastructure before that counts as a failure of the task. */
  readonly infraLossBudget?: number;
  /** Of what lies in large outputs; left out, there are none. */
  readonly lengths?: LargeLengths;
  /** How many items a map may have: 100,000 when left out. */
  readonly maxMapLength?: number;
}

/** A scheduler that dies is missed after 6 s at the latest; the others look every 2 s. */
export const LEASE: LeaseTimes = { ttlMs: 6_000, renewMs: 2_000, marginMs: 1_500 };

/** How often an attempt may be lost with its host before that counts as a failure of the task. */
export const INFRA_LOSS_BUDGET = 3;
