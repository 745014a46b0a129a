/**
 * The part of a remote executor that differs between executors: how an assignment reaches a worker. The assignment is
 * stored before it is launched, and a worker claims it over the API; so a launch may be lost or repeated at any time, and
 * carries nothing but ids.
 */
import type { Logger } from "../../service/logger.ts";
import type { Assignment, ExecutorConfig } from "../contract.ts";

/** An assignment to launch. */
export interface LaunchRequest {
  readonly id: string;
  readonly queue: string;
  /** Larger numbers first. */
  readonly priority: number;
  /** The `executorConfig` of its task. */
  readonly config: ExecutorConfig | null;
}

/** What a launcher may ask of its executor. */
export interface LauncherHost {
  /** The name of the executor. */
  readonly executor: string;
  readonly logger: Logger;
  /** Distinguishes this installation from others that launch in the same place: letters and digits. */
  installation(): Promise<string>;
  /** What these assignments are for. Those that do not exist any more are missing. */
  describe(ids: readonly string[]): Promise<ReadonlyMap<string, LaunchedTask>>;
  /** Those that still exist. */
  existing(ids: readonly string[]): Promise<ReadonlySet<string>>;
  /** Assignments that no worker has claimed for `waitedMs`, by queue, oldest first, after the one given. */
  unclaimed(page: {
    readonly waitedMs: number;
    readonly after?: UnclaimedAssignment;
    readonly limit: number;
  }): Promise<readonly UnclaimedAssignment[]>;
  /** A credential for the worker of one assignment only, e.g. in a pod. */
  launchToken(id: string): string;
  /**
   * These will never report their end; reasons by assignment. They start again. An end that was reported before counts. The
   * reason is written to the log of the task.
   */
  lost(reasons: ReadonlyMap<string, string>): Promise<void>;
  /** As `lost`, but it is the fault of the task or of its settings: the try has failed. */
  failed(failures: ReadonlyMap<string, LaunchFailure>): Promise<void>;
}

/** What an assignment is for. */
export interface LaunchedTask {
  readonly kind: Assignment["kind"];
  readonly dagId: string;
  readonly runId: string;
  /** null: a callback of the run. */
  readonly taskId: string | null;
  readonly mapIndex: number | null;
  readonly tryNumber: number;
}

export interface LaunchFailure {
  /** The code of the error, e.g. "POD_FAILED". */
  readonly code: string;
  readonly message: string;
}

export interface UnclaimedAssignment extends LaunchRequest {
  /** With microseconds. */
  readonly created_at: string;
}

export interface Launcher {
  start(host: LauncherHost): Promise<void>;
  /** Idempotent by id. A launch that fails is repeated by the launcher itself. */
  launch(requests: readonly LaunchRequest[]): void;
  /** These were cancelled before a worker claimed them: a claim is rejected in any case. */
  withdraw?(ids: readonly string[]): void;
  /** What keeps it from launching now, as a sentence part: "Redis does not answer". null: nothing. */
  problem?(): string | null;
  stop(): Promise<void>;
}
