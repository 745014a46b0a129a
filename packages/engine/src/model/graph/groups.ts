/**
 * Groups with retries or callbacks while a run goes on: when one has ended, how, and whether it runs again.
 *
 *   open      some of its tasks have not ended
 *   waiting   all have, it has failed, and its next try begins at a moment of its own
 *   success, failed, skipped: it has ended for good, and its callback for that was called
 *
 * A group is one unit of work: it is judged when all its tasks have ended, and all of them run again, those that succeeded,
 * too. What is outside sees nothing of it until it has ended for good (see group-node.ts), so no task has to take back what
 * it did with an output of a try that failed. The innermost group that has failed goes first: those around it see only how
 * it has ended for good.
 *
 * A group with retries that runs once per item is one unit of work per item: each has its own tries (see group-slots.ts). An
 * instance that stands for all items, because the map has no list or a branch ruled the task out, is part of none of them:
 * it is seen outside at once. While it has not ended, none of the items has.
 *
 * If one of its tasks begins again after the group has ended, for any reason, the group is open again, at its next try, with
 * as many retries as it has. So a group has ended exactly as long as all its tasks have: a run that is loaded needs no more
 * than the rows to know how its groups stand.
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

/** What it has to know of the instances. */
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
  /** By the index of the group: to be judged, for all their tasks have ended. */
  readonly #due: readonly Set<GroupSlot>[];
  readonly #waiting = new Set<GroupSlot>();
  /** When those that wait begin again; entries of others are stale. */
  readonly #timers = new Heap<{ readonly slot: GroupSlot; readonly at: number }>((a, b) => a.at < b.at);
  /** Not stored as they are. */
  readonly #dirty = new Set<GroupSlot>();
  #isHalted = false;

  constructor(nodes: readonly GroupNode[], table: Surroundings) {
    this.#table = table;
    this.#nodes = nodes;
    this.#slots = new GroupSlots(nodes, table.expansions);
    this.#due = nodes.map(() => new Set());
  }

  /** Once all instances are loaded. What has been cleared since the row was written shows by what has not ended. */
  restore(rows: readonly GroupRow[]): void {
    for (const { groupId, mapIndex, maxTries, retryAt, state, tryNumber } of rows) {
      const slot = this.#slots.named(groupId, mapIndex);
      if (!slot) continue;
      slot.tryNumber = tryNumber;
      slot.maxTries = maxTries;
      // Its item does not exist any more.
      if (state === "waiting" && slot.size === 0) continue;
      if (state === "waiting") this.#wait(slot, retryAt ?? 0);
      else if (state !== "open") this.#close(slot, state);
      if (state !== "open" && (slot.unfinished > 0 || this.#hasOpenStandIn(slot))) this.#reopen(slot);
      else this.#dirty.delete(slot);
    }
  }

  /** Once after loading: what was marked by hand may have ended a group, or may have made a success of a failure. */
  start(): void {
    for (const slot of this.#slots.all()) if (slot.unfinished === 0) this.#due[slot.node.index]!.add(slot);
  }

  /** `mapIndex`: of the item, if it has an instance per item. */
  get(groupId: string, mapIndex = -1): Readonly<GroupRow> | undefined {
    const slot = this.#slots.named(groupId, mapIndex);
    return slot && groupRow(slot);
  }

  /** All of a group that have task instances. */
  *rowsOf(groupId: string): Iterable<Readonly<GroupRow>> {
    for (const slot of this.#slots.all()) if (slot.node.id === groupId && slot.size > 0) yield groupRow(slot);
  }

  /** Whether the end of an instance does not count outside of a group yet. */
  isHidden(group: GroupNode, instance: Placed): boolean {
    const slot = this.#slots.around(group, instance);
    return slot !== undefined && !hasEnded(slot);
  }

  /** Whether an instance does not count for a task yet. */
  isHiddenFrom(from: Instance, to: TaskNode): boolean {
    for (let group = from.node.group; group !== null; group = group.parent)
      if (group.retries > 0 && !group.members.has(to.index) && this.isHidden(group, from)) return true;
    return false;
  }

  /** Whether a group waits for its next try in an item of a map. */
  isWaitingIn(scope: Scope, ordinal: number): boolean {
    for (const slot of this.#waiting) {
      const around = slot.node.scope;
      if (around?.chain[scope.depth - 1] !== scope) continue;
      if (this.#table.expansions.ancestor(around, slot.ordinal, scope.depth) === ordinal) return true;
    }
    return false;
  }

  /** An instance is created, or dropped. */
  enter(instance: Instance, by: 1 | -1): void {
    for (let group = instance.node.group; group !== null; group = group.parent) {
      const slot = this.#slots.around(group, instance);
      if (!slot) continue;
      slot.size += by;
      if (by > 0 && hasEnded(slot) && !isFinished(instance.state)) this.#reopen(slot);
    }
    this.count(instance, by);
  }

  /** An instance enters a state, or leaves it. */
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

  /** An instance that had ended is about to begin again. */
  reopen(instance: Instance): void {
    for (let group = instance.node.group; group !== null; group = group.parent) {
      const own = this.#slots.around(group, instance);
      for (const slot of own ? [own] : this.#slots.beneath(group, instance))
        if (slot.state !== "open") this.#reopen(slot);
    }
  }

  /** The items of a map are gone: the next ones at their place have all retries. */
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

  /** Judges what is to be judged, the innermost first. Answers with those that have ended for good: others may see them now. */
  settle(now: number): GroupSlot[] {
    const closed: GroupSlot[] = [];
    for (let slot = this.#takeDue(); slot; slot = this.#takeDue()) {
      if (hasEnded(slot) || !this.#isOver(slot)) continue;
      const state = this.#endState(slot);
      const isTriedAgain = state === "failed" && slot.tryNumber <= slot.maxTries && !this.#isHalted;
      if (isTriedAgain && slot.state === "waiting") continue;
      if (isTriedAgain) {
        this.#wait(slot, now + slot.node.delayMs);
        this.#tell(slot, "retry");
        continue;
      }
      closed.push(slot);
      this.#close(slot, state);
      if (state !== "skipped") this.#tell(slot, state === "success" ? "success" : "failure");
      const { parent } = slot.node;
      if (parent) this.#due[parent.index]!.add(this.#slots.outer(slot, parent));
    }
    return closed;
  }

  /** When the next try of some group begins. */
  nextAt(): number | null {
    for (let next = this.#timers.peek(); next; next = this.#timers.peek()) {
      if (isCurrent(next)) return next.at;
      this.#timers.pop();
    }
    return null;
  }

  /**
   * Groups whose next try is due: all their instances, to begin again. Not before the end of the last try is stored:
   * otherwise its callbacks would never be called.
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

  /** The run is to end now: no group is tried again. */
  halt(): void {
    this.#isHalted = true;
    for (const slot of this.#waiting) this.#due[slot.node.index]!.add(slot);
  }

  takeChanges(): GroupChange[] {
    if (this.#dirty.size === 0) return [];
    const dirty = [...this.#dirty].sort((a, b) => a.node.index - b.node.index || a.ordinal - b.ordinal);
    this.#dirty.clear();
    return dirty.map((slot) => ({ ...groupRow(slot), events: slot.events.splice(0) }));
  }

  /** What was taken last was not stored. */
  giveBack(changes: readonly GroupChange[]): void {
    for (const { events, groupId, mapIndex } of changes) {
      const slot = this.#slots.named(groupId, mapIndex)!;
      slot.events.unshift(...events);
      this.#dirty.add(slot);
    }
  }

  /** The task instances that lie in it. */
  *instancesOf({ node, ordinal }: GroupSlot): Iterable<Instance> {
    for (const index of node.members) {
      const slot = this.#table.slots[index]!;
      if (node.depth === 0) yield* slot.instances;
      else yield* this.#table.beneath(slot, { level: node.depth, ordinal });
    }
  }

  /** Why it has failed: the task instance that did first. */
  firstFailure(groupId: string, mapIndex: number): Instance | undefined {
    const slot = this.#slots.named(groupId, mapIndex);
    if (!slot) return undefined;
    const isLeaf = ({ index }: TaskNode) => slot.node.leaves.has(index);
    return firstFailure(this.instancesOf(slot), isLeaf);
  }

  #takeDue(): GroupSlot | undefined {
    for (let index = this.#due.length - 1; index >= 0; index--) {
      const due = this.#due[index]!;
      for (const slot of due) {
        due.delete(slot);
        return slot;
      }
    }
    return undefined;
  }

  /** All its tasks have ended, and nothing more comes. */
  #isOver(slot: GroupSlot): boolean {
    const { node, ordinal, size, unfinished, waitingInside } = slot;
    // A group inside that is open has tasks that have not ended, or is judged before this one.
    if (size === 0 || unfinished > 0 || waitingInside > 0 || this.#hasOpenStandIn(slot)) return false;
    return node.maps.every((scope) => this.#isMade(node, scope, ordinal));
  }

  /** All items of a map in a group have their instances, beneath one item. */
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

  /** One of its tasks has an instance that stands for several items, and has not ended. */
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

  /** What waits for its next try goes on with the one it is at. */
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

  #tell(slot: GroupSlot, event: GroupEvent["event"]): void {
    const { callbacks, notices } = slot.node.manifest;
    if (callbacks?.[event] || notices?.[event]) slot.events.push({ event, tryNumber: slot.tryNumber });
  }
}

function isCurrent({ at, slot }: { readonly at: number; readonly slot: GroupSlot }): boolean {
  return slot.state === "waiting" && slot.retryAt === at;
}
