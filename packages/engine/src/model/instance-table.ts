/**
 * All instances of one run with the numbers that depend on them: how the upstream of each task stands, the run's tally,
 * the agenda of tasks to be judged again, the list of changes to store. It keeps the books; run.ts decides.
 */
import { ModelError } from "./errors.ts";
import { type Expansion, Expansions, type ScopePlace } from "./expansions.ts";
import type { Graph, TaskNode } from "./graph.ts";
import { Heap } from "./heap.ts";
import type { Change, Instance } from "./instance.ts";
import { isHeld, isOccupying } from "./instance.ts";
import { type Scope, unexpandedIndex } from "./scope.ts";
import { Standing } from "./standing.ts";
import { isFinished, type TaskState } from "./states.ts";
import { book, Tally } from "./tally.ts";
import { mayMove } from "./transitions.ts";
import { type Counters, judge, type Verdict } from "./trigger-rules.ts";

/** What the run knows about one task. */
export interface Slot {
  readonly node: TaskNode;
  readonly standing: Standing;
  /** How the setups stand in whose scope it is, without those directly before it; null: there are none. */
  guard: Standing | null;
  /** One; of a mapped task one per item, and one for each place that is not expanded yet. */
  instances: Instance[];
  /** By map index, where that is not the place in `instances`: in a scope within another. */
  readonly byIndex: Map<number, Instance> | null;
  /** Instances in state none that are not held: those a new verdict could move. */
  idle: number;
  /** Which of them are on the agenda. */
  due: "all" | Instance[] | null;
}

/** What the run knows about one map. */
export interface ScopeSlot {
  readonly scope: Scope;
  readonly standing: Standing;
  /** Where it is on the agenda: by the item of its parent. */
  readonly due: Set<number>;
}

/** Where something lies: in that item of the scope of that depth. */
export interface Spot {
  readonly level: number;
  readonly ordinal: number;
}

/** Edges by how many scopes they stay in. */
interface EdgeRange {
  readonly from?: number;
  readonly to?: number;
}

export class InstanceTable {
  readonly counts = new Tally();
  /** By the index of the node. */
  readonly slots: readonly Slot[];
  /** By the index of the scope. */
  readonly scopes: readonly ScopeSlot[];
  readonly expansions: Expansions;
  readonly #graph: Graph;
  readonly #agenda = new Heap<number>((a, b) => a < b);
  #dirty: Instance[] = [];

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

  /** Its setups have the first word, its rule the last. */
  verdictOn(instance: Instance): Verdict {
    const { guard } = this.slots[instance.node.index]!;
    const guarded = guard ? judge("allSuccess", this.#seen(guard, instance)) : "run";
    if (guarded !== "run") return guarded;
    return judge(instance.node.manifest.rule, this.countersOf(instance), instance.mapIndex);
  }

  #seen(standing: Standing, { level, node, ordinal }: Instance): Counters {
    if (standing.isShared) return standing.shared;
    const scope = node.scope?.chain[level - 1] ?? null;
    return standing.seenFrom(level, (each) => this.expansions.ancestor(scope, ordinal, each));
  }

