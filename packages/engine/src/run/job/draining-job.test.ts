/** A scheduler that drains next to another. For whole processes see packages/cli/test/drain.test.ts. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { BackfillFixture } from "../../../test/support/backfill-fixture.ts";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";

const settings = { TRADEWIND_DRAIN: "10m" };
let rig: SchedulerRig;

beforeEach(async () => {
  rig = await SchedulerRig.open();
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 1)"));
  await rig.publish({
    "drained.ts": `
      import { existsSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      import { dag, every, TimeDeltaTrigger } from "tradewind";
      const opened = async (name) => { while (!existsSync(${JSON.stringify(rig.root)} + "/" + name)) await sleep(20); };
      const gate = () => opened("gate");
      export const holder = dag("holder", (d) => { d.task("has", { pool: "narrow" }, () => opened("pool")); });
      export const wait = dag("wait", (d) => { d.trigger("w", new TimeDeltaTrigger({ delta: "1h" })); });
      export const busy = dag("busy", (d) => {
        d.task("hold", gate);
        d.task("first", { pool: "narrow", priority: 9 }, () => 1);
      });
      export const low = dag("low", (d) => { d.task("z", { pool: "narrow" }, () => 1); });
      export const told = dag("told", { onSuccess: async () => { await gate(); } }, (d) => { d.task("only", () => 1); });
      export const daily = dag("daily", { schedule: every("1d") }, (d) => {
        d.task("day", async (_, ctx) => { if (ctx.run.logicalDate?.getUTCDate() === 1) await gate(); });
      });`,
  });
  return async () => {
    for (const gate of ["gate", "pool"]) await writeFile(join(rig.root, gate), "");
    await rig.close();
  };
});

const open = () => writeFile(join(rig.root, "gate"), "");
const running = (run: number, task: string) =>
  rig.until(async () => (await rig.states(run))[task] === "running", `${task} runs`);
const owner = async (run: number) =>
  ((await rig.run(run)) as unknown as { owner_job: number | null }).owner_job;

it("reads which runs it owns when the answer to a release is lost", async () => {
  const proxy = await pgProxy(rig.url);
  const old = await rig.scheduler({ shared: false, url: proxy.url, settings });
  const [busy, wait] = [await rig.trigger("busy"), await rig.trigger("wait")];
  await running(busy, "hold");
  await rig.until(async () => (await rig.states(wait)).w === "deferred", "the wait");
  const job = await owner(busy);
  await rig.scheduler({ shared: false });
  // The queries caused by the start of the peer are done: the next commit is the release.
  let [commits, quiet] = [0, 0];
  await rig.until(async () => {
    quiet = proxy.commits === commits ? quiet + 1 : 0;
    commits = proxy.commits;
    return quiet === 15;
  }, "no commits");
  proxy.set({ kind: "drop-commit-answer", probability: 1 });
  const drained = old.drain();
  await rig.until(async () => ![job, null].includes(await owner(wait)), "the peer owns the run that waits");
  proxy.set({ kind: "pass" });
  expect(await owner(busy)).toBe(job);
  await open();
  await drained;
  expect(await rig.ended(busy)).toBe("success");
  const lost = "SELECT count(*)::int AS n FROM task_attempt WHERE dag_run_id = $1";
  expect(await rig.db.one(adhoc(lost), [busy])).toEqual({ n: 0 });
  await old.stop();
  proxy.set({ kind: "cut" });
  await proxy.close();
});

it("keeps no pool slots for tasks that it will not start", async () => {
  const old = await rig.scheduler({ shared: false, settings });
  await running(await rig.trigger("holder"), "has");
  const busy = await rig.trigger("busy");
  await running(busy, "hold");
  await rig.scheduler({ shared: false });
  const waiters = () => rig.db.rows(adhoc("SELECT 1 FROM pool_waiter"));
  await rig.until(async () => (await waiters()).length > 0, "the news of the task that waits");
  const drained = old.drain();
  await rig.until(async () => (await waiters()).length === 0, "the news that it does not wait any more");
  await writeFile(join(rig.root, "pool"), "");
  expect(await rig.ended(await rig.trigger("low"), 5_000)).toBe("success");
  expect((await rig.states(busy)).first).toBe("scheduled");
  await open();
  await drained;
  expect(await rig.ended(busy)).toBe("success");
});

it("waits for running callbacks", async () => {
  const old = await rig.scheduler({ shared: false, settings });
  const told = await rig.trigger("told");
  expect(await rig.ended(told)).toBe("success");
  let isDrained = false;
  const drained = old.drain().then(() => {
    isDrained = true;
  });
  await rig.scheduler({ shared: false });
  expect(await rig.ended(await rig.trigger("told"))).toBe("success");
  expect(isDrained).toBe(false);
  await open();
  await drained;
});

it("releases a backfill to another host, which continues with the next dates", async () => {
  const desk = new BackfillFixture(rig);
  const old = await desk.host({ listens: true });
  const id = await desk.create({ dagId: "daily", from: "2020-01-01", to: "2020-01-04", maxActive: 2 });
  const runs = async () => (await desk.runsOf("daily")).map(({ state }) => state);
  await rig.until(async () => (await runs()).join() === "running,success,success,success", "the other dates");
  const [first] = await desk.runsOf("daily");
  await running(first!.id, "day");
  const later = await desk.create({ dagId: "daily", from: "2020-02-02", to: "2020-02-04", maxActive: 1 });
  await rig.until(async () => (await runs()).length > 4, "the next backfill");
  const drained = old.drain();
  await desk.host({ listens: true });
  expect(await desk.over(later)).toBe("done");
  expect((await runs())[0]).toBe("running");
  await open();
  await drained;
  expect(await desk.over(id)).toBe("done");
  // The drain may begin between the commit that admits the next date and the start of its process. That attempt is
  // withdrawn: it is recorded as lost, has not started, and uses up no try.
  const lost = "SELECT count(*)::int AS n FROM task_attempt WHERE started_at IS NOT NULL";
  expect(await rig.db.one(adhoc(lost))).toEqual({ n: 0 });
  const tries = "SELECT max(try_number) AS n FROM task_instance";
  expect(await rig.db.one(adhoc(tries))).toEqual({ n: 1 });
});
