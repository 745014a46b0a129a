/** All events of an owned run. Edits by users go to the store, and the run is reloaded. */

import type { Fact } from "../signal/signal-condition.ts";
import type { Command } from "./commands.ts";
import type { Wait } from "./instance.ts";

interface OfInstance {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** Ignored unless `attempt` is the instance's current attempt. Instants are milliseconds. */
interface OfAttempt extends OfInstance {
  readonly attempt: string;
}

/** The end of an attempt, or of the wait that it left behind, as the model receives it (built by attempt-end.ts). */
export type AttemptEnd = OfAttempt & { readonly at: number } & (
    | {
        readonly type: "succeeded";
        /** Tasks that this one rules out; those not yet started are skipped at once. */
        readonly skip: readonly string[];
      }
    | { readonly type: "skipped"; readonly reason: string | null }
    /** Retried at `retryAt` (null: at once) if `retry` and tries are left. */
    | {
        readonly type: "failed";
        readonly retry: boolean;
        readonly retryAt: number | null;
        readonly reason: string | null;
      }
    | { readonly type: "deferred"; readonly wait: Wait }
    | { readonly type: "rescheduled"; readonly retryAt: number }
    /** The attempt of a task that was asked to stop has ended; any end but its own success. */
    | { readonly type: "stopped" }
    /** The attempt of an instance that is `restarting` (restarted or cleared) has ended, in any way. */
    | { readonly type: "restarted" }
    /**
     * The attempt ended without a fault of the task: same try again, up to `budget` times, then as a failure. Null: not
     * counted, because the cause is known (an orderly stop of the executor).
     */
    | {
        readonly type: "lost";
        readonly reason: string;
        readonly budget: number | null;
        readonly retryAt: number | null;
      }
  );

export type RunEvent =
  | AttemptEnd
  /** Admission gave it a new attempt and its slots: scheduled -> queued. */
  | ({ readonly type: "queued" } & OfAttempt)
  /** The slots were taken by another scheduler: queued -> scheduled, as if it had never been admitted. */
  | ({ readonly type: "unqueued" } & OfAttempt)
  | ({ readonly type: "started"; readonly at: number } & OfAttempt)
  /** The instance starts with a wait, under a new attempt: scheduled -> deferred, no worker needed. */
  | ({ readonly type: "startedWaiting"; readonly at: number; readonly wait: Wait } & OfAttempt)
  /** The trigger fired, or the wait timed out and the task handles the timeout: deferred -> scheduled, same try. */
  | ({ readonly type: "resumed" } & OfAttempt)
  | ({ readonly type: "retryDue" } & OfInstance)
  | ({ readonly type: "gateOpened" } & OfInstance)
  /** A signal, or the success of a task, for the signal rules of the run. */
  | { readonly type: "heard"; readonly heard: Fact }
  /** A tick or a manual command. */
  | ({ readonly type: "ordered" } & Command)
  /** Signals are ignored from now on: streaming tasks stop or never start, tasks that wait for a start are skipped. */
  | { readonly type: "closed"; readonly reason: string }
  /** The number of items of a map, beneath an item of its parent (-1: no parent). */
  | { readonly type: "expanded"; readonly mapId: string; readonly parent: number; readonly length: number }
  /** The map's input is not a list that it can run over. */
  | { readonly type: "unmappable"; readonly mapId: string; readonly parent: number; readonly reason: string }
  /**
   * The run ends now (cancelled, timed out, failed fast): running instances become `active`, other unfinished ones are
   * skipped. Teardowns continue.
   */
  | {
      readonly type: "halted";
      readonly at: number;
      readonly reason: string;
      readonly active: "success" | "failed" | "skipped";
    };
