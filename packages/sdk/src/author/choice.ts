/**
 * The tasks that a branch or a short-circuit skips. A teardown is never among them: it has to remove the resource of
 * its setup. If the setup itself is skipped, the rule of the teardown skips the teardown.
 */

import { show, TaskError } from "../check/errors.ts";
import type { TaskOutcome } from "../runtime/program.ts";
import type { BranchTarget } from "./builder.ts";
import { ownerOf } from "./handle.ts";
import { type DagPlan, reachable } from "./plan.ts";

/** Skips the direct downstream tasks that were not chosen, except tasks that a chosen one reaches. */
export function branchOutcome(plan: DagPlan, taskId: string, result: unknown): TaskOutcome {
  const direct = plan.downstream.get(taskId) ?? [];
  const targets = result === undefined || result === null ? [] : Array.isArray(result) ? result : [result];
  const chosen = new Set(targets.flatMap((target) => chosenIds(plan, { taskId, direct, target })));
  const kept = reachable(plan, chosen);
  return {
    kind: "success",
    output: [...chosen],
    skip: direct.filter((id) => !chosen.has(id) && !kept.has(id) && !isTeardown(plan, id)),
  };
}

/** If the condition is false: skips everything downstream, or only the direct tasks. */
export function shortCircuitOutcome(
  plan: DagPlan,
  taskId: string,
  condition: { readonly met: boolean; readonly respectRules: boolean },
): TaskOutcome {
  const downstream = condition.respectRules ? (plan.downstream.get(taskId) ?? []) : reachable(plan, [taskId]);
  const skip = condition.met ? [] : [...downstream].filter((id) => !isTeardown(plan, id));
  return { kind: "success", output: condition.met, skip };
}

function isTeardown(plan: DagPlan, id: string): boolean {
  return plan.tasks.get(id)?.role === "teardown";
}

/**
 * A branch can choose direct downstream tasks only: otherwise it would skip the path to its choice. A group stands for
 * its tasks that are directly downstream of the branch.
 */
function chosenIds(
  plan: DagPlan,
  branch: { readonly taskId: string; readonly direct: readonly string[]; readonly target: BranchTarget },
): readonly string[] {
  const { taskId, direct, target } = branch;
  const name = targetName(plan, target);
  if (name !== null && direct.includes(name)) return [name];
  if (name !== null && plan.groups.has(name)) {
    const entries = direct.filter((id) => isInside(plan, plan.tasks.get(id)!.group, name));
    if (entries.length > 0) return entries;
  }
  throw new TaskError(
    "TW_BRANCH_TARGET",
    `branch "${taskId}" chose ${name === null ? show(target) : show(name)}, which is not directly downstream of it; ` +
      `choose among ${direct.map(show).join(", ") || "nothing: no task comes after it"}`,
  );
}

function targetName(plan: DagPlan, target: BranchTarget): string | null {
  if (typeof target === "string") return target;
  if (ownerOf(target) !== plan.owner) return null;
  return target.kind === "group" ? target.groupId : target.taskId;
}

function isInside(plan: DagPlan, group: string | null, ancestor: string): boolean {
  for (let id = group; id !== null; id = plan.groups.get(id)!.manifest.parent)
    if (id === ancestor) return true;
  return false;
}
