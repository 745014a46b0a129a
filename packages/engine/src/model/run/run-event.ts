/** Everything that can happen to a run while it is owned. Edits by people go to the store, and the run is reloaded. */

import type { Heard } from "../signal/signal-condition.ts";
import type { Wait } from "./instance.ts";
import type { Order } from "./orders.ts";

interface OfInstance {
  readonly taskId: string;
  readonly mapIndex: number;
}

/** Counts only while `attempt` is the instance's current one. Instants are milliseconds. */
interface OfAttempt extends OfInstance {
  readonly attempt: string;
}

export type RunEvent =
  /** Admission gave it a new attempt and its slots: scheduled -> queued. */
  | ({ readonly type: "queued" } & OfAttempt)
  /** The slots could not be had after all: queued -> scheduled, as if it had never been admitted. */
  | ({ readonly type: "unqueued" } & OfAttempt)
  | ({ readonly type: "started"; readonly at: number } & OfAttempt)
  /** `skip`: tasks that this one rules out; those not yet started are skipped at once. */
  | ({ readonly type: "succeeded"; readonly at: number; readonly skip: readonly string[] } & OfAttempt)
  | ({ readonly type: "skipped"; readonly at: number; readonly reason: string | null } & OfAttempt)
  /** Tried again at `retryAt` (null: at once) if `retry` and tries are left. */
  | ({
      readonly type: "failed";
      readonly at: number;
      readonly retry: boolean;
      readonly retryAt: number | null;
      readonly reason: string | null;
    } & OfAttempt)
  | ({ readonly type: "deferred"; readonly at: number; readonly wait: Wait } & OfAttempt)
  /** It begins by waiting, under a new attempt: scheduled -> deferred, no worker needed. */
  | ({ readonly type: "startedWaiting"; readonly at: number; readonly wait: Wait } & OfAttempt)
  /** The trigger fired, or its time ran out and the task wants to know: deferred -> scheduled, same try. */
  | ({ readonly type: "resumed" } & OfAttempt)
  | ({ readonly type: "rescheduled"; readonly at: number; readonly retryAt: number } & OfAttempt)
  /**
   * The attempt ended by no fault of the task: same try again, up to `budget` times, then as a failure. Null: known
   * to be no fault of the task (an orderly stop), so not counted.
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
  /** To be put to the rules of the run, if it has any. */
  | { readonly type: "heard"; readonly heard: Heard }
  /** A tick or a person asks for it. */
  | ({ readonly type: "ordered" } & Order)
  /** Nothing is heard any more: streaming tasks are stopped or never begin, what waits for a start is skipped, the rest goes on. */
  | { readonly type: "closed"; readonly reason: string }
  /** It is known over how many items a map runs, beneath an item of its parent (-1: it has none). */
  | { readonly type: "expanded"; readonly mapId: string; readonly parent: number; readonly length: number }
  /** It is known that it cannot run over what it was given. */
  | { readonly type: "unmappable"; readonly mapId: string; readonly parent: number; readonly reason: string }
  /**
   * The run is to end now (cancelled, timed out, failed fast): what is under way becomes `active`, all else that is
   * unfinished is skipped. Teardowns go on.
   */
  | {
      readonly type: "halted";
      readonly at: number;
      readonly reason: string;
      readonly active: "success" | "failed" | "skipped";
    };
