/** All events of an owned run. Edits by users go to the store, and the run is reloaded. */

import type { Heard } from "../signal/signal-condition.ts";
import type { Wait } from "./instance.ts";
import type { Order } from "./orders.ts";

interface OfInstance {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** Counts only while `attempt` is the instance's current attempt. Instants are milliseconds. */
interface OfAttempt extends OfInstance {
  readonly attempt: string;
}

export type RunEvent =
  /** Admission gave it a new attempt and its slots: scheduled -> queued. */
  | ({ readonly type: "queued" } & OfAttempt)
  /** The slots were not available after all: queued -> scheduled, as if it had never been admitted. */
  | ({ readonly type: "unqueued" } & OfAttempt)
  | ({ readonly type: "started"; readonly at: number } & OfAttempt)
  /** `skip`: tasks that this one excludes; those not yet started are skipped at once. */
  | ({ readonly type: "succeeded"; readonly at: number; readonly skip: readonly string[] } & OfAttempt)
  | ({ readonly type: "skipped"; readonly at: number; readonly reason: string | null } & OfAttempt)
  /** Retried at `retryAt` (null: at once) if `retry` is set and tries are left. */
  | ({
      readonly type: "failed";
      readonly at: number;
      readonly retry: boolean;
      readonly retryAt: number | null;
      readonly reason: string | null;
    } & OfAttempt)
  | ({ readonly type: "deferred"; readonly at: number; readonly wait: Wait } & OfAttempt)
  /** It begins with a wait, under a new attempt: scheduled -> deferred, no worker needed. */
  | ({ readonly type: "startedWaiting"; readonly at: number; readonly wait: Wait } & OfAttempt)
  /** The trigger fired, or it timed out and the task handles the timeout: deferred -> scheduled, same try. */
  | ({ readonly type: "resumed" } & OfAttempt)
  | ({ readonly type: "rescheduled"; readonly at: number; readonly retryAt: number } & OfAttempt)
  /**
   * The attempt was lost through no fault of the task: same try again, up to `budget` times, then as a failure. Null:
   * certainly not the task's fault (an orderly stop), so not counted.
   */
  | ({
      readonly type: "lost";
      readonly at: number;
      readonly reason: string;
      readonly budget: number | null;
      readonly retryAt: number | null;
    } & OfAttempt)
  | ({ readonly type: "retryDue" } & OfInstance)
  | ({ readonly type: "gateOpened" } & OfInstance)
  /** An input for the rules of the run, if it has any. */
  | { readonly type: "heard"; readonly heard: Heard }
  /** A request of a tick or a user. */
  | ({ readonly type: "ordered" } & Order)
  /** Signals no longer count: streaming tasks stop or never start, tasks without their start are skipped. */
  | { readonly type: "closed"; readonly reason: string }
  /** The length of a map within an item of its parent (-1: no parent) is known. */
  | { readonly type: "expanded"; readonly mapId: string; readonly parent: number; readonly length: number }
  /** The map cannot run over its source value. */
  | { readonly type: "unmappable"; readonly mapId: string; readonly parent: number; readonly reason: string }
  /** The run ends now: active instances become `active`, other unfinished ones are skipped, teardowns continue. */
  | {
      readonly type: "halted";
      readonly at: number;
      readonly reason: string;
      readonly active: "success" | "failed" | "skipped";
    };
