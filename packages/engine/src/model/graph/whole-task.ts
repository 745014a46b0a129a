/** The first of these states that any instance has is the state of the task. */
const ORDER = ["failed", "upstream_failed", "success", "skipped"] as const;

/**
 * The state of a task as a whole in an ended run, from the states of its instances. Skipped items of a map do not count,
 * unless all items were skipped or the list was empty: then the task is skipped.
 */
export function wholeState(states: readonly string[]): (typeof ORDER)[number] | "pending" {
  return ORDER.find((state) => states.includes(state)) ?? "pending";
}
