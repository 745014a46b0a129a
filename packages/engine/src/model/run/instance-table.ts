/**
 * All instances of one run with the derived data: the counts of upstream states, the run's tally, the agenda of tasks to
 * evaluate again, and the list of changes to store. It only keeps records; run.ts decides.
 */

import type { Graph, TaskNode } from "../graph/graph.ts";
import type { GroupNode } from "../graph/group-node.ts";
import { Groups } from "../graph/groups.ts";
import { unexpandedIndex } from "../graph/scope.ts";
import { Standing } from "../graph/standing.ts";
import { type Counters, judge, type Verdict } from "../graph/trigger-rules.ts";
import { type Expansion, Expansions, type ScopePlace } from "../map/expansions.ts";
import { Heap } from "../pool/heap.ts";
import { ChangeList } from "./change-list.ts";
import { ModelError } from "./errors.ts";
import type { Change, Instance } from "./instance.ts";
import { isHeld } from "./instance.ts";
import type { ScopeSlot, Slot, Spot } from "./slot.ts";
import { isFinished, type TaskState } from "./states.ts";
import { book, Tally } from "./tally.ts";
import { mayMove } from "./transitions.ts";

export type { ScopeSlot, Slot, Spot } from "./slot.ts";

/** A place where the state of an instance is counted. */
interface Edge {
  readonly counters: Counters;
  /** The end counts only once this group has ended. */
  readonly cover: GroupNode | null;
  readonly reconsider: () => void;
}

/** Edges by the number of scopes that both ends share. */
interface EdgeRange {
  readonly from?: number;
  readonly to?: number;
}

export class InstanceTable {
  readonly counts = new Tally();
  /** By node index. */
  readonly slots: readonly Slot[];
  /** By scope index. */
  readonly scopes: readonly ScopeSlot[];
  readonly expansions: Expansions;
  /** null: no group has retries, callbacks or notices. */
  readonly groups: Groups | null;
  readonly #graph: Graph;
  readonly #agenda = new Heap<number>((a, b) => a < b);
  readonly #changes = new ChangeList();

  constructor(graph: Graph) {
    this.#graph = graph;
    this.slots = graph.nodes.map((node) => {
      const byIndex = node.scope !== null && node.scope.depth > 1 ? new Map<number, Instance>() : null;
      return { node, standing: new Standing(), guard: null, instances: [], byIndex, idle: 0, due: null };
    });
    this.scopes = graph.scopes.map((scope) => ({ scope, standing: new Standing(), due: new Set() }));
    for (const { guards } of graph.nodes)
      for (const { index } of guards) this.slots[index]!.guard ??= new Standing();
    this.expansions = new Expansions(graph.scopes.length);
    this.groups = graph.groups.length > 0 ? new Groups(graph.groups, this) : null;
  }

  get(taskId: string, mapIndex: number): Instance | undefined {
    const slot = this.slotOf(taskId);
    return slot && find(slot, mapIndex);
  }

  slotOf(taskId: string): Slot | undefined {
    const node = this.#graph.byId.get(taskId);
    return node && this.slots[node.index];
  }

  countersOf(instance: Instance): Counters {
    return this.#seen(this.slots[instance.node.index]!.standing, instance);
  }

  /** Its setups are evaluated first, then its rule. */
  verdictOn(instance: Instance): Verdict {
    const { guard } = this.slots[instance.node.index]!;
    const guarded = guard ? judge("allSuccess", this.#seen(guard, instance)) : "run";
    if (guarded !== "run") return guarded;
    return judge(instance.node.manifest.rule, this.countersOf(instance));
  }

  #seen(standing: Standing, { level, node, ordinal }: Instance): Counters {
    if (standing.isShared) return standing.shared;
    const scope = node.scope?.chain[level - 1] ?? null;
    return standing.seenFrom(level, (each) => this.expansions.ancestor(scope, ordinal, each));
  }

  /** The states of the sources of a map. */
  sourcesOf({ scope, parent }: ScopePlace): Counters {
    const { standing } = this.scopes[scope.index]!;
    return standing.seenFrom(scope.depth - 1, (each) => this.expansions.ancestor(scope.parent, parent, each));
  }

  /** The only place where a state changes. */
  move(instance: Instance, to: TaskState): void {
    const from = instance.state;
    if (!mayMove(from, to)) {
      throw new ModelError(
        "MODEL_ILLEGAL_MOVE",
        `Task "${instance.node.id}[${instance.mapIndex}]" cannot change from ${from} to ${to}. This is a bug in the engine.`,
      );
    }
    this.releaseGate(instance);
    const slot = this.#slot(instance);
    if (from === "pending") slot.idle--;
    if (instance.node.group !== null && isFinished(from)) this.groups!.reopen(instance);
    this.#bookDownstream(instance, -1);
    this.#count(instance, -1);
    instance.state = to;
    this.#count(instance, 1);
    this.#bookDownstream(instance, 1);
    if (to === "pending") slot.idle++;
    this.#changes.add(instance);
  }

