/**
 * The possible end states of each task of a scripted DAG, over all orders of events: rules decide as early as possible, so a
 * task after a failure and a skip may end either way. The sets are sound (they contain every actual end), and most have one
 * element. For tests of the whole system, which do not control the order. Mapped and gated tasks are not covered.
 */
import type { TaskManifest } from "@tradewind/sdk/manifest";
import type { RandomDag, TaskScript } from "./random-dag.ts";
import { type EndState, judgeByRule, type ReferenceState } from "./reference-rules.ts";

export function possibleEnds(dag: RandomDag): ReadonlyMap<string, ReadonlySet<EndState>> {
  const ends = new Map<string, ReadonlySet<EndState>>();
  const tasks = new Map(dag.manifest.tasks.map((task) => [task.taskId, task]));
  const endsOf = (task: TaskManifest): ReadonlySet<EndState> => {
    const known = ends.get(task.taskId);
    if (known) return known;
    const upstream = task.upstream.map((id) => ({
      ends: endsOf(tasks.get(id)!),
      isSetup: tasks.get(id)!.role === "setup",
    }));
    const found = new Set<EndState>();
    for (const verdict of possibleVerdicts(task, upstream)) {
      found.add(verdict === "run" ? scriptedEnd(task, dag.scripts.get(task.taskId)!) : verdict);
    }
    const isRuledOut = [...dag.scripts].some(
      ([id, script]) => script.skip.includes(task.taskId) && endsOf(tasks.get(id)!).has("success"),
    );
    if (isRuledOut) found.add("skipped");
    ends.set(task.taskId, found);
    return found;
  };
  for (const task of dag.manifest.tasks) endsOf(task);
  return ends;
}

/** The end state of a task that runs, if lost attempts never use up a try. */
export function scriptedEnd(task: TaskManifest, script: TaskScript): EndState {
  for (let tryNumber = 1; ; tryNumber++) {
    const outcome = script.tries[Math.min(tryNumber, script.tries.length) - 1]!;
    if (outcome === "success") return "success";
    if (outcome === "skip") return "skipped";
    if (outcome === "failureForGood" || tryNumber > task.retries) return "failed";
  }
}

interface Upstream {
  readonly ends: ReadonlySet<EndState>;
  readonly isSetup: boolean;
}

/** The first verdicts of the rule, over all orders and all end states of the upstream tasks. */
function possibleVerdicts(task: TaskManifest, upstream: readonly Upstream[]): Set<"run" | EndState> {
  const found = new Set<"run" | EndState>();
  const seen = new Set<string>();
  const explore = (states: readonly ReferenceState[]): void => {
    const key = states.join();
    if (seen.has(key)) return;
    seen.add(key);
    const verdict = judgeByRule(task.rule, { states, setups: states.filter((_, n) => upstream[n]!.isSetup) });
    if (verdict !== "wait") {
      found.add(verdict);
      return;
    }
    states.forEach((state, n) => {
      if (state !== "pending") return;
      for (const end of upstream[n]!.ends) explore(states.with(n, end));
    });
  };
  explore(upstream.map(() => "pending"));
  return found;
}
