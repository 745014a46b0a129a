/** What a run keeps in memory about each task and each map, and where in them something lies. */
import type { TaskNode } from "../graph/graph.ts";
import type { Scope } from "../graph/scope.ts";
import type { Standing } from "../graph/standing.ts";
import type { Instance } from "./instance.ts";

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
