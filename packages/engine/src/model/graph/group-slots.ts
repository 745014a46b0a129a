/**
 * The instances of groups: one of each group; of a group that runs once per item and has retries, one per item. Made when
 * the first task instance of the item is. One whose item does not exist any more stays, without instances, so that its
 * tries go on if the item comes back.
 */
import type { Expansions } from "../map/expansions.ts";
import type { Spot } from "../run/slot.ts";
import type { TaskNode } from "./graph.ts";
import type { GroupNode } from "./group-node.ts";

export type GroupState = "open" | "waiting" | "success" | "failed" | "skipped";

/** As it is stored; one without a row is open, at its first try. */
export interface GroupRow {
  readonly groupId: string;
  /** The map index of its item; -1: there is one for all. */
  readonly mapIndex: number;
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

export interface GroupSlot {
  readonly node: GroupNode;
  /** Of its item, -1 if the group is not mapped. */
  readonly ordinal: number;
  state: GroupState;
  tryNumber: number;
  maxTries: number;
  retryAt: number | null;
  /** How many task instances lie in it, and how many of them have not ended. */
  size: number;
  unfinished: number;
  /** Groups inside that wait for their next try. */
  waitingInside: number;
  events: GroupEvent[];
}

/** Where a task instance lies. */
export interface Placed extends Spot {
  readonly node: Pick<TaskNode, "scope">;
}

export class GroupSlots {
  readonly #expansions: Expansions;
  readonly #nodes: ReadonlyMap<string, GroupNode>;
  /** By the index of the group, then by the ordinal of the item. */
  readonly #byNode: readonly Map<number, GroupSlot>[];

  constructor(nodes: readonly GroupNode[], expansions: Expansions) {
    this.#expansions = expansions;
    this.#nodes = new Map(nodes.map((node) => [node.id, node]));
    this.#byNode = nodes.map(() => new Map());
    for (const node of nodes) if (node.depth === 0) this.at(node, -1);
  }

  *all(): Iterable<GroupSlot> {
    for (const slots of this.#byNode) yield* slots.values();
  }

  at(node: GroupNode, ordinal: number): GroupSlot {
    const slots = this.#byNode[node.index]!;
    const known = slots.get(ordinal);
    if (known) return known;
    const { retries: maxTries } = node;
    const made: GroupSlot = {
      node,
      ordinal,
      state: "open",
      tryNumber: 1,
      maxTries,
      retryAt: null,
      size: 0,
      unfinished: 0,
      waitingInside: 0,
      events: [],
    };
    slots.set(ordinal, made);
    return made;
  }

  /** Made if the graph has such a group. */
  named(groupId: string, mapIndex: number): GroupSlot | undefined {
    const node = this.#nodes.get(groupId);
    return node && node.depth > 0 === mapIndex >= 0 ? this.at(node, mapIndex) : undefined;
  }

  /** The one that an instance lies in; undefined: it stands for instances in several of them. */
  around(node: GroupNode, { level, node: task, ordinal }: Placed): GroupSlot | undefined {
    if (node.depth === 0) return this.at(node, -1);
    if (level < node.depth) return undefined;
    return this.at(node, this.#expansions.ancestor(task.scope!.chain[level - 1]!, ordinal, node.depth));
  }

  /** The one of a group around it. */
  outer(slot: GroupSlot, node: GroupNode): GroupSlot {
    return this.at(node, this.#expansions.ancestor(slot.node.scope, slot.ordinal, node.depth));
  }

  /** Those with instances, in the item that stands for all of them. */
  *beneath(node: GroupNode, { level, ordinal }: Spot): Iterable<GroupSlot> {
    for (const slot of this.#byNode[node.index]!.values()) {
      if (slot.size === 0) continue;
      if (this.#expansions.ancestor(node.scope, slot.ordinal, level) === ordinal) yield slot;
    }
  }
}

export function hasEnded({ state }: Pick<GroupSlot, "state">): boolean {
  return state !== "open" && state !== "waiting";
}

export function groupRow({ maxTries, node, ordinal, retryAt, state, tryNumber }: GroupSlot): GroupRow {
  return { groupId: node.id, mapIndex: ordinal, state, tryNumber, maxTries, retryAt };
}
