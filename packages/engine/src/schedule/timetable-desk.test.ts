/** Timetables of the authors' own, asked by real schedulers in real child processes. */
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { BundleCache } from "../execute/bundle-cache.ts";
import { jitterOf } from "../model/index.ts";
import { fetchBundle } from "../processes/fetch-bundle.ts";
import { silentLogger } from "../service/logger.ts";
import { adhoc } from "../store/database.ts";
import { takeQuestions } from "../store/timetable-plans.ts";
import { TimetableDesk } from "./timetable-desk.ts";

const IMPORTS = 'import { dag, Timetable, cron } from "tradewind";\n';
const HOUR = 3_600_000;

/** A DAG whose timetable is this class. */
function file(dagId: string, next: string, options = ""): string {
  return `${IMPORTS}class Own extends Timetable<{ every: number }> { next({ last, now, start, end }) { ${next} } }
    export default dag("${dagId}", { schedule: new Own({ every: ${HOUR} })${options} }, (d) => { d.task("a", () => 1); });`;
}

/** Every full hour after the last. */
const HOURLY = `const at = (last?.logicalDate ?? new Date(start - 1)).getTime();
  return new Date((Math.floor(at / this.args.every) + 1) * this.args.every);`;

const thisHour = () => Math.floor(Date.now() / HOUR) * HOUR;

interface Plan {
  readonly next: Date | null;
  readonly run_after: Date | null;
  readonly ask_at: Date | null;
  readonly failures: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

async function plan({ db }: SchedulerRig, dagId: string): Promise<Plan> {
  const sql = `SELECT d.next_logical_date AS next, d.next_run_after AS run_after, t.ask_at, t.failures, t.error
               FROM dag d LEFT JOIN dag_timetable t ON t.dag_id = d.dag_id WHERE d.dag_id = $1`;
  const row = await db.one<Plan>(adhoc(sql), [dagId]);
  if (!row) throw new Error(`no DAG ${dagId}`);
  return row;
}

describe("with a scheduler", () => {
  let rig: SchedulerRig;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.scheduler();
  });

  const dates = async (dagId: string) => {
    const sql = "SELECT logical_date FROM dag_run WHERE dag_id = $1 ORDER BY logical_date";
    const rows = await rig.db.rows<{ logical_date: Date }>(adhoc(sql), [dagId]);
    return rows.map((row) => row.logical_date.getTime());
  };
  const isPlanned = (dagId: string) =>
    rig.until(async () => (await plan(rig, dagId)).next !== null, `a plan of ${dagId}`);

  it("makes the runs it asks for: with catchup all of them, without it the newest", async () => {
    const start = new Date(thisHour() - 3 * HOUR).toISOString();
    await rig.publish({
      "all.ts": file("all", HOURLY, `, start: "${start}", catchup: true`),
      "newest.ts": file("newest", HOURLY, `, start: "${start}"`),
    });
    await rig.until(async () => (await dates("all")).length >= 4, "four runs");
    await isPlanned("all");
    const made = await dates("all");
    expect(made.map((at) => at - (made[0] as number))).toEqual(made.map((_, i) => i * HOUR));
    expect(made[0]).toBe(Date.parse(start));
    await rig.until(async () => (await dates("newest")).length > 0, "a run");
    await isPlanned("newest");
    expect((await dates("newest"))[0]).toBeGreaterThanOrEqual(thisHour() - HOUR);
  });

  it("has one run for each date, with three schedulers at once, one of which is stopped amidst", async () => {
    const since = thisHour() - 15 * HOUR;
    const names = Array.from({ length: 4 }, (_, i) => `many_${i}`);
    const others = [await rig.scheduler({ shared: false }), await rig.scheduler({ shared: false })];
    const options = `, start: new Date(${since}), end: new Date(${since + 11 * HOUR}), catchup: true, maxActiveRuns: 3`;
    await rig.publish(Object.fromEntries(names.map((name) => [`${name}.ts`, file(name, HOURLY, options)])));
    await rig.until(async () => (await dates("many_0")).length >= 3, "the first runs");
    await others[0]?.stop(0);
    for (const name of names) {
      await rig.until(async () => (await dates(name)).length >= 12, `all runs of ${name}`, 60_000);
      await rig.until(async () => (await plan(rig, name)).ask_at === null, `the last answer of ${name}`);
      expect(await dates(name)).toEqual(Array.from({ length: 12 }, (_, i) => since + i * HOUR));
      expect((await plan(rig, name)).next).toBeNull();
    }
  });

  it("ends with the DAG's end, and is due later by the DAG's jitter", async () => {
    const start = new Date(thisHour() + 2 * HOUR).toISOString();
    await rig.publish({
      "late.ts": file("late", HOURLY, `, start: "${start}", jitter: "30m"`),
      "over.ts": file("over", HOURLY, `, start: "${start}", end: "${start}"`),
    });
    await isPlanned("late");
    const { next, run_after } = await plan(rig, "late");
    const jitter = (run_after?.getTime() ?? 0) - (next?.getTime() ?? 0);
    expect(next?.toISOString()).toBe(start);
    expect(jitter).toBe(jitterOf("late", Date.parse(start), 30 * 60_000));
    await isPlanned("over");
    expect((await plan(rig, "over")).next?.toISOString()).toBe(start);
  });

  it("is asked anew when its code is new, and not when nothing is", async () => {
    const at = (day: number) => `return last === null ? new Date("2099-01-0${day}") : null;`;
    await rig.publish({ "moved.ts": file("moved", at(1)) });
    await isPlanned("moved");
    await rig.publish({ "moved.ts": file("moved", at(2)) });
    await rig.until(
      async () => (await plan(rig, "moved")).next?.toISOString() === "2099-01-02T00:00:00.000Z",
      "the plan of the new code",
    );
    await rig.publish({});
    expect((await plan(rig, "moved")).ask_at).toBeNull();
  });

