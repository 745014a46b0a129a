/** What the local executor can be given. */
import type { LargeOutputs } from "../../output/large-outputs.ts";
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import { withheldNames } from "../../service/user-environment.ts";
import type { JobSettings } from "../attempt/job.ts";
import type { TaskServices } from "../contract.ts";

export interface LocalExecutorOptions {
  /** Attempts at a time. 0: no limit, and a fresh process for each. */
  readonly parallelism: number;
  /** In addition, for streaming tasks only. They take these first, then ordinary ones. */
  readonly streamingSlots?: number;
  readonly services: TaskServices;
  readonly logger: Logger;
  /** From asking a task to stop to killing it, unless the task has a grace period of its own. */
  readonly graceMs?: number;
  /** Tasks per process, at most. */
  readonly recycleAfter?: number;
  /** A process is replaced when it holds more than this; looked at after every `weighEvery` tasks. */
  readonly maxIdleMb?: number;
  readonly weighEvery?: number;
  /** Most workloads held beyond `parallelism`; how many it is depends on how short tasks are. */
  readonly prefetch?: number;
  /** Per attempt. */
  readonly maxLogBytes?: number;
  /** For tasks that name no limit themselves; null for none. */
  readonly memoryMb?: number | null;
  /** For callbacks. */
  readonly callbackTimeoutMs?: number;
  /** Where large outputs go, and come from. It is closed with this. Without it outputs are small. */
  readonly outputs?: LargeOutputs;
  /** Where user code runs; the current folder unless told. */
  readonly cwd?: string;
  /** The account that user code runs as, which needs root; left out, that of this process. */
  readonly user?: ProcessUser | null | undefined;
}

export function jobSettings(options: LocalExecutorOptions): JobSettings {
  return {
    services: options.services,
    logger: options.logger,
    maxLogBytes: options.maxLogBytes ?? 50 * 1024 * 1024,
    memoryMb: options.memoryMb ?? null,
    callbackTimeoutMs: options.callbackTimeoutMs ?? 60_000,
    outputs: options.outputs ?? null,
    withheld: withheldNames(process.env),
  };
}
