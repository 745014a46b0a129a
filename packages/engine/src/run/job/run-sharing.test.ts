/** Several schedulers: no slot idles while a task that could use it waits at another. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { seedJob } from "../../../test/support/catalogue-seed.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import type { SchedulerJob } from "./scheduler-job.ts";

const SLOTS = 2;
let rig: SchedulerRig;
let gate: string;

/** Tasks run until the gate opens. */
const file = (dagId: string, tasks: string) => `
  import { existsSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  import { dag } from "tradewind";
  const gate = async () => { while (!existsSync(${JSON.stringify(gate)})) await sleep(20); };
  export default dag("${dagId}", { maxActiveRuns: 100 }, (d) => { ${tasks} });`;

beforeEach(async () => {
  rig = await SchedulerRig.open();
  gate = join(rig.root, "gate");
  return () => rig.close();
});

afterEach(() => writeFile(gate, ""));

const open_ = (): Promise<SchedulerJob> => rig.scheduler({ parallelism: SLOTS, shared: false });
const running = async () =>
  (await rig.db.one<{ n: number }>(
    adhoc("SELECT count(*)::int AS n FROM task_instance WHERE state = 'running'"),
  ))!.n;
const allRun = (count: number) =>
  rig.until(async () => (await running()) === count, `${count} running tasks`);
/** Runs by owner. */
const shares = async () => {
  const sql = "SELECT count(*)::int AS n FROM dag_run WHERE state = 'running' GROUP BY owner_job ORDER BY n";
  return (await rig.db.rows<{ n: number }>(adhoc(sql))).map(({ n }) => n);
};
const triggerAtOnce = async (dagId: string, count: number) => {
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = $1"), [dagId]);
  const ids: number[] = [];
  for (let n = 0; n < count; n++) ids.push(await rig.trigger(dagId));
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = false WHERE dag_id = $1"), [dagId]);
  rig.wakeUps.send("dags");
  return ids;
};
/** Schedulers with free slots. */
const offers = () => rig.db.rows(adhoc("SELECT id FROM job WHERE kind = 'scheduler' AND free_slots > 0"));
const RECORD_OFFERS = [
  "CREATE TABLE offer (job bigint, free integer)",
  `CREATE FUNCTION record_offer() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN INSERT INTO offer VALUES (NEW.id, NEW.free_slots); RETURN NULL; END $$`,
  "CREATE TRIGGER record_offer AFTER UPDATE OF free_slots ON job FOR EACH ROW EXECUTE FUNCTION record_offer()",
];
/** Opens the gate; each run succeeds, each of its tasks at the first attempt. */
const finish = async (ids: readonly number[]) => {
  await writeFile(gate, "");
  for (const id of ids) expect(await rig.ended(id)).toBe("success");
  expect(await rig.poolsAreExact()).toBe(true);
  await rm(gate);
};

it("claims as many queued runs as it has slots, and leaves the others to peers with free slots", async () => {
  await rig.publish({
    "pair.ts": file("pair", 'd.task("heavy", { priority: 9 }, gate); d.task("light", gate);'),
  });
  await Promise.all([open_(), open_(), open_()]);
  const ids = await triggerAtOnce("pair", 3);
  await allRun(3 * SLOTS);
  expect(await shares()).toEqual([1, 1, 1]);
  await finish(ids);
});

it("shares queued runs equally while no scheduler has a free slot", async () => {
  await rig.publish({ "one.ts": file("one", 'd.task("a", gate);') });
  await Promise.all([open_(), open_(), open_()]);
  const ids = await triggerAtOnce("one", 3 * SLOTS);
  await allRun(3 * SLOTS);
  ids.push(...(await triggerAtOnce("one", 15)));
  const isClaimed = async () => (await shares()).reduce((sum, n) => sum + n, 0) === ids.length;
  await rig.until(isClaimed, "the claims");
  // Seven each, if all claim at the same time.
  expect(Math.max(...(await shares()))).toBeLessThanOrEqual(12);
  await finish(ids);
});

it("leaves a peer time to claim its share of the queue, and claims what the peer does not", async () => {
  await rig.publish({ "one.ts": file("one", 'd.task("a", gate);') });
  // A live scheduler without free slots that claims nothing.
  await seedJob(rig.db, 600_000);
  await open_();
  const ids = await triggerAtOnce("one", SLOTS);
  await allRun(SLOTS);
  ids.push(...(await triggerAtOnce("one", 4)));
  await rig.until(async () => (await shares())[0] === SLOTS + 4, "the claims");
  const sql =
    "SELECT extract(epoch FROM max(owned_since) - min(owned_since)) AS s FROM dag_run WHERE id = ANY($1)";
  const claims = await rig.db.one<{ s: string }>(adhoc(sql), [ids.slice(SLOTS)]);
  // Two at once, then one after each of two delays of half a second.
  expect(Number(claims?.s)).toBeGreaterThan(0.8);
  await finish(ids);
});

