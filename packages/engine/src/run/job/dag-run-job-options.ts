/** The options of a job that drives runs. */
import type { NoticeAction } from "@tradewind/sdk/manifest";
import type { BundleCache } from "../../code/bundle-cache.ts";
import type { Executor } from "../../execute/contract.ts";
import type { LeaseTerm, LeaseTimes } from "../../job/lease.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { LogWriter } from "../../log/log-writer.ts";
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import type { Database } from "../../store/database/database.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import type { LargeLengths } from "../dispatch/large-lengths.ts";

export interface DagRunJobOptions {
  readonly database: Database;
  /** The first one is the default. */
  readonly executors: readonly Executor[];
  /** Holds remote attempts of taken-over runs whose executor this process does not have. */
  readonly foreign?: Executor;
  readonly bundles: BundleCache;
  readonly logs: LogWriter;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  readonly version: string;
  readonly lease?: LeaseTimes;
  /**
   * No other process drives runs of this database, because it is embedded in this one. Attempts then continue while the
   * database is unavailable: no other job can take them over.
   */
  readonly isAlone?: boolean;
  /** How long attempts may continue during a drain. Default: 5 s. */
  readonly drainMs?: number;
  /** Grace period of attempts when the job stops. Default: 5 s. */
  readonly stopGraceMs?: number;
  /** How many attempts of a try may be lost with their host before that counts as a failure of the task. */
  readonly infraLossBudget?: number;
  /** Reads the lengths of large outputs; left out: there are none. */
  readonly lengths?: LargeLengths;
  /** Maximum number of items of a map. Default: 100,000. */
  readonly maxMapLength?: number;
  /** Only runs, plans, backfills and callbacks of these DAGs are handled. Left out: of all. */
  readonly dags?: ServedDags | undefined;
  /** The notices for every failed run. */
  readonly onFailure?: readonly NoticeAction[];
  /** The account of timetables; default: that of this process. */
  readonly user?: ProcessUser | null | undefined;
}

/** The lease of a dead scheduler expires after at most 6 s; the others check every 2 s. */
export const LEASE: LeaseTimes = { ttlMs: 6_000, renewMs: 2_000, marginMs: 1_500 };

/** Default of `infraLossBudget`. */
export const INFRA_LOSS_BUDGET = 3;

/** Passes the lease term to the executors; null: the job is alone, and attempts need no lease. */
export function leaseListener({ executors, isAlone }: DagRunJobOptions): ((term: LeaseTerm) => void) | null {
  if (isAlone === true) return null;
  return (term) => {
    for (const executor of executors) executor.extendLease?.(term);
  };
}
