/**
 * The contract between the triggerer and the trigger runner. The triggerer owns rows and accesses the database. The
 * runner executes user code in a child process without database access: it receives triggers to run and reports events.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel } from "@tradewind/sdk/program";
import type { TriggerOutcome } from "../model/index.ts";

/** One trigger to run; `id` is the id of its row. */
export interface TriggerWork {
  readonly id: number;
  readonly kind: string;
  readonly args: Json;
  /** Local path of the bundle that defines the trigger; null if it is built in. */
  readonly bundlePath: string | null;
  /** Built-in triggers only: the last event that an earlier run of the trigger reported. The same event is not reported again. */
  readonly lastEvent?: Json;
}

/** A trigger whose code was still running some time after its abort. */
export interface IgnoredAbort {
  readonly id: number;
  /** The kind of the trigger, or of the member of a joint wait. */
  readonly kind: string;
  /** As JSON, truncated. */
  readonly args: string;
  readonly ms: number;
}

/** Reports from a runner to its triggerer. A stopped trigger causes no further calls. */
export interface RunnerReports {
  /** An `event` must be acknowledged by `ack(id)` once it is stored. The other outcomes end the trigger. */
  outcome(id: number, outcome: TriggerOutcome): void;
  log(id: number, level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  polled(id: number): void;
  /** The state that the last event reported no longer holds. */
  ceased(id: number): void;
  /** The members of a wait for all that have fired so far: the full list on each call. */
  members(id: number, fired: readonly string[]): void;
  /** Called once per class and process. The trigger was stopped before. */
  ignoredAbort(ignored: IgnoredAbort): void;
  /** The event loop was blocked. Also called for a trigger that has ended meanwhile. */
  blocked(stall: {
    /** Null, like its kind, if no trigger could be identified. */
    readonly id: number | null;
    readonly kind: string | null;
    readonly ms: number;
    readonly stack: string;
    /** The trigger is stopped and fails because of the stall; its outcome reports the same. */
    readonly isFailed: boolean;
  }): void;
}

/** What triggers may read; served by the process with the database connection. */
export interface TriggerServices {
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<import("@tradewind/sdk/program").ConnectionFacts | undefined>;
}
