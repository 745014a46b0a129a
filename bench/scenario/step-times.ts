import { adhoc } from "../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../result.ts";
import type { Rig } from "../rig.ts";
import { quantile } from "../statistics.ts";

const ENDS = adhoc(
  `SELECT dag_run_id, 1000 * extract(epoch FROM ended_at)::float8 AS at FROM task_instance
   WHERE dag_run_id = ANY($1) ORDER BY dag_run_id, ended_at`,
);

/** From the end of one task of a chain to the end of the next, as recorded by the engine (whole milliseconds). */
export async function stepTimes(rig: Rig, runIds: readonly number[]): Promise<Figure[]> {
  const rows = await rig.database.rows<{ dag_run_id: number; at: number }>(ENDS, [runIds]);
  const steps = rows.flatMap((row, at) => {
    const before = rows[at - 1];
    return before?.dag_run_id === row.dag_run_id ? [row.at - before.at] : [];
  });
  return [0.5, 0.99].map((q) => ({
    scenario: "a",
    what: `chain, step to step p${q * 100}`,
    value: quantile(steps, q),
    unit: "ms",
  }));
}