  it("shows what it throws as the schedule's error, tries again, and is healed by new code", async () => {
    const broken = `throw Object.assign(new Error("no calendar for " + now.getUTCFullYear()), { code: "NO_CALENDAR" });`;
    await rig.publish({
      "broken.ts": file("broken", broken),
      "beside.ts": file("beside", HOURLY, ", start: new Date(0)"),
    });
    await rig.until(async () => ((await plan(rig, "broken")).failures ?? 0) >= 2, "two failures");
    const { error, ask_at, next } = await plan(rig, "broken");
    expect(error).toMatchObject({
      code: "NO_CALENDAR",
      message: expect.stringMatching(/^no calendar for 20/),
    });
    expect(ask_at).not.toBeNull();
    expect(next).toBeNull();
    await isPlanned("beside");
    await rig.publish({ "broken.ts": file("broken", 'return last === null ? "2099-01-01" : null;') });
    await isPlanned("broken");
    expect(await plan(rig, "broken")).toMatchObject({ failures: 0, error: null });
  });
});

describe("the desk", () => {
  let rig: SchedulerRig;
  let desk: TimetableDesk;

  beforeEach(async () => {
    rig = await SchedulerRig.open();
    const bundles = new BundleCache(join(rig.root, "bundles"), (hash) => fetchBundle(rig.db, hash));
    const parts = { database: rig.db, bundles, logger: silentLogger, onPlanned: () => {}, answerMs: 3_000 };
    desk = new TimetableDesk(parts);
    return () => desk.stop();
  });

  const failed = (dagId: string) =>
    rig.until(async () => (await plan(rig, dagId)).error !== null, `an error of ${dagId}`);
  const GOOD = 'return last === null ? "2099-01-01" : null;';

  it("is held up by nobody: those that hang, exit, print and send nonsense are told, the others have their plans", async () => {
    const files = {
      "a_hangs.ts": file("a_hangs", "for (;;);"),
      "b_exits.ts": file("b_exits", 'console.error("I leave"); process.exit(3);'),
      "c_loops.ts": file(
        "c_loops",
        "return new Date((last?.logicalDate.getTime() ?? 0) + 1);",
        ", start: new Date(0)",
      ),
      "d_prints.ts": file("d_prints", `console.log("x".repeat(1e6)); ${GOOD}`),
      "e_rejects.ts": file("e_rejects", `Promise.reject(new Error("later")); ${GOOD}`),
      "f_good.ts": file("f_good", GOOD),
      "g_lies.ts": `import { writeSync } from "node:fs";\n${file("g_lies", `writeSync(3, "what?\\n"); for (;;);`)}`,
    };
    await rig.publish(files);
    desk.look();
    await rig.until(async () => (await plan(rig, "f_good")).next !== null, "the good one's plan");
    for (const dagId of ["a_hangs", "b_exits", "c_loops", "g_lies"]) await failed(dagId);
    expect((await plan(rig, "a_hangs")).error?.code).toBe("TIMETABLE_TIMEOUT");
    expect((await plan(rig, "c_loops")).error?.code).toBe("TIMETABLE_TIMEOUT");
    const exited = (await plan(rig, "b_exits")).error;
    expect(exited).toMatchObject({ code: "TIMETABLE_CRASHED", message: expect.stringContaining("I leave") });
    expect((await plan(rig, "g_lies")).error?.code).toBe("TIMETABLE_NONSENSE");
    await rig.until(async () => (await plan(rig, "d_prints")).next !== null, "the talkative one's plan");
    await rig.until(async () => (await plan(rig, "e_rejects")).next !== null, "the careless one's plan");
  });

  it("asks in a process that has neither our credentials nor our environment", async () => {
    process.env.DATABASE_URL = "postgres://secret";
    const look = "throw new Error(process.pid + ' ' + JSON.stringify(process.env));";
    await rig.publish({ "curious.ts": file("curious", look) });
    desk.look();
    await failed("curious");
    const { error } = await plan(rig, "curious");
    expect(error?.code).toBe("TIMETABLE_THREW");
    expect(error?.message).toContain("PATH");
    expect(error?.message).not.toContain("secret");
    expect(error?.message).not.toContain(`Error: ${process.pid} `);
  });

  it("gives back what it holds when it stops", async () => {
    await rig.publish({ "a_hangs.ts": file("a_hangs", "for (;;);"), "b_good.ts": file("b_good", GOOD) });
    desk.look();
    await rig.until(
      async () => (await takenUntil("a_hangs")) > Date.now() + 1_000,
      "the question to be taken",
    );
    await desk.stop();
    expect((await plan(rig, "a_hangs")).error).toBeNull();
    const taken = await takeQuestions(rig.db, 10, 60_000);
    expect(taken.map(({ dagId }) => dagId).sort()).toEqual(["a_hangs", "b_good"]);
  });

  const takenUntil = async (dagId: string) => (await plan(rig, dagId)).ask_at?.getTime() ?? 0;

  it("two at once: every DAG has one plan", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `own_${i}`);
    await rig.publish(Object.fromEntries(names.map((name) => [`${name}.ts`, file(name, GOOD)])));
    const bundles = new BundleCache(join(rig.root, "other"), (hash) => fetchBundle(rig.db, hash));
    const other = new TimetableDesk({ database: rig.db, bundles, logger: silentLogger, onPlanned: () => {} });
    desk.look();
    other.look();
    for (const name of names)
      await rig.until(async () => (await plan(rig, name)).next !== null, `a plan of ${name}`);
    await other.stop();
  });
});
