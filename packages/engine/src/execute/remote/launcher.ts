/**
 * The part of a remote executor that differs between executors: how an assignment reaches a worker. The assignment is
 * stored before it is launched, and a worker claims it over the API; so a launch may be lost or repeated at any time, and
 * carries nothing but ids.
 */
import type { Logger } from "../../service/logger.ts";
import type { ExecutorConfig } from "../contract.ts";

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
  readonly logger: Logger;
  /** Assignments that no worker has claimed for `waitedMs`, by queue, oldest first, after the one given. */
  unclaimed(page: {
    readonly waitedMs: number;
    readonly after?: UnclaimedAssignment;
    readonly limit: number;
  }): Promise<readonly UnclaimedAssignment[]>;
  /** A credential for the worker of one assignment only, e.g. in a pod. */
  launchToken(id: string): string;
  /** These will never report their end; reasons by assignment. An end that was reported before counts. */
  lost(reasons: ReadonlyMap<string, string>): Promise<void>;
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
