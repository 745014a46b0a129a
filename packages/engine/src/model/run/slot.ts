/** The in-memory state of each task and each map of a run, and positions in them. */
import type { TaskNode } from "../graph/graph.ts";
import type { Scope } from "../graph/scope.ts";
import type { Standing } from "../graph/standing.ts";
import type { Instance } from "./instance.ts";

/** The state of one task in a run. */
export interface Slot {
  readonly node: TaskNode;
  readonly standing: Standing;
  /** The states of the setups in whose scopes it is, except those directly upstream; null: none. */
  guard: Standing | null;
  /** One instance; for a mapped task one per item, and a stand-in for each place that is not expanded yet. */
  instances: Instance[];
  /** By map index, if that is not the index in `instances`: in nested scopes. */
  readonly byIndex: Map<number, Instance> | null;
  /** Instances in state none that are not held: a new verdict could change them. */
  idle: number;
  /** The instances on the agenda. */
  due: "all" | Instance[] | null;
}

/** The state of one map in a run. */
export interface ScopeSlot {
  readonly scope: Scope;
  readonly standing: Standing;
  /** Its places on the agenda: by item of the parent. */
  readonly due: Set<number>;
}

/** A position: an item of the scope at a depth. */
export interface Spot {
  readonly level: number;
  readonly ordinal: number;
}
