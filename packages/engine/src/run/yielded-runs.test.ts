/** Runs that wait for an earlier run yield their slot to it: with real schedulers, backfills and task processes. */
import { beforeAll, describe, expect, it } from "vitest";
import { BackfillFixture } from "../../test/support/backfill-fixture.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

const START = "2020-11-10";

describe("a date that later runs wait for", () => {
  let rig: SchedulerRig;
  let desk: BackfillFixture;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    desk = new BackfillFixture(rig);
    const schedule = `schedule: cron("0 0 * * *"), start: "${START}", end: "2020-11-20"`;
    await rig.publish({
      "places.ts": `
        import { cron, dag } from "tradewind";
        const day = (c) => c.run.logicalDate.getUTCDate();
        const fails = (when) => (_, c) => { if (when.includes(day(c)) && c.tryNumber === 1) throw new Error("x"); };
        export const s = dag("scheduled", { ${schedule}, catchup: true, maxActiveRuns: 3 }, (d) => {
          const before = d.task("before", () => {});
          d.task("a", { dependsOnPast: true, after: [before] }, fails([13]));
        });
        export const two = dag("two", { ${schedule}, catchup: true, maxActiveRuns: 2 }, (d) => {
          const first = d.task("first", { waitForDownstream: true }, () => {});
          d.task("second", { after: [first] }, fails([12]));
        });
        export const b = dag("filled", { schedule: cron("0 0 * * *"), start: "2099-01-01", maxActiveRuns: 1 }, (d) => {
          d.task("a", { dependsOnPast: true }, fails([12]));
        });
        export const hand = dag("hand", { maxActiveRuns: 1 }, (d) => {
          d.task("a", { dependsOnPast: true }, fails([1]));
        });
      `,
    });
    // Every number of active runs, recorded in the database.
    await rig.db.rows(adhoc("CREATE TABLE most (dag_id text, running int)"));
    await rig.db.rows(
      adhoc(`CREATE FUNCTION note_most() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               INSERT INTO most SELECT NEW.dag_id, count(*) FROM dag_run WHERE dag_id = NEW.dag_id AND state = 'running';
               RETURN NULL; END $$`),
    );
    await rig.db.rows(
      adhoc(`CREATE CONSTRAINT TRIGGER note_most AFTER UPDATE OF state ON dag_run DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION note_most()`),
    );
    await rig.scheduler();
    await rig.scheduler({ shared: false });
    await desk.host();
  });

  const most = async (dagId: string) =>
    (
      await rig.db.one<{ most: number }>(adhoc("SELECT max(running) AS most FROM most WHERE dag_id = $1"), [
        dagId,
      ])
    )?.most;
  const states = async (dagId: string) => (await desk.runsOf(dagId)).map((run) => run.state).join(" ");
  const reaches = (dagId: string, wanted: string) =>
    rig.until(async () => (await states(dagId)).startsWith(wanted), `${dagId}: ${wanted}`);
  const waits = (id: number, task = "a") =>
    rig.until(async () => {
      const { [task]: it, ...others } = await rig.states(id);
      return (
        it === "pending" && Object.values(others).every((state) => state === "success" || state === "pending")
      );
    }, `run ${id} to wait`);
  const runOf = async (dagId: string, place: number) => (await desk.runsOf(dagId))[place]?.id ?? 0;
  const clear = (id: number) => rig.clear(id, { only: "failed" });
  const ALL = Array.from({ length: 11 }, () => "success").join(" ");

  it("gets the slot of the latest of them when it is cleared; they continue later", async () => {
    await reaches("scheduled", "success success success failed running running running");
    for (const place of [4, 5, 6]) await waits(await runOf("scheduled", place));
    await clear(await runOf("scheduled", 3));
    await reaches("scheduled", ALL);
    expect(await most("scheduled")).toBe(3);
    const before = await rig.db.rows(
      adhoc(`SELECT r.run_id FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id
             WHERE r.dag_id = 'scheduled' AND t.task_id = 'before' AND t.try_number <> 1`),
    );
    expect(before).toEqual([]);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("gets the slot also if they wait for its downstream, and if it is cleared twice or concurrently", async () => {
    await reaches("two", "success success failed running running");
    for (const place of [3, 4]) await waits(await runOf("two", place), "first");
    await Promise.all([clear(await runOf("two", 2)), clear(await runOf("two", 2))]);
    await reaches("two", ALL);
    expect(await most("two")).toBe(2);
  });

  it("gets the slot also in a backfill, within its limit", async () => {
    const id = await desk.create({ dagId: "filled", from: START, to: "2020-11-20", maxActive: 3 });
    await reaches("filled", "success success failed running running running");
    for (const place of [3, 4, 5]) await waits(await runOf("filled", place));
    await clear(await runOf("filled", 2));
    expect(await desk.over(id)).toBe("done");
    expect(await states("filled")).toBe(ALL);
    expect(await most("filled")).toBe(3);
  });

  it("gets the slot also if it is triggered later, although other runs have been queued for longer", async () => {
    const at = (day: number) => ({ logicalDate: new Date(Date.UTC(2020, 0, day)) });
    const failed = await rig.trigger("hand", at(1));
    expect(await rig.ended(failed)).toBe("failed");
    const late = await rig.trigger("hand", at(9));
    await waits(late);
    const later = await rig.trigger("hand", at(10));
    const between = await rig.trigger("hand", at(5));
    await rig.until(async () => (await rig.run(between)).state === "running", "the earlier date to run");
    expect((await rig.run(late)).state).toBe("queued");
    await clear(failed);
    for (const id of [failed, between, late, later]) expect(await rig.ended(id)).toBe("success");
    expect(await most("hand")).toBe(1);
  });
});