  /** Of what a map runs over. */
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
        `Task "${instance.node.id}" [${instance.mapIndex}] may not go from ${from} to ${to}. This is a defect of the engine.`,
      );
    }
    this.letGo(instance);
    const slot = this.#slot(instance);
    if (from === "none") slot.idle--;
    this.#bookDownstream(instance, -1);
    this.counts.leave(instance);
    instance.state = to;
    this.counts.enter(instance);
    this.#bookDownstream(instance, 1);
    if (to === "none") slot.idle++;
    this.#touch(instance);
  }

  /** Keeps an instance in state none although its rule lets it run. */
  hold(instance: Instance, gate: "waiting" | "expanding" | "signal"): void {
    instance.gate = gate;
    this.counts.held++;
    this.#slot(instance).idle--;
  }

  letGo(instance: Instance): void {
    if (!isHeld(instance)) return;
    instance.gate = "none";
    this.counts.held--;
    this.#slot(instance).idle++;
  }

  /** More instances of a task. `edges`: those over which their number is not booked yet. */
  add(slot: Slot, instances: Instance[], edges: EdgeRange = {}): void {
    // Kept as it came where possible: an array grown by one has room for 17, which is much, times 100,000.
    if (slot.instances.length === 0) slot.instances = instances;
    else for (const instance of instances) slot.instances.push(instance);
    let position = slot.instances.length - instances.length;
    for (const instance of instances) {
      instance.position = position++;
      slot.byIndex?.set(instance.mapIndex, instance);
      this.#bookTotal(instance, 1, edges);
      this.counts.enter(instance);
      if (instance.state === "none") slot.idle++;
      if (instance.committed === null) this.#touch(instance);
      this.#bookDownstream(instance, 1);
    }
  }

  /** Forgets an instance that is not needed any more. */
  drop(instance: Instance): void {
    const slot = this.#slot(instance);
    this.letGo(instance);
    this.#bookDownstream(instance, -1);
    this.counts.leave(instance);
    if (instance.state === "none") slot.idle--;
    this.#bookTotal(instance, -1, {});
    slot.byIndex?.delete(instance.mapIndex);
    const last = slot.instances.pop()!;
    if (last !== instance) {
      slot.instances[instance.position] = last;
      last.position = instance.position;
    }
    instance.position = -1;
  }

  /** What stands for all instances of a task that are to come in an item, or are not needed there. */
  standIn(slot: Slot, { level, ordinal }: Spot): Instance | undefined {
    const depth = slot.node.scope?.depth ?? 0;
    return level < depth ? find(slot, unexpandedIndex(depth, level, ordinal)) : undefined;
  }

  /** Something stands for all instances of a task in an item, or in one around it: there are none of them. */
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
    if (slot.due === "all" || instance.state !== "none") return;
    if (slot.due !== null) slot.due.push(instance);
    else {
      slot.due = [instance];
      this.#agenda.push(slot.node.index);
    }
  }

  get hasAgenda(): boolean {
    return this.#agenda.peek() !== undefined || this.scopes.some(({ due }) => due.size > 0);
  }

  /** The first task, in topological order, of those to be judged again, and which of its instances. */
  nextOnAgenda(): { readonly slot: Slot; readonly instances: readonly Instance[] } | undefined {
    const index = this.#agenda.pop();
    if (index === undefined) return undefined;
    const slot = this.slots[index]!;
    const instances = slot.due === "all" ? slot.instances : (slot.due ?? []);
    slot.due = null;
    return { slot, instances };
  }

  takeChanges(): Change[] {
    const changes: Change[] = [];
    for (const instance of this.#dirty) {
      instance.dirty = false;
      const { committed: from, committedAttempt: fromAttempt, committedTry: fromTry } = instance;
      const { committedMaxTries: fromMaxTries, committedOccupying: wasOccupying } = instance;
      const isSame =
        from === instance.state && fromAttempt === instance.attempt && fromTry === instance.tryNumber;
      if (isSame || this.get(instance.node.id, instance.mapIndex) !== instance) continue;
      changes.push({ instance, from, fromAttempt, fromTry, fromMaxTries, wasOccupying });
      instance.committed = instance.state;
      instance.committedAttempt = instance.attempt;
      instance.committedTry = instance.tryNumber;
      instance.committedMaxTries = instance.maxTries;
      instance.committedOccupying = isOccupying(instance.state, instance.wait);
    }
    this.#dirty = [];
    return changes;
  }

  giveBack(changes: readonly Change[]): void {
    for (const { instance, from, fromAttempt, fromTry, fromMaxTries, wasOccupying } of changes) {
      instance.committed = from;
      instance.committedAttempt = fromAttempt;
      instance.committedTry = fromTry;
      instance.committedMaxTries = fromMaxTries;
      instance.committedOccupying = wasOccupying;
      this.#touch(instance);
    }
  }

  #slot(instance: Instance): Slot {
    return this.slots[instance.node.index]!;
  }

  /** O(direct downstream) when the state is an end state, nothing otherwise. */
  #bookDownstream(instance: Instance, by: 1 | -1): void {
    const { state, node } = instance;
    if (!isFinished(state)) return;
    const ended = { by, setup: node.manifest.role === "setup" };
    if (node.scope === null && node.feeds.length === 0 && node.guards.length === 0) {
      // Nearly all tasks: every edge is of level 0.
      for (const index of node.downstream) {
        const slot = this.slots[index]!;
        book(slot.standing.shared, state, ended);
        this.reconsider(slot);
      }
      return;
    }
    for (const { counters, reconsider } of this.#edges(node, instance)) {
      book(counters, state, ended);
      reconsider();
    }
  }

  /** `by` more instances of a task, for those that count them. */
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

  /**
   * Where an instance is counted. What stands for all that are to come in an item is counted by all there is in that
   * item, however deep.
   */
  *#edges(
    node: TaskNode,
    spot: Spot,
    { from = 0, to = Number.POSITIVE_INFINITY }: EdgeRange = {},
  ): Iterable<{ readonly counters: Counters; readonly reconsider: () => void }> {
    const { downstream, feeds, guards, levels, scope } = node;
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
      yield { counters, reconsider: () => this.#reconsiderIn(slot, item) };
    }
    for (const { index, level } of guards) {
      if (!isWanted(level)) continue;
      const slot = this.slots[index]!;
      const item = at(level);
      yield {
        counters: slot.guard!.at(item.level, item.ordinal),
        reconsider: () => this.#reconsiderIn(slot, item),
      };
    }
    for (const feed of feeds) {
      if (!isWanted(feed.level)) continue;
      const slot = this.scopes[feed.scope.index]!;
      const item = at(feed.level);
      const counters = slot.standing.at(item.level, item.ordinal);
      yield { counters, reconsider: () => this.#reconsiderMap(slot, item) };
    }
  }

  #reconsiderIn(slot: Slot, spot: Spot): void {
    if (spot.level === 0) this.reconsider(slot);
    else for (const each of this.beneath(slot, spot)) this.reconsiderOne(each);
  }

  /** Everywhere in an item. */
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

  #touch(instance: Instance): void {
    if (instance.dirty) return;
    instance.dirty = true;
    this.#dirty.push(instance);
  }

  /** So many items of an expanded map are still to be made; what gathers them is told at once. */
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
