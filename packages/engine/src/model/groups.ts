/**
 * Groups with retries or callbacks while a run goes on: when one has ended, how, and whether it runs again.
 *
 *   open      some of its tasks have not ended
 *   waiting   all have, it has failed, and its next try begins at a moment of its own
 *   success, failed, skipped: it has ended for good, and whoever has a callback for that was called
 *
 * A group is one unit of work: it is judged when all its tasks have ended, and all of them run again, those that succeeded,
 * too. What is outside sees nothing of it until it has ended for good (see group-node.ts), so nobody has to take back what
 * he did with an output of a try that failed. The innermost group that has failed goes first: those around it see only how
 * it has ended for good.
 *
 * If one of its tasks begins again after the group has ended, whoever asked for it, the group is open again, at its next
 * try, with as many retries as it has. So a group has ended exactly as long as all its tasks have: a run that is loaded
 * needs no more than the rows to know how its groups stand.
 */
import type { Expansions } from "./expansions.ts";
import type { TaskNode } from "./graph.ts";
import type { GroupNode } from "./group-node.ts";
import type { Instance } from "./instance.ts";
import { FAILED, isFinished } from "./states.ts";
import type { Tally } from "./tally.ts";

export type GroupState = "open" | "waiting" | "success" | "failed" | "skipped";

/** As it is stored; one without a row is open, at its first try. */
export interface GroupRow {
  readonly groupId: string;
  readonly state: GroupState;
  /** From 1 on. */
  readonly tryNumber: number;
  /** A failure of try n is followed by another while n <= maxTries. */
  readonly maxTries: number;
  readonly retryAt: number | null;
}

/** What its callbacks are called for. */
export interface GroupEvent {
  readonly event: "success" | "failure" | "retry";
  readonly tryNumber: number;
}

export interface GroupChange extends GroupRow {
  readonly events: readonly GroupEvent[];
}

interface GroupSlot {
  readonly node: GroupNode;
  state: GroupState;
  tryNumber: number;
  maxTries: number;
  retryAt: number | null;
  unfinished: number;
  events: GroupEvent[];
  dirty: boolean;
}

/** What it has to know of the instances. */
interface Surroundings {
  readonly counts: Tally;
  readonly expansions: Expansions;
  readonly slots: readonly { readonly instances: readonly Instance[] }[];
  bookCovered(group: GroupNode, by: 1 | -1): void;
}

export class Groups {
  readonly #table: Surroundings;
  readonly #slots: readonly GroupSlot[];
  /** To be judged: all their tasks have ended. */
  readonly #due = new Set<GroupSlot>();
  readonly #waiting = new Set<GroupSlot>();
  #isHalted = false;

