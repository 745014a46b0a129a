/** The options of the local executor. */
import type { LogWriter } from "../../log/log-writer.ts";
import type { AttemptOutputs } from "../../output/large-outputs.ts";
import type { Logger } from "../../service/logger.ts";
import type { ProcessUser } from "../../service/process-user.ts";
import { withheldNames } from "../../service/user-environment.ts";
import type { JobSettings } from "../attempt/job.ts";
import type { AnswerRequest } from "../contract.ts";

/** Bundles by hash, as paths on this machine. */
export interface BundleSource {
  /** The path without waiting; undefined: it has to be fetched or checked first. */
  known(hash: string): string | undefined;
  path(hash: string): Promise<string>;
}

export interface LocalExecutorOptions {
  /** Attempts at a time. 0: no limit, and a fresh process for each. */
  readonly parallelism: number;
  /** Additional slots for streaming tasks, which use these first, then ordinary ones. */
  readonly streamingSlots?: number;
  /** Answers the requests of user code. */
  readonly answer: AnswerRequest;
  /** Finds the bundles of assignments on this machine. */
  readonly bundles: BundleSource;
  readonly logs: LogWriter;
  readonly logger: Logger;
  /** Default grace period, from the abort of a task to the kill of its process group. */
  readonly graceMs?: number;
  /** Maximum number of tasks per process. */
  readonly recycleAfter?: number;
  /** A process that holds more memory is replaced; checked after every `weighEvery` tasks. */
  readonly maxIdleMb?: number;
  readonly weighEvery?: number;
  /** Maximum number of workloads queued beyond `parallelism`; the actual number depends on the duration of tasks. */
  readonly prefetch?: number;
  /** Per attempt. */
  readonly maxLogBytes?: number;
  /** How long the end of an attempt waits for its log to be written. */
  readonly logPatienceMs?: number;
  /** Default limit; null: none. */
  readonly memoryMb?: number | null;
  readonly callbackTimeoutMs?: number;
  /** The store of large outputs, closed with the executor. Left out: large outputs fail their task. */
  readonly outputs?: AttemptOutputs;
  /** The working directory of user code; default: the current one. */
  readonly cwd?: string;
  /** The account of user code, which needs root; default: that of this process. */
  readonly user?: ProcessUser | null | undefined;
}

export function jobSettings(options: LocalExecutorOptions): JobSettings {
  return {
    answer: options.answer,
    logs: options.logs,
    logger: options.logger,
    maxLogBytes: options.maxLogBytes ?? 50 * 1024 * 1024,
    memoryMb: options.memoryMb ?? null,
    callbackTimeoutMs: options.callbackTimeoutMs ?? 60_000,
    outputs: options.outputs ?? null,
    withheld: withheldNames(process.env),
  };
}
