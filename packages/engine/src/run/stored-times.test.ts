/** The times of attempts and waits that a run leaves behind, as its timeline shows them. */
import { writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { type Interval, intervalsOf } from "../model/index.ts";
import { adhoc } from "../store/database/database.ts";
import { findTimelineRun, readRunTimes } from "../store/timeline/run-timeline.ts";

let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "times.ts": `
      import { dag, TimeDeltaSensor, TimeDeltaTrigger } from "tradewind";
      import { existsSync } from "node:fs";
      const root = ${JSON.stringify(rig.root)};
      const until = async (name: string) => { while (!existsSync(root + "/" + name)) await new Promise((go) => setTimeout(go, 5)); };
      export const all = dag("all", {}, (d) => {
        const flaky = d.task("flaky", { retries: 1, retryDelay: 300 }, (_, ctx) => { if (ctx.tryNumber === 1) throw new Error("once"); });
        const nap = d.operator("nap", new TimeDeltaSensor({ delta: 300 }));
        d.task("sleep", { after: [nap] }, async (_, ctx) => { await ctx.until("x", new TimeDeltaTrigger({ delta: 300 })); });
        d.task("last", { after: [flaky] }, () => {});
      });
      export const slots = dag("slots", {}, (d) => {
        d.task("a", { pool: "one", priority: 2 }, () => new Promise((go) => setTimeout(go, 60_000)));
        d.task("b", { pool: "one" }, () => {});
      });
      export const gate = dag("gate", {}, (d) => { d.task("a", () => until("open")); });
    `,
  });
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('one', 1)"));
  await rig.scheduler();
  await rig.triggerer();
});

const intervals = async (dagId: string, id: number): Promise<Record<string, Interval[]>> => {
  const run = await findTimelineRun(rig.db, dagId, (await rig.run(id)).run_id);
  const { attempts, instances, waits } = await readRunTimes(rig.db, [run!.id], {
    from: -1,
    to: 10,
    also: [],
  });
  const of = <T extends { taskId: string }>(rows: readonly T[], taskId: string) =>
    rows.filter((row) => row.taskId === taskId);
  return Object.fromEntries(
    instances.map((instance) => [
      instance.taskId,
      intervalsOf(instance, of(attempts, instance.taskId), of(waits, instance.taskId)),
    ]),
  );
};
/** Steps that take no time are left out of a timeline: they may or may not be there. */
const kinds = (of: readonly Interval[] = []) =>
  of.map(({ kind, tryNumber }) => `${kind} ${tryNumber}`).filter((kind) => !/^(scheduled|queued)/.test(kind));
const lengths = (of: readonly Interval[] = [], kind: string) =>
  of.filter((each) => each.kind === kind).map(({ end, start }) => (end ?? Number.NaN) - start);

describe("stored times", () => {
  it("keep each retry wait and deferral with its bounds", async () => {
    const id = await rig.trigger("all");
    expect(await rig.ended(id)).toBe("success");
    const { flaky, last, nap, sleep } = await intervals("all", id);
    expect(kinds(flaky)).toEqual(["running 1", "up_for_retry 1", "running 2"]);
    expect(lengths(flaky, "up_for_retry")[0]).toBeGreaterThanOrEqual(300);
    expect(kinds(nap)).toEqual(["deferred 1"]);
    expect(lengths(nap, "deferred")[0]).toBeGreaterThanOrEqual(300);
    expect(kinds(sleep)).toEqual(["running 1", "deferred 1", "running 1"]);
    expect(kinds(last)).toEqual(["running 1"]);
    for (const each of [flaky, sleep]) {
      const gaps = each!.slice(1).map(({ start }, place) => start - each![place]!.end!);
      expect(Math.max(...gaps)).toBeLessThan(100);
    }
  });

  it("keep since when a task waits for a slot, over edits of its run", async () => {
    const id = await rig.trigger("slots");
    await rig.until(async () => (await rig.states(id)).a === "running", "a to run");
    const since = (await intervals("slots", id)).b?.[0];
    expect(since).toMatchObject({ kind: "scheduled", end: null });
    await rig.mark(id, "a", "success");
    await rig.ended(id);
    expect((await intervals("slots", id)).b?.[0]).toMatchObject({ kind: "scheduled", start: since?.start });
  });

  it("keep the start of an attempt that is cleared while it runs", async () => {
    const id = await rig.trigger("gate");
    await rig.until(async () => (await rig.states(id)).a === "running", "a to run");
    const [{ start }] = (await intervals("gate", id)).a!.slice(-1) as [Interval];
    await rig.clear(id);
    await rig.until(async () => (await rig.tasks(id)).a?.try_number === 2, "the second try");
    writeFileSync(`${rig.root}/open`, "");
    expect(await rig.ended(id)).toBe("success");
    const { a } = await intervals("gate", id);
    expect(kinds(a)).toEqual(["running 1", "running 2"]);
    expect(a?.find(({ kind }) => kind === "running")).toMatchObject({ start, tryNumber: 1 });
    expect(a?.some(({ kind, tryNumber }) => kind === "queued" && tryNumber === 1)).toBe(true);
  });
});
