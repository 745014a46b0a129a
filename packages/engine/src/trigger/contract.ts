/**
 * The contract between the triggerer, which owns rows and may touch the database, and the runner of triggers, which
 * runs user code in a child process and may not. The runner is told what to run and reports what happened.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel, TriggerAbortKind } from "@tradewind/sdk/program";
import type { TriggerOutcome } from "../model/index.ts";

/** One trigger to be run; `id` is that of its row. */
export interface TriggerWork {
  readonly id: number;
  readonly kind: string;
  readonly args: Json;
  /** Where this machine keeps the bundle that defines it; null: it is built in. */
  readonly bundlePath: string | null;
  /** Of a built-in one: what an earlier run of it, here or elsewhere, has told last. Seen again it is nothing new. */
  readonly lastEvent?: Json;
}

/** A trigger whose code was still at work some time after its abort. */
export interface IgnoredAbort {
  readonly id: number;
  /** Of the trigger, or of the member of a joint wait. */
  readonly kind: string;
  /** As JSON, cut. */
  readonly args: string;
  readonly ms: number;
}

/** What a runner tells its triggerer. Calls for a trigger that was stopped meanwhile are never made. */
export interface RunnerReports {
  /** An `event` wants to be acknowledged by `ack(id)` once it is stored; the other outcomes are a trigger's last word. */
  outcome(id: number, outcome: TriggerOutcome): void;
  log(id: number, level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  polled(id: number): void;
  /** What its last event told of is so no more. */
  ceased(id: number): void;
  /** The members of a wait for all that have fired so far: all of them, each time. */
  members(id: number, fired: readonly string[]): void;
  /** Said once per class and process. The trigger was stopped before. */
  ignoredAbort(ignored: IgnoredAbort): void;
  /** The loop stood still. Also for a trigger that is over meanwhile. */
  blocked(stall: {
    /** Null, as its kind, when no trigger could be named. */
    readonly id: number | null;
    readonly kind: string | null;
    readonly ms: number;
    readonly stack: string;
    /** It is stopped for it, and fails: the same is said by its outcome. */
    readonly isFailed: boolean;
  }): void;
}

/** Runs any number of triggers in one child process. Restarts the child by itself, with everything that was running. */
export interface Runner {
  start(reports: RunnerReports): Promise<void>;
  run(work: readonly TriggerWork[]): void;
  /** The last event of this trigger is stored: it may go on to its next. */
  ack(id: number): void;
  /** Aborts it and runs its cleanup; nothing more is heard of it. Unknown ids are ignored. */
  stop(ids: readonly number[], why: TriggerAbortKind): void;
  /** For the operator: crashes of its processes in the last ten minutes, and triggers that are isolated because of them. */
  crashes(): { readonly crashes: number; readonly suspects: number };
  /** It may be what crashed its process: this runner is about to find out. */
  isSuspect(id: number): boolean;
  /** When the child's event loop last proved to be turning, by performance.now(): what a heartbeat has to be based on. */
  progressAt(): number;
  /** Stops everything, with `graceMs` for cleanups. */
  close(graceMs: number): Promise<void>;
}

/** What triggers may read; answered by the process that has the database. */
export interface TriggerServices {
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<import("@tradewind/sdk/program").ConnectionFacts | undefined>;
}
