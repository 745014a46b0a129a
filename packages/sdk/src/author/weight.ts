/** Weights of an author's own: a function in place of a weight rule. */
import { DagDefinitionError, show } from "../check/errors.ts";
import type { TaskManifest } from "../manifest.ts";

/** What a weight can depend on. */
export interface WeighedTask {
  readonly taskId: string;
  readonly group: string | null;
  /** Its own weight, as the option `priority` says. */
  readonly priority: number;
  readonly pool: string;
  readonly poolSlots: number;
  /** Ids of the tasks directly before and after it. */
  readonly upstream: readonly string[];
  readonly downstream: readonly string[];
}

/**
 * Answers the weight of a task, a whole number. It is asked when the DAG's file is loaded, not at run time: what it
 * depends on besides the DAG itself is what was so then.
 */
export type WeightFunction = (task: WeighedTask) => number;

const MOST = 2_147_483_647;

/** The task with the weight that the function gives it. */
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
    throw new DagDefinitionError("TW_BAD_OPTION", `${where} has thrown: ${(error as Error).message}`, {
      cause: error,
    });
  }
  if (Number.isInteger(weight) && Math.abs(weight as number) <= MOST)
    return { ...task, priority: weight as number };
  throw new DagDefinitionError(
    "TW_BAD_OPTION",
    `${where} must answer a whole number from -${MOST} to ${MOST}, got ${show(weight)}`,
  );
}