it("does not offer slots that its own next tasks will take", async () => {
  const first = join(rig.root, "first");
  // The first tasks end one after the other, some while the ends of others are being stored.
  const waits = `async () => {
    while (!existsSync(${JSON.stringify(first)})) await sleep(5);
    await sleep(Math.random() * 50);
  }`;
  await rig.publish({
    "chain.ts": file("chain", `const a = d.task("a", ${waits}); d.task("b", { after: a }, gate);`),
  });
  await rig.scheduler({ parallelism: 10, shared: false });
  const ids = await triggerAtOnce("chain", 10);
  await allRun(10);
  await open_();
  await rig.until(async () => (await offers()).length === 1, "the publications");
  for (const sql of RECORD_OFFERS) await rig.db.rows(adhoc(sql));
  await writeFile(first, "");
  const isNext = async () =>
    (await Promise.all(ids.map((id) => rig.states(id)))).every(({ b }) => b === "running");
  await rig.until(isNext, "the next tasks");
  const offered = adhoc("SELECT free FROM offer WHERE free > 0 AND job IN (SELECT owner_job FROM dag_run)");
  expect(await rig.db.rows(offered)).toEqual([]);
  await finish(ids);
});

it("offers slots again if a run could not use all of its reserved ones", async () => {
  // A run has three ready tasks, and may have one of them active.
  await rig.publish({
    "wide.ts": file("wide", 'for (const id of ["a", "b", "c"]) d.task(id, gate);').replace(
      "maxActiveRuns: 100",
      "maxActiveRuns: 100, maxActiveTasks: 1",
    ),
  });
  // No heartbeat, so no periodic publication.
  const lease = { ttlMs: 1_200_000, renewMs: 600_000, marginMs: 1_000 };
  await rig.scheduler({ parallelism: 1, shared: false, lease });
  const ids: number[] = [];
  for (let n = 0; n < 4; n++) ids.push(await rig.trigger("wide"));
  await allRun(1);
  await rig.scheduler({ parallelism: 3, shared: false, lease });
  await allRun(4);
  await finish(ids);
});

it("hands runs to schedulers that join later, and to the others when one of them leaves", async () => {
  await rig.publish({
    "chain.ts": file(
      "chain",
      'const a = d.task("a", () => 7); d.task("b", { inputs: { a } }, async ({ a }) => { await gate(); return a; });',
    ),
  });
  await open_();
  const ids: number[] = [];
  for (let n = 0; n < 12; n++) ids.push(await rig.trigger("chain"));
  await allRun(SLOTS);
  const late = await open_();
  await open_();
  await allRun(3 * SLOTS);
  expect(Math.min(...(await shares()))).toBeGreaterThanOrEqual(SLOTS);
  await late.stop(0);
  await allRun(2 * SLOTS);
  await open_();
  await allRun(3 * SLOTS);
  await finish(ids);
  for (const id of ids) expect(await rig.output(id, "b")).toBe(7);
});

it("hands a new scheduler as many runs as balance the waiting tasks", async () => {
  await rig.publish({ "one.ts": file("one", 'd.task("a", gate);') });
  await open_();
  const ids = await triggerAtOnce("one", 12);
  await rig.until(async () => (await shares())[0] === 12, "the claims");
  await allRun(SLOTS);
  await open_();
  await allRun(2 * SLOTS);
  expect(await shares()).toEqual([6, 6]);
  await finish(ids);
});

it("hands over first the runs whose tasks have the highest priority", async () => {
  await rig.publish({
    "low.ts": file("low", 'd.task("a", gate);'),
    "high.ts": file("high", 'd.task("a", { priority: 9 }, gate);'),
  });
  await open_();
  const low = await triggerAtOnce("low", SLOTS + 4);
  await allRun(SLOTS);
  const high = await triggerAtOnce("high", SLOTS);
  await rig.until(async () => (await shares())[0] === 2 * SLOTS + 4, "the claims");
  await open_();
  await allRun(2 * SLOTS);
  expect(await Promise.all(high.map((id) => rig.states(id)))).toEqual(high.map(() => ({ a: "running" })));
  await finish([...low, ...high]);
});

it("starts runs that only wait for a trigger while no scheduler has a free slot", async () => {
  await rig.publish({
    "long.ts": file("long", 'd.task("a", gate); d.task("b", gate);'),
    "wait.ts": `import { dag, TimeDeltaTrigger } from "tradewind";
      export default dag("wait", {}, (d) => { d.trigger("w", new TimeDeltaTrigger({ delta: "1h" })); });`,
  });
  await open_();
  await open_();
  const ids = [await rig.trigger("long"), await rig.trigger("long")];
  await allRun(2 * SLOTS);
  const waiting = await rig.trigger("wait");
  await rig.until(async () => (await rig.states(waiting)).w === "deferred", "the wait");
  await finish(ids);
});