  /** Keeps an instance in state none although its rule allows it to run. */
  hold(instance: Instance, gate: "waiting" | "expanding" | "signal"): void {
    instance.gate = gate;
    this.counts.held++;
    this.#slot(instance).idle--;
  }

  releaseGate(instance: Instance): void {
    if (!isHeld(instance)) return;
    instance.gate = "none";
    this.counts.held--;
    this.#slot(instance).idle++;
  }

  /** Adds instances of a task. `edges`: the edges on which their number is not counted yet. */
  add(slot: Slot, instances: Instance[], edges: EdgeRange = {}): void {
    // Reuses the array if possible: an array grown by one reserves room for 17, which adds up with 100,000 tasks.
    if (slot.instances.length === 0) slot.instances = instances;
    else for (const instance of instances) slot.instances.push(instance);
    let position = slot.instances.length - instances.length;
    for (const instance of instances) {
      instance.position = position++;
      slot.byIndex?.set(instance.mapIndex, instance);
      this.#bookTotal(instance, 1, edges);
      this.counts.enter(instance);
      if (instance.node.group !== null) this.groups!.enter(instance, 1);
      if (instance.state === "pending") slot.idle++;
      if (instance.committed === null) this.#changes.add(instance);
      this.#bookDownstream(instance, 1);
    }
  }

  /** Removes an instance that is no longer needed. */
  drop(instance: Instance): void {
    const slot = this.#slot(instance);
    this.releaseGate(instance);
    this.#bookDownstream(instance, -1);
    this.counts.leave(instance);
    if (instance.node.group !== null) this.groups!.enter(instance, -1);
    if (instance.state === "pending") slot.idle--;
    this.#bookTotal(instance, -1, {});
    slot.byIndex?.delete(instance.mapIndex);
    const last = slot.instances.pop()!;
    if (last !== instance) {
      slot.instances[instance.position] = last;
      last.position = instance.position;
    }
    instance.position = -1;
  }

  /** The stand-in for all future or unneeded instances of a task in an item. */
  standIn(slot: Slot, { level, ordinal }: Spot): Instance | undefined {
    const depth = slot.node.scope?.depth ?? 0;
    return level < depth ? find(slot, unexpandedIndex(depth, level, ordinal)) : undefined;
  }

  /** Whether a stand-in in the item or an enclosing item replaces the instances of a task. */
  hasStandIn(slot: Slot, spot: Spot): boolean {
    const scope = slot.node.scope?.chain[spot.level - 1] ?? null;
    for (let level = spot.level; level >= 0; level--) {
      const ordinal = this.expansions.ancestor(scope, spot.ordinal, level);
      if (this.standIn(slot, { level, ordinal })) return true;
    }
    return false;
  }

  /** All instances of a task in an item. */
  *beneath(slot: Slot, spot: Spot): Iterable<Instance> {
    const { level, ordinal } = spot;
    const { scope } = slot.node;
    const depth = scope?.depth ?? 0;
    const one = level === depth ? find(slot, depth === 0 ? -1 : ordinal) : this.standIn(slot, spot);
    if (one) yield one;
    if (level === depth) return;
    const expansion = this.expansions.find({ scope: scope!.chain[level]!, parent: ordinal });
    for (let index = 0; index < (expansion?.made ?? 0); index++)
      yield* this.beneath(slot, { level: level + 1, ordinal: expansion!.base + index });
  }

  reconsider(slot: Slot): void {
    if (slot.idle === 0) return;
    if (slot.due === null) this.#agenda.push(slot.node.index);
    slot.due = "all";
  }

  reconsiderOne(instance: Instance): void {
    const slot = this.#slot(instance);
    if (slot.due === "all" || instance.state !== "pending") return;
    if (slot.due !== null) slot.due.push(instance);
    else {
      slot.due = [instance];
      this.#agenda.push(slot.node.index);
    }
  }

  get hasAgenda(): boolean {
    return this.#agenda.peek() !== undefined || this.scopes.some(({ due }) => due.size > 0);
  }

  /** The first task to evaluate again, in topological order, and its instances to evaluate. */
  nextOnAgenda(): { readonly slot: Slot; readonly instances: readonly Instance[] } | undefined {
    const index = this.#agenda.pop();
    if (index === undefined) return undefined;
    const slot = this.slots[index]!;
    const instances = slot.due === "all" ? slot.instances : (slot.due ?? []);
    slot.due = null;
    return { slot, instances };
  }

  drainChanges(): Change[] {
    return this.#changes.drain((each) => this.get(each.node.id, each.mapIndex) === each);
  }

  restoreChanges(changes: readonly Change[]): void {
    this.#changes.restore(changes);
  }

