/** `tradewind scheduler --runs`: it ends after the given number of runs, and leaves none unfinished. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { gatedDags } from "../../../test/support/gated-dags.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { cancelRun } from "../../store/edit/end-run.ts";

let rig: SchedulerRig;
const gate = () => join(rig.root, "gate");

beforeEach(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "dags.ts": `
      ${gatedDags(rig.root)}
      export const quick = dag("quick", { maxActiveRuns: 100 }, (d) => { d.task("t", () => 1); });
      export const child = dag("child", {}, (d) => { d.task("t", () => 1); });
      export const parent = dag("parent", {}, (d) => { d.dag("sub", child); });
    `,
  });
  return () => rig.close();
});

const states = async () => {
  const sql = "SELECT state, count(*)::int AS n FROM dag_run GROUP BY state";
  const rows = await rig.db.rows<{ state: string; n: number }>(adhoc(sql));
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
};

it("ends after the given number of runs, and starts no other queued run", async () => {
  for (let n = 0; n < 6; n++) await rig.trigger("quick");
  const scheduler = await rig.scheduler({ runs: 3 });
  await scheduler.finished;
  expect(await states()).toEqual({ success: 3, queued: 3 });
  await scheduler.stop();
  expect(await states()).toEqual({ success: 3, queued: 3 });
});

it("counts a run that was ended manually, and claims no other for it", async () => {
  const [first] = [await rig.trigger("held"), await rig.trigger("held")];
  const scheduler = await rig.scheduler({ runs: 1 });
  await rig.until(async () => (await rig.states(first!)).t === "running", "the task");
  expect(await states()).toEqual({ running: 1, queued: 1 });
  await rig.db.transaction((tx) => cancelRun(tx, first!, "cancelled by a test"));
  rig.wakeUps.send(`run:${first!}`);
  await scheduler.finished;
  expect(await states()).toEqual({ failed: 1, queued: 1 });
});

it("owns no more runs than it needs next to a full peer", async () => {
  const scheduler = await rig.scheduler({ runs: 1, parallelism: 8, shared: false });
  await rig.scheduler({ parallelism: 1, shared: false });
  const ids: number[] = [];
  for (let n = 0; n < 4; n++) ids.push(await rig.trigger("held"));
  const owned = async () => {
    const sql =
      "SELECT count(*)::int AS n FROM dag_run WHERE state = 'running' GROUP BY owner_job ORDER BY n";
    return (await rig.db.rows<{ n: number }>(adhoc(sql))).map(({ n }) => n);
  };
  await rig.until(async () => (await owned()).join() === "1,3", "one run here, three there");
  expect(await rig.db.one(adhoc("SELECT free_slots FROM job WHERE slots = 8"))).toEqual({ free_slots: 0 });
  await writeFile(gate(), "");
  await scheduler.finished;
  for (const id of ids) expect(await rig.ended(id)).toBe("success");
});

it("runs the sub-DAGs of its own runs, which do not count", async () => {
  const ids = [await rig.trigger("parent"), await rig.trigger("parent"), await rig.trigger("quick")];
  await rig.triggerer();
  const scheduler = await rig.scheduler({ runs: 2 });
  await scheduler.finished;
  expect(await Promise.all(ids.map(async (id) => (await rig.run(id)).state))).toEqual([
    "success",
    "success",
    "queued",
  ]);
  expect(await states()).toEqual({ success: 4, queued: 1 });
});

it("waits for the callbacks of its runs", async () => {
  const id = await rig.trigger("told");
  const scheduler = await rig.scheduler({ runs: 1 });
  await scheduler.finished;
  expect((await rig.run(id)).state).toBe("success");
  expect(await rig.db.rows(adhoc("SELECT 1 FROM callback"))).toEqual([]);
});
