/**
 * The instances of groups: one per group, or one per item for a mapped group with retries. An instance is created with the
 * first task instance of its item. If its item no longer exists, the group instance stays, without task instances, so that
 * its tries continue if the item returns.
 */
import type { Expansions } from "../map/expansions.ts";
import type { Spot } from "../run/slot.ts";
import type { TaskNode } from "./graph.ts";
import type { GroupNode } from "./group-node.ts";

export type GroupState = "open" | "waiting" | "success" | "failed" | "skipped";

/** The stored form. A group instance without a row is open, at its first try. */
export interface GroupRow {
  readonly groupId: string;
  /** The map index of its item; -1: a single instance. */
  readonly mapIndex: number;
  readonly state: GroupState;
  /** Starts at 1. */
  readonly tryNumber: number;
  /** A failed try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly retryAt: number | null;
}

/** An event that its callbacks are called for. */
export interface GroupEvent {
  readonly event: "success" | "failure" | "retry";
  readonly tryNumber: number;
}

export interface GroupSlot {
  readonly node: GroupNode;
  /** The ordinal of its item; -1: the group is not mapped. */
  readonly ordinal: number;
  state: GroupState;
  tryNumber: number;
  maxTries: number;
  retryAt: number | null;
  /** The number of task instances in the group, and how many of them have not ended. */
  size: number;
  unfinished: number;
  /** Inner groups that wait for their next try. */
  waitingInside: number;
  events: GroupEvent[];
}

/** The position of a task instance. */
export interface Placed extends Spot {
  readonly node: Pick<TaskNode, "scope">;
}

export class GroupSlots {
  readonly #expansions: Expansions;
  readonly #nodes: ReadonlyMap<string, GroupNode>;
  /** By group index, then by item ordinal. */
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

  /** Creates the instance if the graph has such a group. */
  named(groupId: string, mapIndex: number): GroupSlot | undefined {
    const node = this.#nodes.get(groupId);
    return node && node.depth > 0 === mapIndex >= 0 ? this.at(node, mapIndex) : undefined;
  }

  /** The group instance around a task instance; undefined: the task instance is a stand-in for several of them. */
  around(node: GroupNode, { level, node: task, ordinal }: Placed): GroupSlot | undefined {
    if (node.depth === 0) return this.at(node, -1);
    if (level < node.depth) return undefined;
    return this.at(node, this.#expansions.ancestor(task.scope!.chain[level - 1]!, ordinal, node.depth));
  }

  /** The instance of an outer group. */
  outer(slot: GroupSlot, node: GroupNode): GroupSlot {
    return this.at(node, this.#expansions.ancestor(slot.node.scope, slot.ordinal, node.depth));
  }

  /** Group instances with task instances, within the given item. */
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
