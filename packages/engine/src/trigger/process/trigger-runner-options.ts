/** What a trigger runner is made of, and how patient it is. */
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import type { TriggerServices } from "../contract.ts";

export interface TriggerRunnerOptions {
  readonly services: TriggerServices;
  readonly logger: Logger;
  readonly cwd?: string;
  /** The account that triggers run as, which needs root; left out, that of this process. */
  readonly user?: ProcessUser | null | undefined;
  /** How long one trigger may hold up all others. 2 s unless told. */
  readonly blockLimitMs?: number;
  /** How long the child's loop may be silent for whatever reason. 5 s unless told. */
  readonly silenceMs?: number;
  /** Resident memory of each child, in megabytes; half of it for its JavaScript heap. 2048 unless told. */
  readonly memoryMb?: number;
  /** How many bundles that nothing uses any more a child may have loaded. 50 unless told. */
  readonly maxDeadBundles?: number;
  /** How long a child that has nothing to run is kept. A minute unless told. */
  readonly idleMs?: number;
}
