/** Numbers about a run's instances that are kept up to date change by change, so that nobody has to count. */

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
  /** In state none, let through by their rule, but held: by the past, or until the length of a mapping is known. */
  held = 0;
  /** Instances of expanded maps that are still to be made. */
  unmade = 0;
  /** Groups that have failed and wait for their next try. */
  retrying = 0;

  /** Under way in any sense: every unfinished instance that was let through. */
  get active(): number {
    return this.unfinished - this.byState.none;
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

/** Books `by` instances of an upstream that ended in `state`; unfinished ones are in `total` only. */
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
