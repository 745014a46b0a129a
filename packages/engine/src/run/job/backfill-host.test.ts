import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { BackfillFixture } from "../../../test/support/backfill-fixture.ts";
import { seedJob } from "../../../test/support/catalogue-seed.ts";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { WakeUps } from "../../job/wake-up.ts";
import { silentLogger } from "../../service/logger.ts";
import { adoptBackfill, startBackfillRuns } from "../../store/backfill/backfill-claim.ts";
import { planBackfill } from "../../store/backfill/backfill-plan.ts";
import { adhoc, Database } from "../../store/database/database.ts";
import { VersionCache } from "../loaded/version-cache.ts";
import { BackfillHost } from "./backfill-host.ts";

describe("a host of backfills", () => {
  let rig: SchedulerRig;
  let desk: BackfillFixture;
  const range = { dagId: "daily", from: "2020-01-01", to: "2020-01-05", maxActive: 2 };

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    desk = new BackfillFixture(rig);
    await rig.publish({
      "flow.ts": `
        import { dag, every } from "tradewind";
        export default dag("daily", { schedule: every("1d") }, (d) => { d.task("only", () => 1); });
      `,
    });
  });

  const jobs = async () =>
    (
      await rig.db.rows<{ state: string }>(adhoc("SELECT state FROM job WHERE kind = 'backfill' ORDER BY id"))
    ).map((job) => job.state);

  it("adopts the backfill and the active runs of a dead owner", async () => {
    const dead = await seedJob(rig.db);
    const id = await desk.create({ ...range, from: "2020-02-01", to: "2020-02-05" });
    await adoptBackfill(rig.db, { jobId: dead, has: 0, mayJudge: true });
    await planBackfill(rig.db, id, dead);
    const versions = new VersionCache();
    const started = await startBackfillRuns(rig.db, {
      jobId: dead,
      limit: 1,
      columns: async (tx, version) => (await versions.get(tx, version)).columns,
    });
    expect(started).toHaveLength(1);
    await rig.db.rows(adhoc("UPDATE job SET lease_until = now() WHERE id = $1"), [dead]);
    expect(await jobs()).toEqual([]);
    await desk.host({ idleMs: 100, listens: true });
    expect(await desk.over(id)).toBe("done");
    expect((await desk.progress(id)).runs).toMatchObject({ total: 5, succeeded: 5 });
  });

  it("has a job only while there is a backfill, and for a short time after", async () => {
    await rig.until(async () => (await jobs()).every((state) => state === "stopped"), "the job goes");
    const former = (await jobs()).length;
    const id = await desk.create(range);
    expect(await desk.over(id)).toBe("done");
    expect((await jobs()).length).toBe(former + 1);
    await rig.until(async () => (await jobs()).every((state) => state === "stopped"), "the job goes again");
  });

  it("drains although its query gets no answer", async () => {
    const proxy = await pgProxy(rig.db.url);
    const database = Database.connect(proxy.url);
    onTestFinished(async () => {
      await database.close(100);
      await proxy.close();
    });
    await database.one(adhoc("SELECT 1"));
    proxy.set({ kind: "hang" });
    const makeJob = () => expect.unreachable();
    const wakeUps = new WakeUps(database, { enabled: false });
    const host = new BackfillHost({ database, wakeUps, logger: silentLogger, listens: false, makeJob });
    await host.start();
    await expect.poll(() => proxy.withheld, { interval: 5 }).toBeGreaterThan(0);
    await host.drain();
    database.rejectCallsIn(0);
    await host.stop();
  });
});
