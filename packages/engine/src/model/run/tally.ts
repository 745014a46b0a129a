/** Counts of a run's instances, updated with each change. */

import type { Counters } from "../graph/trigger-rules.ts";
import type { Instance } from "./instance.ts";
import { ALL_TASK_STATES, isFinished, TASK_STATES, type TaskState } from "./states.ts";

export class Tally {
  readonly byState = Object.fromEntries(ALL_TASK_STATES.map((state) => [state, 0])) as Record<
    TaskState,
    number
  >;
  unfinished = 0;
  failedLeaves = 0;
  /** Instances in state none that their rule allows to run, but that are held: for earlier runs, a map length or a start. */
  held = 0;
  /** Instances of expanded maps that are still to be created. */
  unmade = 0;
  /** Groups that have failed and wait for their next try. */
  retrying = 0;

  /** Every unfinished instance that was scheduled at least. */
  get active(): number {
    return this.unfinished - this.byState.pending;
  }

  enter(instance: Instance, by = 1): void {
    const { state } = instance;
    this.byState[state] += by;
    if (!isFinished(state)) this.unfinished += by;
    if (instance.node.isLeaf && TASK_STATES[state].failed) this.failedLeaves += by;
  }

  leave(instance: Instance): void {
    this.enter(instance, -1);
  }
}

/** Counts `by` upstream instances that ended in `state`; unfinished ones count in `total` only. */
export function book(
  counters: Counters,
  state: TaskState,
  ended: { readonly by: number; readonly setup: boolean },
): void {
  const { by, setup } = ended;
  switch (state) {
    case "success":
      counters.success += by;
      if (setup) counters.setupSuccess += by;
      return;
    case "skipped":
      counters.skipped += by;
      if (setup) counters.setupSkipped += by;
      return;
    case "failed":
      counters.failed += by;
      if (setup) counters.setupFailed += by;
      return;
    case "upstream_failed":
      counters.upstreamFailed += by;
      if (setup) counters.setupFailed += by;
      return;
    case "removed":
      counters.removed += by;
      return;
  }
}
