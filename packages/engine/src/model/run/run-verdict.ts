import type { Tally } from "./tally.ts";

export type RunVerdict =
  | { readonly state: "running" }
  | { readonly state: "success" }
  | { readonly state: "failed"; readonly reason: "task_failure" | "all_tasks_deadlocked" };

/** How a run ends once no work is left, in any state of its tasks: it timed out or was ended manually. */
export interface RunEnding {
  readonly state: "success" | "failed";
  readonly reason: string | null;
}

/** The verdict from the tally alone, O(1). A waiting task is active: a run of waiting tasks is not deadlocked. */
export function runVerdict(tally: Readonly<Tally>): RunVerdict {
  const { active, failedLeaves, held, retrying, unfinished, unmade } = tally;
  if (unmade > 0 || retrying > 0) return { state: "running" };
  if (unfinished === 0) {
    return failedLeaves > 0 ? { state: "failed", reason: "task_failure" } : { state: "success" };
  }
  if (active === 0 && held === 0) return { state: "failed", reason: "all_tasks_deadlocked" };
  return { state: "running" };
}
