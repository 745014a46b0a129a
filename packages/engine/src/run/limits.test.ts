import { beforeAll, describe, expect, it } from "vitest";
import { isAlive } from "../../test/support/process-alive.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

/** Records its start and end, so that the test sees the order and overlap of tasks. */
const LEDGER = `
  import { appendFileSync } from "node:fs";
  const note = (file, line) => appendFileSync(file, line + "\\n");
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
`;

describe("limits and order", () => {
  let rig: SchedulerRig;
  const lines = async () => (await import("node:fs")).readFileSync(rig.ledger, "utf8").trim().split("\n");

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    const file = JSON.stringify(rig.ledger);
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('one', 1), ('three', 3), ('apart', 3)"));
    await rig.publish({
      "limits.ts": `
        import { dag } from "tradewind";
        import { readFileSync } from "node:fs";
        ${LEDGER}
        const work = (ms = 30) => async (_, ctx) => {
          note(${file}, "start " + ctx.run.id + " " + ctx.taskId);
          await pause(ms);
          note(${file}, "end " + ctx.run.id + " " + ctx.taskId);
        };
        export const priorities = dag("priorities", { defaults: { pool: "one", weightRule: "absolute" } }, (d) => {
          const holder = d.task("holder", { priority: 100 }, work(150));
          for (const priority of [3, 9, 1, 7, 5]) d.task("p" + priority, { priority }, work(5));
        });
        export const wide = dag("wide", { defaults: { pool: "three" } }, (d) => {
          for (let i = 0; i < 6; i++) d.task("n" + i, { poolSlots: 1 + (i % 3) }, work(20));
        });
        export const passing = dag("passing", { defaults: { pool: "apart", weightRule: "absolute" } }, (d) => {
          d.task("holder", { priority: 100 }, async (_, ctx) => {
            const narrow = () => readFileSync(${file}, "utf8").split("end passing n").length - 1;
            while (narrow() < 3 && !ctx.abort.aborted) await pause(10);
            await pause(150);
          });
          d.task("wide", { priority: 50, poolSlots: 3 }, work(5));
          for (let i = 0; i < 8; i++) d.task("n" + i, { priority: 1 }, work(5));
        });
        export const perDag = dag("perDag", {}, (d) => {
          d.task("alone", { maxActivePerDag: 1 }, work(40));
          d.task("free", work(1));
        });
        export const few = dag("few", { maxActiveTasksPerDag: 2 }, (d) => {
          d.task("alone", { maxActivePerDag: 1 }, work(40));
          for (let i = 0; i < 3; i++) d.task("n" + i, work(30));
        });
        export const fewRuns = dag("fewRuns", { maxActiveRuns: 2 }, (d) => { d.task("only", work(60)); });
        export const fewTasks = dag("fewTasks", { maxActiveTasks: 2 }, (d) => {
          for (let i = 0; i < 6; i++) d.task("n" + i, work(30));
        });
        export const perRun = dag("perRun", {}, (d) => {
          const pair = (_, inputs, ctx) => work(40)(inputs, ctx);
          d.map("pairs", { over: [1, 2, 3, 4, 5, 6], limit: 2 }, pair);
          d.map("single", { over: [1, 2, 3], maxActivePerRun: 1 }, pair);
        });
        export const past = dag("past", {}, (d) => {
          const first = d.task("first", { dependsOnPast: true, retries: 1, retryDelay: 150 }, async (_, ctx) => {
            await work(10)(_, ctx);
            if (ctx.run.id === "past_1" && ctx.tryNumber === 1) throw new Error("again");
          });
          d.task("second", { after: [first] }, work(30));
        });
        export const downstream = dag("downstream", {}, (d) => {
          const first = d.task("first", { waitForDownstream: true }, work(5));
          d.task("second", { after: [first] }, work(80));
        });
        export const late = dag("late", { runTimeout: "300ms" }, (d) => {
          const slow = d.task("slow", async (_, ctx) => { await pause(60_000); });
          d.task("never", { after: [slow] }, () => {});
        });
        export const orphan = dag("orphan", {}, (d) => { d.task("lost", { pool: "nowhere" }, work(1)); });
      `,
    });
    await rig.scheduler({ parallelism: 6 });
  });

  const overlap = (all: string[], of: (line: string) => boolean) => {
    let now = 0;
    let most = 0;
    for (const line of all.filter(of)) {
      now += line.startsWith("start") ? 1 : -1;
      most = Math.max(most, now);
    }
    return most;
  };

  it("assigns the slots of a pool in strict order of priority", async () => {
    const id = await rig.trigger("priorities", { runId: "prio" });
    expect(await rig.ended(id)).toBe("success");
    const starts = (await lines())
      .filter((line) => line.startsWith("start prio"))
      .map((line) => line.split(" ")[2]);
    expect(starts).toEqual(["holder", "p9", "p7", "p5", "p3", "p1"]);
  });

  it("never exceeds the slots of a pool, and does not starve a wide task", async () => {
    const id = await rig.trigger("wide", { runId: "wide" });
    expect(await rig.ended(id)).toBe("success");
    expect(overlap(await lines(), (line) => line.includes(" wide n"))).toBeLessThanOrEqual(3);
  });

  it("lets smaller tasks pass a wide one that does not fit, up to the size of the pool", async () => {
    const id = await rig.trigger("passing", { runId: "passing" });
    expect(await rig.ended(id)).toBe("success");
    const starts = (await lines()).filter((line) => line.startsWith("start passing"));
    // The holder runs until three have passed, and longer: a fourth would have had the time.
    expect(starts.indexOf("start passing wide")).toBe(3);
    expect(starts).toHaveLength(9);
  });

  it("limits the instances of a task across all runs", async () => {
    const ids = await Promise.all([1, 2, 3, 4].map((n) => rig.trigger("perDag", { runId: `per_${n}` })));
    for (const id of ids) expect(await rig.ended(id)).toBe("success");
    expect(overlap(await lines(), (line) => / per_\d alone/.test(line))).toBe(1);
  });

  it("limits the tasks of a DAG across all runs, in addition to the limit of one of its tasks", async () => {
    const ids = await Promise.all([1, 2, 3].map((n) => rig.trigger("few", { runId: `all_${n}` })));
    for (const id of ids) expect(await rig.ended(id)).toBe("success");
    expect(overlap(await lines(), (line) => / all_\d /.test(line))).toBe(2);
    expect(overlap(await lines(), (line) => / all_\d alone/.test(line))).toBe(1);
    expect(await rig.poolsAreExact()).toBe(true);
    const rows = await rig.db.rows(
      adhoc("SELECT name, slots FROM pool WHERE name LIKE '@%few%' ORDER BY name"),
    );
    expect(rows).toEqual([
      { name: "@@few", slots: 2 },
      { name: "@few/alone", slots: 1 },
    ]);
  });

  it("limits the runs of a DAG and the tasks of a run", async () => {
    const runs = await Promise.all([1, 2, 3, 4, 5].map((n) => rig.trigger("fewRuns", { runId: `few_${n}` })));
    const tasks = await rig.trigger("fewTasks", { runId: "fewt" });
    for (const id of [...runs, tasks]) expect(await rig.ended(id)).toBe("success");
    expect(overlap(await lines(), (line) => / few_\d /.test(line))).toBeLessThanOrEqual(2);
    expect(overlap(await lines(), (line) => line.includes(" fewt "))).toBeLessThanOrEqual(2);
  });

  it("limits the instances of a mapped task per run", async () => {
    const ids = await Promise.all([1, 2].map((n) => rig.trigger("perRun", { runId: `run_${n}` })));
    for (const id of ids) expect(await rig.ended(id)).toBe("success");
    const all = await lines();
    for (const n of [1, 2]) {
      expect(overlap(all, (line) => line.endsWith(` run_${n} pairs`))).toBeLessThanOrEqual(2);
      expect(overlap(all, (line) => line.endsWith(` run_${n} single`))).toBe(1);
    }
    expect(all.filter((line) => /^end run_\d /.test(line))).toHaveLength(18);
  });

  it("waits for the same task of the previous run", async () => {
    const day = (n: number) => ({ runId: `past_${n}`, logicalDate: new Date(Date.UTC(2026, 0, n)) });
    const ids = [
      await rig.trigger("past", day(1)),
      await rig.trigger("past", day(2)),
      await rig.trigger("past", day(3)),
    ];
    for (const id of ids) expect(await rig.ended(id)).toBe("success");
    const firsts = (await lines())
      .filter((line) => / past_\d first/.test(line))
      .map((line) => line.slice(0, -6));
    expect(firsts).toEqual([
      ...["start past_1", "end past_1", "start past_1", "end past_1"],
      ...["start past_2", "end past_2", "start past_3", "end past_3"],
    ]);
  });

  it("waits for the downstream tasks in the previous run", async () => {
    const day = (n: number) => ({ runId: `down_${n}`, logicalDate: new Date(Date.UTC(2026, 0, n)) });
    const ids = [await rig.trigger("downstream", day(1)), await rig.trigger("downstream", day(2))];
    for (const id of ids) expect(await rig.ended(id)).toBe("success");
    const all = (await lines()).filter((line) => line.includes(" down_"));
    expect(all.indexOf("start down_2 first")).toBeGreaterThan(all.indexOf("end down_1 second"));
  });

  it("ends a run that times out, and kills its processes", async () => {
    const id = await rig.trigger("late");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.run(id)).toMatchObject({ end_reason: "timed_out" });
    const tasks = await rig.tasks(id);
    expect(tasks.slow?.state).toBe("failed");
    expect(tasks.never?.state).toBe("skipped");
    const pid = tasks.slow?.pid ?? 0;
    expect(pid).toBeGreaterThan(0);
    await rig.until(async () => !isAlive(pid), "the slow task's process to go");
  });

  it("keeps a task of an unknown pool waiting until the pool is created", async () => {
    const id = await rig.trigger("orphan");
    await rig.until(async () => (await rig.states(id)).lost === "scheduled", "the task to be scheduled");
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('nowhere', 1)"));
    rig.wakeUps.send("pools");
    expect(await rig.ended(id)).toBe("success");
  });

  it("leaves no slot occupied", async () => {
    expect(await rig.poolsAreExact()).toBe(true);
  });
});
