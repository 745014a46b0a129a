/** An order of a graph's nodes that keeps chains and trees together. Pure. */
import type { VisibleGraph } from "./graph-model.ts";

/**
 * Depth first, from the first declared node without a parent. Chains and trees get no crossings, and siblings keep the order of
 * their declaration. A group is where its first node is.
 */
export function declaredOrder({ edges, nodes }: VisibleGraph): ReadonlyMap<string, number> {
  const declared = new Map(nodes.map(({ key }, index) => [key, index]));
  const groupOf = new Map(nodes.map(({ key, parent }) => [key, parent]));
  const next = new Map<string, string[]>();
  const targets = new Set<string>();
  for (const { from, to } of edges) {
    targets.add(to);
    const others = next.get(from);
    if (others === undefined) next.set(from, [to]);
    else others.push(to);
  }
  const order = new Map<string, number>();
  const visit = (root: string) => {
    const stack = [root];
    for (let key = stack.pop(); key !== undefined; key = stack.pop()) {
      if (order.has(key)) continue;
      const at = order.size;
      order.set(key, at);
      for (let group = groupOf.get(key) ?? null; group !== null; group = groupOf.get(group) ?? null)
        if (!order.has(group)) order.set(group, at);
      // The last one on the stack is visited first.
      const others = next.get(key) ?? [];
      stack.push(...others.toSorted((a, b) => declared.get(b)! - declared.get(a)!));
    }
  };
  const leaves = nodes.filter(({ kind }) => kind !== "open");
  for (const { key } of leaves) if (!targets.has(key)) visit(key);
  // Collapsed groups can make cycles, which have no node without a parent.
  for (const { key } of leaves) visit(key);
  return order;
}
