/**
 * Many waits, each on its own trigger, that end at the same time. The time is set when all of them wait: triggers with
 * the same time from the start are equal, and equal triggers are shared.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { adhoc } from "../../../packages/engine/src/store/database/database.ts";
import type { Figure } from "../../result.ts";
import { digits, median, quantile } from "../../statistics.ts";
import { allDeferred, resumedTasks, type WaitingRig } from "../waiting-rig.ts";

const SET_MOMENT = adhoc(
  `WITH moment AS (SELECT date_trunc('milliseconds', now()) + $2 * interval '1 second' AS at),
   moved AS (
     UPDATE trigger t SET wake_at = moment.at FROM moment, deferral d
     WHERE d.dag_run_id = ANY($1) AND d.waits_on = t.id RETURNING 1)
   SELECT 1000 * extract(epoch FROM at)::float8 AS at, (SELECT count(*)::int FROM moved) AS moved,
          pg_notify('tradewind', 'triggers') FROM moment`,
);
const FIRED = adhoc(
  `SELECT 1000 * extract(epoch FROM max(fired_at))::float8 AS fired, 1000 * extract(epoch FROM max(ended_at))::float8 AS ended
   FROM deferral WHERE dag_run_id = ANY($1)`,
);

export async function dueAtOnce(rig: WaitingRig, tasks: number, rounds: number): Promise<Figure[]> {
  const seconds: number[] = [];
  const notes: string[] = [];
  for (let round = 0; round <= rounds; round++) {
    const ids = await rig.create([`begun_${tasks}`]);
    await allDeferred(rig, ids, tasks);
    await sleep(500);
    const row = await rig.database.one<{ at: number; moved: number }>(SET_MOMENT, [
      ids,
      tasks > 1_000 ? 4 : 1.5,
    ]);
    if (row?.moved !== tasks) throw new Error(`${row?.moved} of ${tasks} triggers have the moment`);
    if (Date.now() > row.at - 100) throw new Error("the time passed before all triggers had it");
    await rig.ended(ids);
    const after = (await resumedTasks(rig, ids)).map(({ resumedAt }) => (resumedAt - row.at) / 1_000);
    if (after.length !== tasks || quantile(after, 0) < 0)
      throw new Error(`${after.length} of ${tasks} resumed, the first after ${quantile(after, 0)} s`);
    const ends = await rig.database.one<{ fired: number; ended: number }>(FIRED, [ids]);
    // The first round loads the code in every task process.
    if (round === 0) continue;
    seconds.push(quantile(after, 1));
    notes.push(
      `first ${digits(quantile(after, 0))}, half ${digits(median(after))}, last fired by ${digits(((ends?.fired ?? 0) - row.at) / 1_000)} s`,
    );
  }
  const value = median(seconds);
  return [
    {
      scenario: "d",
      what: `${tasks.toLocaleString("en-US")} waits over at the same moment: until the last task runs again`,
      value,
      unit: "s",
      bar: { atMost: tasks > 1_000 ? 10 : 2 },
      note: `median of ${rounds}; ${notes[seconds.indexOf(value)]}`,
    },
  ];
}
