import type { TaskState } from "../run/states.ts";

/** The first of these states that any instance has is the state of the task. */
const ORDER = ["failed", "upstream_failed", "success", "skipped"] as const;

/**
 * The state of a task as a whole in an ended run, from the states of its instances. Skipped items of a map do not count,
 * unless all items were skipped or the list was empty: then the task is skipped.
 */
export function wholeState(states: readonly string[]): (typeof ORDER)[number] | "pending" {
  return ORDER.find((state) => states.includes(state)) ?? "pending";
}

/** For instances that have not all ended: failures first, then what is being done, then what is still to do. */
const WORST: readonly TaskState[] = [
  ...["failed", "upstream_failed", "up_for_retry", "restarting", "running", "up_for_reschedule"],
  ...["deferred", "queued", "scheduled", "pending", "success", "skipped", "removed"],
] as const satisfies readonly TaskState[];

/** The state that stands for all instances of a mapped task, also while some of them still run. */
export function worstState(states: readonly TaskState[]): TaskState {
  return WORST.find((state) => states.includes(state)) ?? "pending";
}
