import type { Tally } from "./tally.ts";

export type RunVerdict =
  | { readonly state: "running" }
  | { readonly state: "success" }
  | { readonly state: "failed"; readonly reason: "task_failure" | "all_tasks_deadlocked" };

/** How a run ends, whatever its tasks say, when nothing is left to do in it: it is out of time, or somebody has ended it. */
export interface RunEnding {
  readonly state: "success" | "failed";
  readonly reason: string | null;
}

/** How a run stands: O(1), by its tally alone. A task that waits is active, so a run of waiting tasks is no deadlock. */
export function runVerdict(tally: Readonly<Tally>): RunVerdict {
  const { active, failedLeaves, held, retrying, unfinished, unmade } = tally;
  if (unmade > 0 || retrying > 0) return { state: "running" };
  if (unfinished === 0) {
    return failedLeaves > 0 ? { state: "failed", reason: "task_failure" } : { state: "success" };
  }
  if (active === 0 && held === 0) return { state: "failed", reason: "all_tasks_deadlocked" };
  return { state: "running" };
}