  #slot(instance: Instance): Slot {
    return this.slots[instance.node.index]!;
  }

  #count(instance: Instance, by: 1 | -1): void {
    this.counts.enter(instance, by);
    if (instance.node.group !== null) this.groups!.count(instance, by);
  }

  /** The ends of the instances of a group start (1) or stop (-1) counting outside of it. */
  bookCovered(group: GroupNode, instances: Iterable<Instance>, by: 1 | -1): void {
    for (const instance of instances) {
      const { node, state } = instance;
      if (!isFinished(state)) continue;
      for (const { counters, cover, reconsider } of this.#edges(node, instance)) {
        if (cover !== group) continue;
        book(counters, state, { by, setup: node.manifest.role === "setup" });
        reconsider();
      }
    }
  }

  /** O(direct downstream) for a final state; otherwise free. */
  #bookDownstream(instance: Instance, by: 1 | -1): void {
    const { state, node } = instance;
    if (!isFinished(state)) return;
    const ended = { by, setup: node.manifest.role === "setup" };
    if (node.scope === null && node.covers === null && node.feeds.length === 0 && node.guards.length === 0) {
      // The fast path of nearly all tasks: every edge has level 0.
      for (const index of node.downstream) {
        const slot = this.slots[index]!;
        book(slot.standing.shared, state, ended);
        this.reconsider(slot);
      }
      return;
    }
    for (const { counters, cover, reconsider } of this.#edges(node, instance)) {
      if (cover && this.groups!.isHidden(cover, instance)) continue;
      book(counters, state, ended);
      reconsider();
    }
  }

  /** Adds `by` instances of a task to the totals of its edges. */
  #bookTotal(
    { level, node, ordinal }: Pick<Instance, "level" | "node" | "ordinal">,
    by: number,
    edges: EdgeRange,
  ): void {
    const isSetup = node.manifest.role === "setup";
    for (const { counters } of this.#edges(node, { level, ordinal }, edges)) {
      counters.total += by;
      if (isSetup) counters.setupTotal += by;
    }
  }

  /** Where an instance is counted. A stand-in counts for every instance in its item, at any depth. */
  *#edges(
    node: TaskNode,
    spot: Spot,
    { from = 0, to = Number.POSITIVE_INFINITY }: EdgeRange = {},
  ): Iterable<Edge> {
    const { covers, downstream, feeds, guards, levels, scope } = node;
    const around = scope?.chain[spot.level - 1] ?? null;
    const at = (edge: number) => {
      const level = Math.min(edge, spot.level);
      return { level, ordinal: this.expansions.ancestor(around, spot.ordinal, level) };
    };
    const isWanted = (level: number) => level >= from && level <= to;
    for (let edge = 0; edge < downstream.length; edge++) {
      if (!isWanted(levels[edge]!)) continue;
      const slot = this.slots[downstream[edge]!]!;
      const item = at(levels[edge]!);
      const counters = slot.standing.at(item.level, item.ordinal);
      const cover = covers?.downstream[edge] ?? null;
      yield { counters, cover, reconsider: () => this.#reconsiderIn(slot, item) };
    }
    for (const [edge, { index, level }] of guards.entries()) {
      if (!isWanted(level)) continue;
      const slot = this.slots[index]!;
      const item = at(level);
      yield {
        counters: slot.guard!.at(item.level, item.ordinal),
        cover: covers?.guards[edge] ?? null,
        reconsider: () => this.#reconsiderIn(slot, item),
      };
    }
    for (const [edge, feed] of feeds.entries()) {
      if (!isWanted(feed.level)) continue;
      const slot = this.scopes[feed.scope.index]!;
      const item = at(feed.level);
      const counters = slot.standing.at(item.level, item.ordinal);
      const cover = covers?.feeds[edge] ?? null;
      yield { counters, cover, reconsider: () => this.#reconsiderMap(slot, item) };
    }
  }

  #reconsiderIn(slot: Slot, spot: Spot): void {
    if (spot.level === 0) this.reconsider(slot);
    else for (const each of this.beneath(slot, spot)) this.reconsiderOne(each);
  }

  /** For every expansion within an item. */
  #reconsiderMap(slot: ScopeSlot, { level, ordinal }: Spot): void {
    const { due, scope } = slot;
    if (level === scope.depth - 1) {
      due.add(ordinal);
      return;
    }
    const expansion = this.expansions.find({ scope: scope.chain[level]!, parent: ordinal });
    for (let index = 0; index < (expansion?.made ?? 0); index++)
      this.#reconsiderMap(slot, { level: level + 1, ordinal: expansion!.base + index });
  }

  /** Announces items of an expanded map that are still to be created: gathering tasks count them at once. */
  expect(expansion: Expansion, items: number): void {
    this.counts.unmade += items;
    for (const index of expansion.scope.members) this.expectOf(this.slots[index]!, expansion, items);
  }

  /** The same for one of its tasks. */
  expectOf(slot: Slot, { parent, scope }: ScopePlace, items: number): void {
    const spot = { level: scope.depth - 1, ordinal: parent };
    if (!this.hasStandIn(slot, spot))
      this.#bookTotal({ node: slot.node, ...spot }, items, { to: spot.level });
  }
}

function find({ byIndex, instances }: Slot, mapIndex: number): Instance | undefined {
  if (byIndex) return byIndex.get(mapIndex);
  const found = instances[Math.max(mapIndex, 0)];
  return found?.mapIndex === mapIndex ? found : undefined;
}
