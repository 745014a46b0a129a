import { beforeAll, describe, expect, it } from "vitest";
import { BackfillFixture } from "../../../test/support/backfill-fixture.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";

describe("a backfill", () => {
  let rig: SchedulerRig;
  let desk: BackfillFixture;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    desk = new BackfillFixture(rig);
    await rig.publish({
      "flow.ts": `
        import { cron, dag, every } from "tradewind";
        export const daily = dag("daily", { schedule: cron("0 2 * * *", "UTC") }, (d) => {
          const a = d.task("a", (_, ctx) => ctx.run.logicalDate?.toISOString() ?? null);
          d.task("b", { inputs: { a } }, ({ a }) => a);
        });
        export const weak = dag("weak", { schedule: every("1h") }, (d) => {
          d.task("only", (_, ctx) => { if (ctx.run.logicalDate?.getUTCHours() === 3) throw new Error("three"); });
        });
        export const chained = dag("chained", { schedule: every("1d") }, (d) => {
          d.task("next", { dependsOnPast: true }, () => Date.now());
        });
        export const slow = dag("slow", { schedule: every("1d") }, (d) => {
          d.task("nap", () => new Promise((done) => setTimeout(done, 300)));
        });
      `,
    });
    await desk.host();
  });

  async function pauseDag(dagId: string, isPaused: boolean): Promise<void> {
    await rig.db.rows(adhoc("UPDATE dag SET is_paused = $2 WHERE dag_id = $1"), [dagId, isPaused]);
    rig.wakeUps.send("dags");
  }

  it("creates and drives one run for each date, within its limit, and counts them exactly", async () => {
    const id = await desk.create({
      dagId: "daily",
      from: "2020-01-01",
      to: "2020-01-31T23:00:00Z",
      maxActive: 3,
    });
    expect(await desk.over(id)).toBe("done");
    const runs = await desk.runsOf("daily");
    expect(runs).toHaveLength(31);
    expect(new Set(runs.map((run) => run.state))).toEqual(new Set(["success"]));
    expect(runs[0]).toMatchObject({ run_id: "backfill__2020-01-01T02:00:00.000Z", run_type: "backfill" });
    const { runs: counted, tasks, percent } = await desk.progress(id);
    expect(counted).toMatchObject({
      total: 31,
      finished: 31,
      succeeded: 31,
      failed: 0,
      skipped: 0,
      running: 0,
    });
    expect(tasks).toMatchObject({
      total: 62,
      finished: 62,
      succeeded: 62,
      failed: 0,
      skipped: 0,
      running: 0,
    });
    expect(percent).toBe(100);
    expect(await desk.mostAtOnce("daily")).toBeLessThanOrEqual(3);
  });

  it("stops at the first failure if configured, and continues otherwise", async () => {
    const range = { dagId: "weak", from: "2020-02-01T00:00:00Z", to: "2020-02-01T08:00:00Z", maxActive: 1 };
    const stopped = await desk.create({ ...range, stopOnFailure: true });
    expect(await desk.over(stopped)).toBe("failed");
    expect((await desk.runsOf("weak")).map((run) => run.state)).toEqual([
      "success",
      "success",
      "success",
      "failed",
    ]);
    expect((await desk.progress(stopped)).runs).toMatchObject({ total: 9, finished: 4, failed: 1 });

    const again = await desk.create({ ...range, reprocess: "failed" });
    expect(await desk.over(again)).toBe("failed");
    const runs = await desk.runsOf("weak");
    expect(runs.map((run) => run.clear_number)).toEqual([0, 0, 0, 1, 0, 0, 0, 0, 0]);
    expect((await desk.progress(again)).runs).toMatchObject({
      total: 9,
      finished: 9,
      succeeded: 5,
      failed: 1,
      skipped: 3,
      cleared: 1,
    });
  });

  it("runs the dates in order if tasks depend on the past", async () => {
    await rig.trigger("chained", { logicalDate: new Date("2020-02-28T00:00:00Z"), runId: "before" });
    const id = await desk.create({ dagId: "chained", from: "2020-03-01", to: "2020-03-05", maxActive: 4 });
    expect(await desk.over(id)).toBe("done");
    const [before, ...runs] = await desk.runsOf("chained");
    expect(before).toMatchObject({ run_id: "before", state: "queued" });
    const ended = runs.map((run) => run.ended_at?.getTime() ?? 0);
    expect(ended).toEqual([...ended].sort((a, b) => a - b));
    expect(ended).toHaveLength(5);
  });

  it("starts with the last date if it runs backwards", async () => {
    const id = await desk.create({
      dagId: "slow",
      from: "2020-04-01",
      to: "2020-04-04",
      maxActive: 1,
      isReverse: true,
    });
    expect(await desk.over(id)).toBe("done");
    const started = (await desk.runsOf("slow")).map((run) => run.started_at?.getTime() ?? 0);
    expect(started).toEqual([...started].sort((a, b) => b - a));
  });

  it("can be paused, changed, resumed and cancelled while it runs", async () => {
    const id = await desk.create({ dagId: "slow", from: "2020-05-01", to: "2020-05-30", maxActive: 1 });
    await rig.until(async () => (await desk.progress(id)).runs.finished >= 1, "the first run");
    await desk.pause(id, true);
    await rig.until(async () => (await desk.progress(id)).runs.running === 0, "what was under way ends");
    const { finished } = (await desk.progress(id)).runs;
    expect(finished).toBeLessThan(30);
    await desk.set(id, { maxActive: 4 });
    expect((await desk.progress(id)).runs.finished).toBe(finished);
    await desk.pause(id, false);
    await rig.until(async () => (await desk.progress(id)).runs.running === 4, "four at once");
    await desk.cancel(id, false);
    expect(await desk.over(id)).toBe("cancelled");
    const { runs } = await desk.progress(id);
    expect(runs.running).toBe(0);
    expect(runs.finished).toBeLessThan(30);
    expect(runs.finished).toBe(runs.succeeded + runs.failed);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("lets active runs end after a soft cancel", async () => {
    const id = await desk.create({ dagId: "slow", from: "2020-06-01", to: "2020-06-30", maxActive: 2 });
    await rig.until(async () => (await desk.progress(id)).runs.running === 2, "two at once");
    await desk.cancel(id, true);
    expect(await desk.over(id)).toBe("cancelled");
    expect((await desk.progress(id)).runs.failed).toBe(0);
  });

  it("waits while its DAG is paused", async () => {
    await pauseDag("slow", true);
    const before = (await desk.runsOf("slow")).length;
    const id = await desk.create({ dagId: "slow", from: "2020-07-01", to: "2020-07-02", maxActive: 2 });
    await rig.until(() => desk.isOwned(id), "an owner of the backfill");
    expect(await desk.runsOf("slow")).toHaveLength(before);
    await pauseDag("slow", false);
    expect(await desk.over(id)).toBe("done");
  });

  it("keeps existing runs, and waits for those that are active", async () => {
    const date = (day: number) => new Date(Date.UTC(2020, 8, day));
    const queued = await rig.trigger("slow", { logicalDate: date(2), runId: "by_hand" });
    const id = await desk.create({
      dagId: "slow",
      from: "2020-09-01",
      to: "2020-09-03",
      maxActive: 5,
      reprocess: "completed",
    });
    await rig.until(async () => (await desk.progress(id)).runs.succeeded === 2, "the other two");
    expect((await desk.progress(id)).runs).toMatchObject({ elsewhere: 1, finished: 2 });
    await rig.scheduler();
    expect(await rig.ended(queued)).toBe("success");
    expect(await desk.over(id)).toBe("done");
    expect((await rig.run(queued)).run_id).toBe("by_hand");
    expect((await desk.progress(id)).runs).toMatchObject({
      total: 3,
      finished: 3,
      succeeded: 3,
      elsewhere: 1,
    });
  });
});
