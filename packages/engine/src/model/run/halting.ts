import type { TaskState } from "./states.ts";

const UNDER_WAY: ReadonlySet<TaskState> = new Set(["running", "restarting", "deferred", "up_for_reschedule"]);

/**
 * What becomes of an unfinished instance of a run that is ended: what is under way takes the state it is ended with, the rest
 * is skipped. What waits for its next try has failed, and in a run that fails that is what remains of it.
 */
export function haltedAs(state: TaskState, active: TaskState): TaskState {
  const hasFailed = state === "up_for_retry" && active === "failed";
  return hasFailed || UNDER_WAY.has(state) ? active : "skipped";
}