  constructor(nodes: readonly GroupNode[], table: Surroundings) {
    this.#table = table;
    this.#slots = nodes.map((node) => ({
      node,
      state: "open",
      tryNumber: 1,
      maxTries: node.retries,
      retryAt: null,
      unfinished: 0,
      events: [],
      dirty: false,
    }));
  }

  /** Once all instances are loaded. What has been cleared since the row was written shows by what has not ended. */
  restore(rows: readonly GroupRow[]): void {
    const byId = new Map(this.#slots.map((slot) => [slot.node.id, slot]));
    for (const { groupId, maxTries, retryAt, state, tryNumber } of rows) {
      const slot = byId.get(groupId);
      if (!slot) continue;
      slot.tryNumber = tryNumber;
      slot.maxTries = maxTries;
      if (state === "waiting") this.#wait(slot, retryAt ?? 0);
      else if (state !== "open") this.#close(slot, state);
      if (slot.unfinished > 0 && state !== "open") this.#reopen(slot);
      else slot.dirty = false;
    }
  }

  /** Once after loading: what was marked by hand may have ended a group, or may have made a success of a failure. */
  start(): void {
    for (const slot of this.#slots) if (slot.unfinished === 0) this.#due.add(slot);
  }

  get(groupId: string): Readonly<GroupRow> | undefined {
    const slot = this.#slots.find(({ node }) => node.id === groupId);
    return slot && rowOf(slot);
  }

  /** Whether the ends of its tasks do not count outside yet. */
  isHidden({ index }: GroupNode): boolean {
    return !hasEnded(this.#slots[index]!);
  }

  /** Whether something of one task does not count for another one yet. */
  isHiddenFrom(from: TaskNode, to: TaskNode): boolean {
    for (let group = from.group; group !== null; group = group.parent)
      if (group.retries > 0 && !group.members.has(to.index) && this.isHidden(group)) return true;
    return false;
  }

  /** An instance enters a state, or leaves it. */
  count({ node, state }: Instance, by: 1 | -1): void {
    if (isFinished(state)) return;
    for (let group = node.group; group !== null; group = group.parent) {
      const slot = this.#slots[group.index]!;
      slot.unfinished += by;
      if (slot.unfinished === 0) this.#due.add(slot);
    }
  }

  /** A task of it that had ended is about to begin again. */
  reopen(innermost: GroupNode): void {
    for (let group: GroupNode | null = innermost; group !== null; group = group.parent) {
      const slot = this.#slots[group.index]!;
      if (slot.state !== "open") this.#reopen(slot);
    }
  }

  /** Judges what is to be judged, the innermost first. true: something has ended for good, which others may see now. */
  settle(now: number): boolean {
    let hasClosed = false;
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
      hasClosed = true;
      this.#close(slot, state);
      if (state !== "skipped") this.#tell(slot, state === "success" ? "success" : "failure");
      if (slot.node.parent) this.#due.add(this.#slots[slot.node.parent.index]!);
    }
    return hasClosed;
  }

  /** When the next try of some group begins. */
  nextAt(): number | null {
    let next: number | null = null;
    for (const { retryAt } of this.#waiting) next = Math.min(next ?? Number.POSITIVE_INFINITY, retryAt ?? 0);
    return next;
  }

  /**
   * Groups whose next try is due: all their instances, to begin again. Not before the end of the last try is stored:
   * otherwise nobody would ever be told of it.
   */
  begin(now: number): Instance[] {
    const again: Instance[] = [];
    for (const slot of [...this.#waiting]) {
      if ((slot.retryAt ?? 0) > now || slot.dirty) continue;
      const instances = [...this.#instances(slot)];
      if (instances.some(({ dirty }) => dirty)) continue;
      this.#leaveWait(slot);
      slot.tryNumber++;
      again.push(...instances.filter(({ state }) => state !== "removed"));
    }
    return again;
  }

  /** The run is to end now: no group is tried again. */
  halt(): void {
    this.#isHalted = true;
    for (const slot of this.#waiting) this.#due.add(slot);
  }

  takeChanges(): GroupChange[] {
    const dirty = this.#slots.filter((slot) => slot.dirty);
    return dirty.map((slot) => {
      const events = slot.events.splice(0);
      slot.dirty = false;
      return { ...rowOf(slot), events };
    });
  }

  /** What was taken last was not stored. */
  giveBack(changes: readonly GroupChange[]): void {
    for (const { events, groupId } of changes) {
      const slot = this.#slots.find(({ node }) => node.id === groupId)!;
      slot.events.unshift(...events);
      slot.dirty = true;
    }
  }

  #takeDue(): GroupSlot | undefined {
    let first: GroupSlot | undefined;
    for (const slot of this.#due) if (!first || slot.node.index > first.node.index) first = slot;
    if (first) this.#due.delete(first);
    return first;
  }

  /** All its tasks have ended, and nothing more comes. */
  #isOver({ node, unfinished }: GroupSlot): boolean {
    const { expansions } = this.#table;
    if (unfinished > 0 || node.children.some((child) => this.isHidden(child))) return false;
    return node.scopes.every((scope) =>
      [...expansions.of(scope)].every(({ length, made }) => made === length),
    );
  }

  #endState(slot: GroupSlot): "success" | "failed" | "skipped" {
    let isSkipped = true;
    for (const { node, state } of this.#instances(slot)) {
      if (slot.node.leaves.has(node.index) && FAILED.has(state)) return "failed";
      if (state !== "skipped") isSkipped = false;
    }
    return isSkipped ? "skipped" : "success";
  }

  *#instances({ node }: GroupSlot): Iterable<Instance> {
    for (const index of node.members) yield* this.#table.slots[index]!.instances;
  }

  #wait(slot: GroupSlot, retryAt: number): void {
    slot.state = "waiting";
    slot.retryAt = retryAt;
    slot.dirty = true;
    this.#waiting.add(slot);
    this.#table.counts.retrying++;
  }

  #leaveWait(slot: GroupSlot): void {
    slot.state = "open";
    slot.retryAt = null;
    slot.dirty = true;
    this.#waiting.delete(slot);
    this.#table.counts.retrying--;
  }

  #close(slot: GroupSlot, state: "success" | "failed" | "skipped"): void {
    if (slot.state === "waiting") this.#leaveWait(slot);
    slot.state = state;
    slot.dirty = true;
    if (slot.node.retries > 0) this.#table.bookCovered(slot.node, 1);
  }

  /** What waits for its next try goes on with the one it is at. */
  #reopen(slot: GroupSlot): void {
    if (slot.state === "waiting") {
      this.#leaveWait(slot);
      return;
    }
    if (slot.node.retries > 0) this.#table.bookCovered(slot.node, -1);
    slot.state = "open";
    slot.maxTries = slot.tryNumber + slot.node.retries;
    slot.tryNumber++;
    slot.dirty = true;
  }

  #tell(slot: GroupSlot, event: GroupEvent["event"]): void {
    if (slot.node.callbacks[event]) slot.events.push({ event, tryNumber: slot.tryNumber });
  }
}

function hasEnded({ state }: GroupSlot): boolean {
  return state !== "open" && state !== "waiting";
}

function rowOf({ maxTries, node, retryAt, state, tryNumber }: GroupSlot): GroupRow {
  return { groupId: node.id, state, tryNumber, maxTries, retryAt };
}
