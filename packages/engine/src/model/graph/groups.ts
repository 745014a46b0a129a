/**
 * Groups with retries, callbacks or notices in an active run: when a group has ended, in which state, and whether it runs
 * again.
 *
 * - open: some of its tasks have not ended.
 * - waiting: all tasks have ended, the group has failed, and its next try starts at `retryAt`.
 * - success, failed, skipped: the group has ended permanently, and its callback for that event is recorded.
 *
 * A group is one unit of work: it is evaluated when all its tasks have ended, and a retry runs all of them again, including
 * those that succeeded. Tasks outside see nothing of it until it has ended permanently (see group-node.ts), so no task uses
 * an output of a failed try. The innermost failed group is evaluated first: outer groups see only its permanent end.
 *
 * A mapped group with retries is one unit of work per item, each with its own tries (see group-slots.ts). A stand-in
 * instance for all items (the map has no list, or a branch skipped the task) is part of none of them: it is visible outside
 * at once. While the stand-in has not ended, none of the items has.
 *
 * If a task of an ended group starts again, for any reason, the group is open again, at its next try, with all its retries.
 * So a group has ended exactly while all its tasks have ended: the rows of a loaded run are enough to know the state of its
 * groups.
 */
import type { Expansion, Expansions } from "../map/expansions.ts";
import { Heap } from "../pool/heap.ts";
import { firstFailure } from "../run/first-failure.ts";
import type { Instance } from "../run/instance.ts";
import type { Slot, Spot } from "../run/slot.ts";
import { FAILED, isFinished } from "../run/states.ts";
import type { Tally } from "../run/tally.ts";
import type { TaskNode } from "./graph.ts";
import type { GroupNode } from "./group-node.ts";
import {
  type GroupEvent,
  type GroupRow,
  type GroupSlot,
  GroupSlots,
  groupRow,
  hasEnded,
  type Placed,
} from "./group-slots.ts";
import type { Scope } from "./scope.ts";

export type { GroupEvent, GroupRow, GroupState } from "./group-slots.ts";

export interface GroupChange extends GroupRow {
  readonly events: readonly GroupEvent[];
}

/** The view of the instances that groups need. */
interface Surroundings {
  readonly counts: Tally;
  readonly expansions: Expansions;
  readonly slots: readonly Slot[];
  standIn(slot: Slot, spot: Spot): Instance | undefined;
  beneath(slot: Slot, spot: Spot): Iterable<Instance>;
  bookCovered(group: GroupNode, instances: Iterable<Instance>, by: 1 | -1): void;
}

export class Groups {
  readonly #table: Surroundings;
  readonly #nodes: readonly GroupNode[];
  readonly #slots: GroupSlots;
  /** By group index: groups to evaluate, because all their tasks have ended. */
  readonly #due: readonly Set<GroupSlot>[];
  readonly #waiting = new Set<GroupSlot>();
  /** When waiting groups start again; entries of other groups are stale. */
  readonly #timers = new Heap<{ readonly slot: GroupSlot; readonly at: number }>((a, b) => a.at < b.at);
  /** Groups with changes that are not stored. */
  readonly #dirty = new Set<GroupSlot>();
  #isHalted = false;

  constructor(nodes: readonly GroupNode[], table: Surroundings) {
    this.#table = table;
    this.#nodes = nodes;
    this.#slots = new GroupSlots(nodes, table.expansions);
    this.#due = nodes.map(() => new Set());
  }

