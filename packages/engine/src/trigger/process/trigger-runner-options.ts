/** The parts and time limits of a trigger runner. */
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import type { TriggerServices } from "../contract.ts";

export interface TriggerRunnerOptions {
  readonly services: TriggerServices;
  readonly logger: Logger;
  readonly cwd?: string;
  /** The account that triggers run as, which requires root. Default: the account of this process. */
  readonly user?: ProcessUser | null | undefined;
  /** How long one trigger may block all others. Default: 2 s. */
  readonly blockLimitMs?: number;
  /** How long the child's loop may be silent for any reason. Default: 5 s. */
  readonly silenceMs?: number;
  /** Resident memory of each child, in megabytes; half of it for its JavaScript heap. Default: 2048. */
  readonly memoryMb?: number;
  /** How many unused bundles a child may have loaded. Default: 50. */
  readonly maxDeadBundles?: number;
  /** How long a child that has nothing to run is kept. Default: one minute. */
  readonly idleMs?: number;
}
