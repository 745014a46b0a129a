/** Turns the rows of a run into instances. Tasks without a row get new instances; rows of unknown tasks are ignored. */

import type { Graph, TaskNode } from "../graph/graph.ts";
import { unexpandedIndex } from "../graph/scope.ts";
import type { ExpansionRow } from "../map/expansions.ts";
import { type Instance, type InstanceRow, newInstance, storedInstance } from "./instance.ts";
import { InstanceTable, type Slot, type Spot } from "./instance-table.ts";

export function loadTable(
  graph: Graph,
  rows: readonly InstanceRow[],
  expanded: readonly ExpansionRow[],
): InstanceTable {
  const table = new InstanceTable(graph);
  const scopes = new Map(graph.scopes.map((scope) => [scope.id, scope]));
  for (const { mapId, ...row } of expanded) {
    const scope = scopes.get(mapId);
    if (scope) table.expansions.restore({ ...row, scope, made: 0 });
  }
  const stored = new Map<TaskNode, Instance[]>();
  for (const row of rows) {
    const node = graph.byId.get(row.taskId);
    if (!node) continue;
    const instance = storedInstance(node, row);
    if (node.scope) recordItem(table, instance);
    const known = stored.get(node);
    if (known) known.push(instance);
    else stored.set(node, [instance]);
  }
  for (const slot of table.slots) {
    const own = stored.get(slot.node) ?? [];
    if (slot.node.scope === null) {
      table.add(slot, [own.find(({ mapIndex }) => mapIndex < 0) ?? newInstance(slot.node, -1)]);
      continue;
    }
    const byIndex = new Map(own.map((instance) => [instance.mapIndex, instance]));
    table.add(slot, [...populate(table, { slot, stored: byIndex }, { level: 0, ordinal: -1 })]);
  }
  for (const scope of graph.scopes) {
    for (const expansion of table.expansions.of(scope))
      table.expect(expansion, expansion.length - expansion.made);
  }
  return table;
}

/** If any task has a row for an item, that item and all items before it are created. */
function recordItem(table: InstanceTable, { level, node, ordinal }: Instance): void {
  let at = ordinal;
  for (let scope = node.scope?.chain[level - 1] ?? null; scope !== null; scope = scope.parent) {
    const expansion = table.expansions.around(scope, at);
    if (!expansion || at >= expansion.base + expansion.length) return;
    expansion.made = Math.max(expansion.made, at - expansion.base + 1);
    at = expansion.parent;
  }
}

/**
 * The instances of a task in an item, or their stand-in. If the stand-in was cleared after its map was expanded, mapping.ts
 * replaces it, so that its row is deleted in the same change.
 */
function* populate(
  table: InstanceTable,
  of: { readonly slot: Slot; readonly stored: ReadonlyMap<number, Instance> },
  { level, ordinal }: Spot,
): Iterable<Instance> {
  const { node } = of.slot;
  const depth = node.scope?.depth ?? 0;
  if (level === depth) {
    yield of.stored.get(ordinal) ?? newInstance(node, ordinal);
    return;
  }
  const mapIndex = unexpandedIndex(depth, level, ordinal);
  const standIn = of.stored.get(mapIndex);
  const expansion = table.expansions.find({ scope: node.scope!.chain[level]!, parent: ordinal });
  if (!expansion || standIn) {
    yield standIn ?? newInstance(node, mapIndex);
    return;
  }
  for (let index = 0; index < expansion.made; index++)
    yield* populate(table, of, { level: level + 1, ordinal: expansion.base + index });
}
