/** The first of these that any instance has is that of the task. */
const ORDER = ["failed", "upstream_failed", "success", "skipped"] as const;

/**
 * How a task of a run that is over stands as a whole, of how its instances do. What was skipped of a map is not in its
 * list; all of it skipped, or an empty list, is a task that was skipped.
 */
export function wholeState(states: readonly string[]): (typeof ORDER)[number] | "none" {
  return ORDER.find((state) => states.includes(state)) ?? "none";
}
