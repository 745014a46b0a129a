/** Custom weights: a function instead of a weight rule. */
import { DagDefinitionError, show } from "../check/errors.ts";
import type { TaskManifest } from "../manifest.ts";

/**
 * The facts about a task that its weight can depend on.
 * @example const byFanOut = (task: WeighedTask) => task.priority + task.downstream.length;
 */
export interface WeighedTask {
  readonly taskId: string;
  readonly group: string | null;
  /** The value of the option `priority`. */
  readonly priority: number;
  readonly pool: string;
  readonly poolSlots: number;
  /** Ids of the direct upstream and downstream tasks. */
  readonly upstream: readonly string[];
  readonly downstream: readonly string[];
}

/**
 * Returns the weight of a task as a whole number; it is called once, when the DAG file is loaded.
 * @example const urgentFirst: WeightFunction = ({ taskId }) => (taskId.startsWith("urgent") ? 100 : 1);
 */
export type WeightFunction = (task: WeighedTask) => number;

const MOST = 2_147_483_647;

/** The task with the weight that the function returns. */
export function weighed(
  task: TaskManifest,
  weigh: WeightFunction,
  world: { readonly dagId: string; readonly downstream: readonly string[] },
): TaskManifest {
  const { taskId, group, priority, pool, poolSlots, upstream } = task;
  const where = `dag ${show(world.dagId)}, task ${show(taskId)}: weightRule`;
  let weight: unknown;
  try {
    weight = weigh({ taskId, group, priority, pool, poolSlots, upstream, downstream: world.downstream });
  } catch (error) {
    throw new DagDefinitionError("TW_BAD_OPTION", `${where} threw an error: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (Number.isInteger(weight) && Math.abs(weight as number) <= MOST)
    return { ...task, priority: weight as number };
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where} must return a whole number from -${MOST} to ${MOST}, got ${show(weight)}`,
  );
}
