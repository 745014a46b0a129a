/**
 * Effective priority. `absolute` is the task's own weight. `downstream` adds the weights of its descendants, each once;
 * `upstream` adds those of its ancestors.
 *
 * An exact sum over descendants needs quadratic memory. Up to EXACT_LIMIT tasks that is negligible, and the sum is exact.
 * Above, the weight is the task's own plus that of the heaviest chain after it (before it, for `upstream`): linear, equal to
 * the exact sum for a chain, and in the right order: ancestors before their descendants and the critical path first.
 */
import type { TaskManifest } from "@tradewind/sdk/manifest";

/** Maximum number of tasks for which every descendant is counted. */
export const EXACT_LIMIT = 2_000;

const MAX_WEIGHT = 2_147_483_647;

type Edges = readonly (readonly number[])[];

/** Tasks in topological order, edges by position. */
export function effectiveWeights(
  order: readonly TaskManifest[],
  upstream: Edges,
  downstream: Edges,
): number[] {
  const own = order.map((task) => task.priority);
  const forward = own.map((_, index) => index);
  const backward = [...forward].reverse();
  const sums = own.length <= EXACT_LIMIT ? exactSums : heaviestChains;
  const wants = (rule: TaskManifest["weightRule"]) => order.some((task) => task.weightRule === rule);
  const below = wants("downstream") ? sums(own, backward, downstream) : own;
  const above = wants("upstream") ? sums(own, forward, upstream) : own;
  return order.map((task, index) => {
    const weight = { absolute: own, downstream: below, upstream: above }[task.weightRule][index]!;
    return Math.max(-MAX_WEIGHT, Math.min(MAX_WEIGHT, weight));
  });
}

/** Own weight plus that of everything reachable over `edges`, each once. `visit` lists a node after its targets. */
function exactSums(own: readonly number[], visit: readonly number[], edges: Edges): number[] {
  const words = Math.ceil(own.length / 32);
  const reach = new Uint32Array(own.length * words);
  const sums = new Array<number>(own.length).fill(0);
  for (const index of visit) {
    const base = index * words;
    for (const target of edges[index]!) {
      const from = target * words;
      for (let w = 0; w < words; w++) reach[base + w]! |= reach[from + w]!;
      reach[base + (target >> 5)]! |= 1 << (target & 31);
    }
    let sum = own[index]!;
    for (let w = 0; w < words; w++) {
      for (let bits = reach[base + w]!; bits !== 0; bits &= bits - 1) {
        sum += own[w * 32 + (31 - Math.clz32(bits & -bits))]!;
      }
    }
    sums[index] = sum;
  }
  return sums;
}

function heaviestChains(own: readonly number[], visit: readonly number[], edges: Edges): number[] {
  const chains = new Array<number>(own.length).fill(0);
  for (const index of visit) {
    let best = 0;
    edges[index]!.forEach((target, n) => {
      best = n === 0 ? chains[target]! : Math.max(best, chains[target]!);
    });
    chains[index] = own[index]! + best;
  }
  return chains;
}
