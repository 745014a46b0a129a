/** The tasks whose final states decide the state of a run or a group. */
import type { TaskManifest } from "@tradewind/sdk/manifest";

/**
 * Tasks without downstream. Teardowns count neither as downstream nor as leaves: a failed teardown does not fail the run. If
 * only teardowns are left, plain leaves decide. `among`: restricts the search to these tasks.
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
