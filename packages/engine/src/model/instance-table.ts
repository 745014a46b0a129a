/**
 * All instances of one run with the numbers that depend on them: upstream counters per task, the run's tally, the
 * agenda of tasks to be judged again, the list of changes to store. It keeps the books; run.ts decides.
 *
 * Every instance of a task reads the same counters, those of its slot, because every instance has the same upstream
 * instances. `countersOf` and `#bookDownstream` are the places to change when an instance shall see only those of its
 * own index.
 */
import { ModelError } from "./errors.ts";
import type { Graph, TaskNode } from "./graph.ts";
import { Heap } from "./heap.ts";
import type { Change, Instance, InstanceRow } from "./instance.ts";
import { isHeld, isOccupying, newInstance, storedInstance } from "./instance.ts";
import { isFinished, type TaskState } from "./states.ts";
import { book, Tally } from "./tally.ts";
import { mayMove } from "./transitions.ts";
import { type Counters, emptyCounters } from "./trigger-rules.ts";

/** What the run knows about one task. */
export interface Slot {
  readonly node: TaskNode;
  readonly counters: Counters;
  /** One of index -1, or one per index of an expanded mapped task. */
  instances: Instance[];
  /** Instances in state none that are not held: those a new verdict could move. */
  idle: number;
  onAgenda: boolean;
}

export class InstanceTable {
  readonly counts = new Tally();
  /** By the index of the node. */
  readonly slots: readonly Slot[];
  readonly #graph: Graph;
  readonly #agenda = new Heap<number>((a, b) => a < b);
  #dirty: Instance[] = [];

  constructor(graph: Graph, rows: readonly InstanceRow[]) {
    this.#graph = graph;
    this.slots = graph.nodes.map((node) => {
      return { node, counters: emptyCounters(), instances: [], idle: 0, onAgenda: false };
    });
    for (const row of rows) {
      const node = graph.byId.get(row.taskId);
      if (node) this.slots[node.index]!.instances.push(storedInstance(node, row));
    }
    for (const slot of this.slots) this.add(slot, arrange(slot));
  }

  get(taskId: string, mapIndex: number): Instance | undefined {
    const found = this.slotOf(taskId)?.instances[Math.max(mapIndex, 0)];
    return found?.mapIndex === mapIndex ? found : undefined;
  }

  slotOf(taskId: string): Slot | undefined {
    const node = this.#graph.byId.get(taskId);
    return node && this.slots[node.index];
  }

  countersOf(instance: Instance): Counters {
    return this.#slot(instance).counters;
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

  /** More instances of a task: the next indexes. */
  add(slot: Slot, instances: Instance[]): void {
    // Kept as it came where possible: an array grown by one has room for 17, which is much, times 100,000.
    slot.instances = slot.instances.length === 0 ? instances : slot.instances.concat(instances);
    this.#bookTotal(slot.node, instances.length);
    for (const instance of instances) {
      this.counts.enter(instance);
      if (instance.state === "none") slot.idle++;
      if (instance.committed === null) this.#touch(instance);
      this.#bookDownstream(instance, 1);
    }
  }

  /** Forgets the one unexpanded instance of a mapped task. */
  dropUnexpanded(slot: Slot): void {
    for (const instance of slot.instances) {
      this.letGo(instance);
      this.counts.leave(instance);
      slot.idle--;
    }
    this.#bookTotal(slot.node, -slot.instances.length);
    slot.instances = [];
  }

  reconsider(slot: Slot): void {
    if (slot.onAgenda || slot.idle === 0) return;
    slot.onAgenda = true;
    this.#agenda.push(slot.node.index);
  }

  get hasAgenda(): boolean {
    return this.#agenda.peek() !== undefined;
  }

  /** The first task, in topological order, of those to be judged again. */
  nextOnAgenda(): Slot | undefined {
    const index = this.#agenda.pop();
    if (index === undefined) return undefined;
    const slot = this.slots[index]!;
    slot.onAgenda = false;
    return slot;
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
    for (const index of node.downstream) {
      const slot = this.slots[index]!;
      book(slot.counters, state, ended);
      this.reconsider(slot);
    }
  }

  #bookTotal(node: TaskNode, by: number): void {
    for (const index of node.downstream) {
      const { counters } = this.slots[index]!;
      counters.total += by;
      if (node.manifest.role === "setup") counters.setupTotal += by;
    }
  }

  #touch(instance: Instance): void {
    if (instance.dirty) return;
    instance.dirty = true;
    this.#dirty.push(instance);
  }
}

/** Takes the loaded instances out of the slot and returns them in index order, without holes, at least one. */
function arrange(slot: Slot): Instance[] {
  const loaded = slot.instances;
  slot.instances = [];
  const { node } = slot;
  const length = node.manifest.map ? loaded.reduce((max, { mapIndex }) => Math.max(max, mapIndex + 1), 0) : 0;
  if (length === 0) return [loaded.find(({ mapIndex }) => mapIndex < 0) ?? newInstance(node, -1)];
  const byIndex = new Map(loaded.map((instance) => [instance.mapIndex, instance]));
  return Array.from({ length }, (_, index) => byIndex.get(index) ?? newInstance(node, index));
}
