/**
 * The same shapes with a history of ended runs, on a second installation. Both are measured in turn, so that other work on
 * the machine affects both alike.
 */
import { adhoc, type Database } from "../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../result.ts";
import { openRig, type Rig } from "../rig.ts";
import { digits, median } from "../statistics.ts";
import { CHAIN, FAN, INDEPENDENT, runsOf, SHAPE_FILES, type Shape } from "./shape.ts";

const SHAPES = [CHAIN, FAN, INDEPENDENT];
/** Single pairs differ by a third, and the bar is a tenth. */
const MORE = 3;

export async function withHistory(none: Rig, options: { quick: boolean; repeat: number }): Promise<Figure[]> {
  const instances = options.quick ? 100_000 : 1_000_000;
  const full = await openRig();
  try {
    await full.publish(SHAPE_FILES);
    await addHistory(full.database, instances);
    const figures: Figure[] = [];
    for (const shape of SHAPES) {
      const pairs = await inTurn(none, full, { shape, rounds: MORE * runsOf(shape, options.repeat) });
      const [bare, old] = [median(pairs.map((pair) => pair.none)), median(pairs.map((pair) => pair.full))];
      figures.push({
        scenario: "f",
        what: `${shape.what}, with ${digits(instances)} finished instances: time against none`,
        value: median(pairs.map((pair) => pair.full / pair.none)),
        unit: "x",
        bar: { atMost: 1.1 },
        note: `median of ${pairs.length} pairs; ${digits(shape.value(old))} against ${digits(shape.value(bare))} ${shape.unit}`,
      });
    }
    return figures;
  } finally {
    await full.stop();
  }
}

/** They alternate in going first: side effects of one (a checkpoint, a vacuum) must not always hit the other. */
async function inTurn(
  none: Rig,
  full: Rig,
  { shape, rounds }: { shape: Shape; rounds: number },
): Promise<{ none: number; full: number }[]> {
  for (let n = 0; n < shape.warmUps; n++) for (const rig of [none, full]) await rig.run(shape.dagIds);
  const pairs: { none: number; full: number }[] = [];
  for (let n = 0; n < rounds; n++) {
    const ms = new Map<Rig, number>();
    for (const rig of n % 2 === 0 ? [none, full] : [full, none])
      ms.set(rig, (await rig.run(shape.dagIds)).ms);
    pairs.push({ none: ms.get(none) ?? Number.NaN, full: ms.get(full) ?? Number.NaN });
  }
  return pairs;
}

/** Runs of 100 tasks each, with the signals they would have left. */
async function addHistory(database: Database, instances: number): Promise<void> {
  await database.transaction(async (tx) => {
    await tx.script(`
      INSERT INTO dag_run (dag_id, run_id, run_type, state, logical_date, run_after, version_id, triggered_by, started_at, ended_at)
      SELECT d.dag_id, 'old_' || n, 'scheduled', 'success', at, at, d.version_id, 'timetable', at, at + interval '1 minute'
      FROM dag d CROSS JOIN generate_series(1, ${instances / 100}) AS n
      CROSS JOIN LATERAL (SELECT timestamptz '2020-01-01' + n * interval '1 minute' AS at) AS t
      WHERE d.dag_id = 'chain';

      INSERT INTO task_instance (dag_run_id, task_id, state, try_number, attempt, scheduled_at, queued_at, started_at, ended_at,
                                 pool, pool_slots, queue, priority_weight, operator)
      SELECT r.id, 't' || n, 'success', 1, gen_random_uuid(), r.started_at, r.started_at, r.started_at, r.ended_at,
             'default_pool', 1, 'default', 1, 'task'
      FROM dag_run r CROSS JOIN generate_series(0, 99) AS n WHERE r.run_id LIKE 'old_%';

      INSERT INTO signal (namespace, key, value, sender)
      SELECT 'task', r.dag_id || '/' || r.run_id || '/t' || n, '{"state":"success","mapIndex":-1,"tryNumber":1}', 'scheduler:1'
      FROM dag_run r CROSS JOIN generate_series(0, 99) AS n WHERE r.run_id LIKE 'old_%';`);
  });
  // Like an installation after a while: otherwise autovacuum would start during the measurement.
  for (const table of ["dag_run", "task_instance", "signal"])
    await database.rows(adhoc(`VACUUM (FREEZE, ANALYZE) ${table}`));
  await database.rows(adhoc("CHECKPOINT"));
}
