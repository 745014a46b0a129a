/**
 * Retries of a failed run: whether, when, and which tasks run again. Only a failure of tasks is retried: a run that timed
 * out has no time left, and a deadlocked run would deadlock again.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Graph, TaskNode } from "../graph/graph.ts";
import { commonDepth, type Scope } from "../graph/scope.ts";
import { setupScope } from "../graph/setups.ts";
import type { Instance } from "./instance.ts";
import type { InstanceTable, Spot } from "./instance-table.ts";
import type { RunVerdict } from "./run-verdict.ts";
import { FAILED } from "./states.ts";

/** When a run with this verdict is retried; null: it is not. */
export function runRetryAt(
  manifest: Pick<DagManifest, "runRetry">,
  run: { readonly tryNumber: number; readonly verdict: RunVerdict; readonly isTimedOut: boolean },
  now: number,
): number | null {
  const { isTimedOut, tryNumber, verdict } = run;
  if (!manifest.runRetry || isTimedOut || tryNumber > manifest.runRetry.retries) return null;
  const isFailure = verdict.state === "failed" && verdict.reason === "task_failure";
  return isFailure ? now + manifest.runRetry.delayMs : null;
}

/**
 * The failed instances and everything downstream of them; in a map, within the same items. Also the setups in whose scopes
 * they are, and the teardowns of these setups, because the resources were removed. A group with retries is one unit of work:
 * with one of its tasks all of them run again.
 */
export function failedAndAfter(table: InstanceTable, graph: Graph): Instance[] {
  const again = new Set<Instance>();
  const open = table.slots.flatMap(({ instances }) => instances.filter(({ state }) => FAILED.has(state)));
  for (let next = open.pop(); next; next = open.pop()) {
    if (again.has(next)) continue;
    again.add(next);
    open.push(...after(table, next), ...groupMates(table, next));
  }
  for (const each of setupsOf(table, graph, [...again])) again.add(each);
  return [...again];
}

/** The setups in whose scopes the instances are, and their teardowns: the instances never run again without them. */
export function setupsOf(table: InstanceTable, graph: Graph, instances: readonly Instance[]): Instance[] {
  const found = new Set<Instance>();
  const order = graph.nodes.map(({ manifest }) => manifest);
  const downstream = graph.nodes.map((node) => node.downstream);
  for (const setup of graph.nodes) {
    if (setup.manifest.role !== "setup") continue;
    const scope = setupScope(order, downstream, setup.index);
    const teardowns = graph.nodes.filter(({ manifest }) => manifest.teardown?.of === setup.id);
    for (const each of instances) {
      if (each.node !== setup && !scope.has(each.node.index)) continue;
      for (const node of [setup, ...teardowns]) for (const one of beside(table, each, node)) found.add(one);
    }
  }
  return [...found];
}

function* after(table: InstanceTable, instance: Instance): Iterable<Instance> {
  const { downstream } = instance.node;
  for (const index of downstream) yield* beside(table, instance, table.slots[index]!.node);
}

/** All instances in the enclosing groups with retries; within the same item if the group has one unit of work per item. */
export function* groupMates(table: InstanceTable, { level, node, ordinal }: Instance): Iterable<Instance> {
  const around = node.scope?.chain[level - 1] ?? null;
  for (let group = node.group; group !== null; group = group.parent) {
    if (group.retries === 0) continue;
    const depth = Math.min(group.depth, level);
    const spot = { level: depth, ordinal: table.expansions.ancestor(around, ordinal, depth) };
    for (const index of group.members) yield* table.beneath(table.slots[index]!, spot);
  }
}

/** The instances of another task in the items that both share. */
function* beside(
  table: InstanceTable,
  { level, node, ordinal }: Instance,
  other: TaskNode,
): Iterable<Instance> {
  const around: Scope | null = node.scope?.chain[level - 1] ?? null;
  const common = Math.min(commonDepth(node.scope, other.scope), level);
  const spot: Spot = { level: common, ordinal: table.expansions.ancestor(around, ordinal, common) };
  yield* table.beneath(table.slots[other.index]!, spot);
}
