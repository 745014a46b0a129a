/** What a job that drives runs is made of. */
import type { NoticeAction } from "@tradewind/sdk/manifest";
import type { BundleCache } from "../../code/bundle-cache.ts";
import type { Executor } from "../../execute/contract.ts";
import type { LeaseTerm, LeaseTimes } from "../../job/lease.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import type { Database } from "../../store/database/database.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import type { LargeLengths } from "../dispatch/large-lengths.ts";

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
  /**
   * No other process drives runs of this database: it is embedded in this one. Attempts then run on while the database is
   * away: no other job can take them over.
   */
  readonly isAlone?: boolean;
  /** How long attempts may go on when the job drains before it stops: 5 s when left out. */
  readonly drainMs?: number;
  /** How long an attempt that is asked to stop may take before its process group is killed: 5 s when left out. */
  readonly stopGraceMs?: number;
  /** How often an attempt may be lost to the infrastructure before that counts as a failure of the task. */
  readonly infraLossBudget?: number;
  /** Of what lies in large outputs; left out, there are none. */
  readonly lengths?: LargeLengths;
  /** How many items a map may have: 100,000 when left out. */
  readonly maxMapLength?: number;
  /** Runs, plans, backfills and callbacks of other DAGs are left to other jobs. Left out: all. */
  readonly dags?: ServedDags | undefined;
  /** What is sent for every run that fails. Left out: nothing. */
  readonly onFailure?: readonly NoticeAction[];
  /** The account that timetables run as; left out, that of this process. */
  readonly user?: ProcessUser | null | undefined;
}

/** A scheduler that dies is missed after 6 s at the latest; the others look every 2 s. */
export const LEASE: LeaseTimes = { ttlMs: 6_000, renewMs: 2_000, marginMs: 1_500 };

/** How often an attempt may be lost with its host before that counts as a failure of the task. */
export const INFRA_LOSS_BUDGET = 3;

/** Executors learn how long they may run attempts; alone, they may for as long as they like. */
export function leaseListener({ executors, isAlone }: DagRunJobOptions): ((term: LeaseTerm) => void) | null {
  if (isAlone === true) return null;
  return (term) => {
    for (const executor of executors) executor.extendLease?.(term);
  };
}