  /** Call when all instances are loaded. An ended group with unfinished tasks was cleared after its row was written. */
  restore(rows: readonly GroupRow[]): void {
    for (const { groupId, mapIndex, maxTries, retryAt, state, tryNumber } of rows) {
      const slot = this.#slots.named(groupId, mapIndex);
      if (!slot) continue;
      slot.tryNumber = tryNumber;
      slot.maxTries = maxTries;
      // The item no longer exists.
      if (state === "waiting" && slot.size === 0) continue;
      if (state === "waiting") this.#wait(slot, retryAt ?? 0);
      else if (state !== "open") this.#close(slot, state);
      if (state !== "open" && (slot.unfinished > 0 || this.#hasOpenStandIn(slot))) this.#reopen(slot);
      else this.#dirty.delete(slot);
    }
  }

  /** Call once after loading: tasks marked manually may have ended a group, or turned its failure into a success. */
  start(): void {
    for (const slot of this.#slots.all()) if (slot.unfinished === 0) this.#due[slot.node.index]!.add(slot);
  }

  /** `mapIndex`: the index of the item, for a group with one instance per item. */
  get(groupId: string, mapIndex = -1): Readonly<GroupRow> | undefined {
    const slot = this.#slots.named(groupId, mapIndex);
    return slot && groupRow(slot);
  }

  /** All instances of a group that have task instances. */
  *rowsOf(groupId: string): Iterable<Readonly<GroupRow>> {
    for (const slot of this.#slots.all()) if (slot.node.id === groupId && slot.size > 0) yield groupRow(slot);
  }

  /** Whether tasks outside of the group must not see the end of an instance yet. */
  isHidden(group: GroupNode, instance: Placed): boolean {
    const slot = this.#slots.around(group, instance);
    return slot !== undefined && !hasEnded(slot);
  }

  /** Whether a task must not see the end of an instance yet. */
  isHiddenFrom(from: Instance, to: TaskNode): boolean {
    for (let group = from.node.group; group !== null; group = group.parent)
      if (group.retries > 0 && !group.members.has(to.index) && this.isHidden(group, from)) return true;
    return false;
  }

  /** Whether any group in an item of a map waits for its next try. */
  isWaitingIn(scope: Scope, ordinal: number): boolean {
    for (const slot of this.#waiting) {
      const around = slot.node.scope;
      if (around?.chain[scope.depth - 1] !== scope) continue;
      if (this.#table.expansions.ancestor(around, slot.ordinal, scope.depth) === ordinal) return true;
    }
    return false;
  }

  /** Call when an instance is created (1) or dropped (-1). */
  enter(instance: Instance, by: 1 | -1): void {
    for (let group = instance.node.group; group !== null; group = group.parent) {
      const slot = this.#slots.around(group, instance);
      if (!slot) continue;
      slot.size += by;
      if (by > 0 && hasEnded(slot) && !isFinished(instance.state)) this.#reopen(slot);
    }
    this.count(instance, by);
  }

  /** Call when an instance enters (1) or leaves (-1) a state. */
  count(instance: Instance, by: 1 | -1): void {
    if (isFinished(instance.state)) return;
    for (let group = instance.node.group; group !== null; group = group.parent) {
      const due = this.#due[group.index]!;
      const slot = this.#slots.around(group, instance);
      if (!slot) {
        if (by < 0) for (const each of this.#slots.beneath(group, instance)) due.add(each);
        continue;
      }
      slot.unfinished += by;
      if (slot.unfinished === 0) due.add(slot);
    }
  }

  /** Call before an ended instance starts again. */
  reopen(instance: Instance): void {
    for (let group = instance.node.group; group !== null; group = group.parent) {
      const own = this.#slots.around(group, instance);
      for (const slot of own ? [own] : this.#slots.beneath(group, instance))
        if (slot.state !== "open") this.#reopen(slot);
    }
  }

  /** The items of a map are dropped: the next items at these ordinals have all retries. */
  renew({ base, made, scope }: Expansion): void {
    for (const node of this.#nodes) {
      if (node.scope !== scope || node.retries === 0) continue;
      for (let ordinal = base; ordinal < base + made; ordinal++) {
        const slot = this.#slots.at(node, ordinal);
        const most = slot.tryNumber - 1 + node.retries;
        if (slot.maxTries >= most) continue;
        slot.maxTries = most;
        this.#dirty.add(slot);
      }
    }
  }

  /** Evaluates the due groups, innermost first. Returns the groups that have ended permanently. */
  evaluate(now: number): GroupSlot[] {
    const closed: GroupSlot[] = [];
    for (let slot = this.#nextDue(); slot; slot = this.#nextDue()) {
      if (hasEnded(slot) || !this.#isOver(slot)) continue;
      const state = this.#endState(slot);
      const isTriedAgain = state === "failed" && slot.tryNumber <= slot.maxTries && !this.#isHalted;
      if (isTriedAgain && slot.state === "waiting") continue;
      if (isTriedAgain) {
        this.#wait(slot, now + slot.node.delayMs);
        this.#recordEvent(slot, "retry");
        continue;
      }
      closed.push(slot);
      this.#close(slot, state);
      if (state !== "skipped") this.#recordEvent(slot, state === "success" ? "success" : "failure");
      const { parent } = slot.node;
      if (parent) this.#due[parent.index]!.add(this.#slots.outer(slot, parent));
    }
    return closed;
  }

  /** When the next try of any group starts. */
  nextAt(): number | null {
    for (let next = this.#timers.peek(); next; next = this.#timers.peek()) {
      if (isCurrent(next)) return next.at;
      this.#timers.pop();
    }
    return null;
  }

  /**
   * The instances to start again, of all groups whose next try is due. A group waits until the end of its last try is
   * stored: otherwise the callbacks of that try would never be called.
   */
  begin(now: number): Instance[] {
    const again: Instance[] = [];
    const unstored: { readonly slot: GroupSlot; readonly at: number }[] = [];
    for (let next = this.#timers.peek(); next && next.at <= now; next = this.#timers.peek()) {
      this.#timers.pop();
      if (!isCurrent(next)) continue;
      const { slot } = next;
      const instances = [...this.instancesOf(slot)];
      if (this.#dirty.has(slot) || instances.some(({ dirty }) => dirty)) {
        unstored.push(next);
        continue;
      }
      this.#leaveWait(slot);
      slot.tryNumber++;
      for (const instance of instances) if (instance.state !== "removed") again.push(instance);
    }
    for (const each of unstored) this.#timers.push(each);
    return again;
  }

  /** The run ends now: no group is retried. */
  halt(): void {
    this.#isHalted = true;
    for (const slot of this.#waiting) this.#due[slot.node.index]!.add(slot);
  }

  drainChanges(): GroupChange[] {
    if (this.#dirty.size === 0) return [];
    const dirty = [...this.#dirty].sort((a, b) => a.node.index - b.node.index || a.ordinal - b.ordinal);
    this.#dirty.clear();
    return dirty.map((slot) => ({ ...groupRow(slot), events: slot.events.splice(0) }));
  }

  /** The changes taken last were not stored. */
  restoreChanges(changes: readonly GroupChange[]): void {
    for (const { events, groupId, mapIndex } of changes) {
      const slot = this.#slots.named(groupId, mapIndex)!;
      slot.events.unshift(...events);
      this.#dirty.add(slot);
    }
  }

  /** The task instances in a group instance. */
  *instancesOf({ node, ordinal }: GroupSlot): Iterable<Instance> {
    for (const index of node.members) {
      const slot = this.#table.slots[index]!;
      if (node.depth === 0) yield* slot.instances;
      else yield* this.#table.beneath(slot, { level: node.depth, ordinal });
    }
  }

  /** The first task instance that failed: the reason of the group's failure. */
  firstFailure(groupId: string, mapIndex: number): Instance | undefined {
    const slot = this.#slots.named(groupId, mapIndex);
    if (!slot) return undefined;
    const isLeaf = ({ index }: TaskNode) => slot.node.leaves.has(index);
    return firstFailure(this.instancesOf(slot), isLeaf);
  }

  #nextDue(): GroupSlot | undefined {
    for (let index = this.#due.length - 1; index >= 0; index--) {
      const due = this.#due[index]!;
      for (const slot of due) {
        due.delete(slot);
        return slot;
      }
    }
    return undefined;
  }

  /** All its tasks have ended, and no further instances will be created. */
  #isOver(slot: GroupSlot): boolean {
    const { node, ordinal, size, unfinished, waitingInside } = slot;
    // An open inner group has unfinished tasks, or is evaluated before this one.
    if (size === 0 || unfinished > 0 || waitingInside > 0 || this.#hasOpenStandIn(slot)) return false;
    return node.maps.every((scope) => this.#isMade(node, scope, ordinal));
  }

  /** Whether all items of a map in a group, within one item of its parent, have their instances. */
  #isMade(node: GroupNode, scope: Scope, parent: number): boolean {
    const expansion = this.#table.expansions.find({ scope, parent });
    if (!expansion) return true;
    const { base, length, made } = expansion;
    if (made < length) return false;
    return scope.children.every((child) => {
      if (!node.scopes.has(child)) return true;
      for (let item = 0; item < length; item++) if (!this.#isMade(node, child, base + item)) return false;
      return true;
    });
  }

  /** Whether a task of the group has an unfinished stand-in for several items. */
  #hasOpenStandIn({ node, ordinal, size }: GroupSlot): boolean {
    if (node.depth === 0 || size === 0) return false;
    for (let level = 0; level < node.depth; level++) {
      const spot = { level, ordinal: this.#table.expansions.ancestor(node.scope, ordinal, level) };
      for (const index of node.members) {
        const standIn = this.#table.standIn(this.#table.slots[index]!, spot);
        if (standIn && !isFinished(standIn.state)) return true;
      }
    }
    return false;
  }

  #endState(slot: GroupSlot): "success" | "failed" | "skipped" {
    let isSkipped = true;
    for (const { node, state } of this.instancesOf(slot)) {
      if (slot.node.leaves.has(node.index) && FAILED.has(state)) return "failed";
      if (state !== "skipped") isSkipped = false;
    }
    return isSkipped ? "skipped" : "success";
  }

  #wait(slot: GroupSlot, retryAt: number): void {
    slot.state = "waiting";
    slot.retryAt = retryAt;
    this.#dirty.add(slot);
    this.#waiting.add(slot);
    this.#timers.push({ slot, at: retryAt });
    this.#countWaiting(slot, 1);
  }

  #leaveWait(slot: GroupSlot): void {
    slot.state = "open";
    slot.retryAt = null;
    this.#dirty.add(slot);
    this.#waiting.delete(slot);
    this.#countWaiting(slot, -1);
  }

  #countWaiting(slot: GroupSlot, by: 1 | -1): void {
    this.#table.counts.retrying += by;
    for (let { parent } = slot.node; parent !== null; parent = parent.parent)
      this.#slots.outer(slot, parent).waitingInside += by;
  }

  #close(slot: GroupSlot, state: "success" | "failed" | "skipped"): void {
    if (slot.state === "waiting") this.#leaveWait(slot);
    slot.state = state;
    this.#dirty.add(slot);
    this.#bookCovered(slot, 1);
  }

  /** A waiting group continues with its current try. An ended group starts its next try. */
  #reopen(slot: GroupSlot): void {
    if (slot.state === "waiting") {
      this.#leaveWait(slot);
      return;
    }
    this.#bookCovered(slot, -1);
    slot.state = "open";
    slot.maxTries = slot.tryNumber + slot.node.retries;
    slot.tryNumber++;
    this.#dirty.add(slot);
  }

  #bookCovered(slot: GroupSlot, by: 1 | -1): void {
    if (slot.node.retries > 0 && slot.size > 0)
      this.#table.bookCovered(slot.node, this.instancesOf(slot), by);
  }

  #recordEvent(slot: GroupSlot, event: GroupEvent["event"]): void {
    const { callbacks, notices } = slot.node.manifest;
    if (callbacks?.[event] || notices?.[event]) slot.events.push({ event, tryNumber: slot.tryNumber });
  }
}

function isCurrent({ at, slot }: { readonly at: number; readonly slot: GroupSlot }): boolean {
  return slot.state === "waiting" && slot.retryAt === at;
}
