/** The parts of a triggerer. */
import type { BundleCache } from "../../code/bundle-cache.ts";
import type { LeaseTimes } from "../../job/lease.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { SecretMask } from "../../secret/mask.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { TriggerRunner } from "../process/trigger-runner.ts";

export interface TriggererOptions {
  readonly database: Database;
  readonly runner: TriggerRunner;
  readonly bundles: BundleCache;
  readonly logsDir: string;
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
