/**
 * The benchmarks' rig with a triggerer in a separate process: as in a cluster, where wake-ups between it and the scheduler
 * go through the database. In one process, as in `standalone`, they would be faster.
 */
import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import { openRig, type Rig } from "../rig.ts";
import { until } from "../until.ts";
import { type TriggererProcess, withTriggerer } from "./triggerer-process.ts";

export interface WaitingRig extends Rig {
  readonly triggerer: TriggererProcess;
}

export async function withWaitingRig<T>(work: (rig: WaitingRig) => Promise<T>): Promise<T> {
  const rig = await openRig();
  try {
    return await withTriggerer(rig, (triggerer) => work({ ...rig, triggerer }));
  } finally {
    await rig.stop();
  }
}

/** Instances of these runs by state, from the scheduler's memory; the last of them may not be stored yet. */
export function counted(
  { scheduler }: Pick<Rig, "scheduler">,
  ids: readonly number[],
  state: "deferred" | "running" | "success",
): number {
  return ids.reduce((sum, id) => sum + (scheduler["actors"].get(id)?.model.counts.byState[state] ?? 0), 0);
}

const WAITING = adhoc(
  "SELECT count(*)::int AS n FROM deferral WHERE dag_run_id = ANY($1) AND waits_on IS NOT NULL",
);

/** Resolves when this many waits of these runs are stored. */
export async function allDeferred(rig: Rig, ids: readonly number[], tasks: number): Promise<void> {
  await until(`${tasks} deferred`, () => counted(rig, ids, "deferred") === tasks);
  await until(`${tasks} stored`, async () => {
    return (await rig.database.one<{ n: number }>(WAITING, [ids]))?.n === tasks;
  });
}

const OUTPUTS = adhoc(
  "SELECT value FROM xcom WHERE dag_run_id = ANY($1) AND key = 'return_value' AND value::text LIKE '{%'",
);

/** The output of resumed tasks; see dags.ts. */
export interface Resumed {
  /** When the trigger's poll returned the event, by the machine's clock; null for a timed trigger. */
  readonly firedAt: number | null;
  /** When the first line of the task's code ran again. */
  readonly resumedAt: number;
}

export async function resumedTasks(rig: Rig, ids: readonly number[]): Promise<Resumed[]> {
  return (await rig.database.rows<{ value: Resumed }>(OUTPUTS, [ids])).map(({ value }) => value);
}
