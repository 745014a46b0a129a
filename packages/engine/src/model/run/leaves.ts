/** The tasks whose ends decide how a run, or a group of tasks, has ended. */
import type { TaskManifest } from "@tradewind/sdk/manifest";

/**
 * Tasks without downstream, where teardowns count neither as downstream nor as leaves: a failing clean-up does not
 * fail the run. If nothing but teardowns is left at the end, plain leaves decide. `among`: of these tasks alone.
 */
export function runLeaves(
  order: readonly TaskManifest[],
  downstream: readonly (readonly number[])[],
  among: ReadonlySet<number> | null = null,
): Set<number> {
  const isTeardown = (index: number) =>
    order[index]!.role === "teardown" && order[index]!.teardown?.failsRun !== true;
  const all = among ? [...among] : order.map((_, index) => index);
  const after = (index: number) =>
    among ? downstream[index]!.filter((next) => among.has(next)) : downstream[index]!;
  const leaves = all.filter((index) => !isTeardown(index) && after(index).every(isTeardown));
  return new Set(leaves.length > 0 ? leaves : all.filter((index) => after(index).length === 0));
}
