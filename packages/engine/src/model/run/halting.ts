import type { TaskState } from "./states.ts";

const UNDER_WAY: ReadonlySet<TaskState> = new Set(["running", "restarting", "deferred", "up_for_reschedule"]);

/**
 * The state of an unfinished instance when its run is halted: an active instance gets the state `active`, any other is
 * skipped. An instance in `up_for_retry` has failed, and stays failed if `active` is "failed".
 */
export function haltedAs(state: TaskState, active: TaskState): TaskState {
  const hasFailed = state === "up_for_retry" && active === "failed";
  return hasFailed || UNDER_WAY.has(state) ? active : "skipped";
}
