/** User-defined timetables, called by real schedulers in real child processes. */
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { BundleCache } from "../code/bundle-cache.ts";
import { planner } from "../model/calendar/planner.ts";
import { jitterOf } from "../model/index.ts";
import { fetchBundle } from "../process/parts/fetch-bundle.ts";
import type { SchedulerJob } from "../run/job/scheduler-job.ts";
import { silentLogger } from "../service/logger.ts";
import { adhoc } from "../store/database/database.ts";
import { createDueRuns } from "../store/plan/due-runs.ts";
import { claimQuestions } from "../store/plan/timetable-plans.ts";
import { TimetableClient } from "./timetable-client.ts";

const IMPORTS = 'import { dag, Timetable, cron } from "tradewind";\n';
const HOUR = 3_600_000;

/** A DAG whose timetable is this class. */
function file(dagId: string, next: string, options = ""): string {
  return `${ownClass(next)}\nexport default ${dagText(dagId, options)};`;
}

function ownClass(next: string): string {
  return `${IMPORTS}class Own extends Timetable<{ every: number }> { next({ last, now, start, end }) { ${next} } }`;
}

function dagText(dagId: string, options = ""): string {
  return `dag("${dagId}", { schedule: new Own({ every: ${HOUR} })${options} }, (d) => { d.task("a", () => 1); })`;
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
  let others: SchedulerJob[];
  const start = new Date(thisHour() - 3 * HOUR).toISOString();
  const later = new Date(thisHour() + 2 * HOUR).toISOString();
  const since = thisHour() - 12 * HOUR;
  const many = ["many_0", "many_1", "many_2"];
  const once = (day: number) => `return last === null ? new Date("2099-01-0${day}") : null;`;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    const range = `, start: new Date(${since}), end: new Date(${since + 7 * HOUR}), catchup: true, maxActiveRuns: 3`;
    const broken = `throw Object.assign(new Error("no calendar for " + now.getUTCFullYear()), { code: "NO_CALENDAR" });`;
    // All at once: loading a file takes longer than the tests.
    await rig.publish({
      ...Object.fromEntries(many.map((name) => [`${name}.ts`, file(name, HOURLY, range)])),
      "all.ts": file("all", HOURLY, `, start: "${start}", catchup: true`),
      "newest.ts": file("newest", HOURLY, `, start: "${start}"`),
      "late.ts": file("late", HOURLY, `, start: "${later}", jitter: "30m"`),
      "over.ts": file("over", HOURLY, `, start: "${later}", end: "${later}"`),
      "moved.ts": file("moved", once(1)),
      "broken.ts": file("broken", broken),
      "beside.ts": file("beside", HOURLY, ", start: new Date(0)"),
    });
    await rig.scheduler();
    others = [await rig.scheduler({ shared: false }), await rig.scheduler({ shared: false })];
  });

  const dates = async (dagId: string) => {
    const sql = "SELECT logical_date FROM dag_run WHERE dag_id = $1 ORDER BY logical_date";
    const rows = await rig.db.rows<{ logical_date: Date }>(adhoc(sql), [dagId]);
    return rows.map((row) => row.logical_date.getTime());
  };
  const isPlanned = (dagId: string) =>
    rig.until(async () => (await plan(rig, dagId)).next !== null, `a plan of ${dagId}`);

  it("has one run per date with three schedulers at once, one of which is stopped meanwhile", async () => {
    await rig.until(async () => (await dates("many_0")).length >= 3, "the first runs");
    await others[0]?.stop(0);
    for (const name of many) {
      await rig.until(async () => (await dates(name)).length >= 8, `all runs of ${name}`, 60_000);
      await rig.until(async () => (await plan(rig, name)).ask_at === null, `the last answer of ${name}`);
      expect(await dates(name)).toEqual(Array.from({ length: 8 }, (_, i) => since + i * HOUR));
      expect((await plan(rig, name)).next).toBeNull();
    }
  });

  it("creates all its runs with catchup, and the newest without", async () => {
    await rig.until(async () => (await dates("all")).length >= 4, "four runs");
    await isPlanned("all");
    const made = await dates("all");
    expect(made.map((at) => at - (made[0] as number))).toEqual(made.map((_, i) => i * HOUR));
    expect(made[0]).toBe(Date.parse(start));
    await rig.until(async () => (await dates("newest")).length > 0, "a run");
    await isPlanned("newest");
    expect((await dates("newest"))[0]).toBeGreaterThanOrEqual(thisHour() - HOUR);
  });

  it("ends with the DAG's end, and is delayed by the DAG's jitter", async () => {
    await isPlanned("late");
    const { next, run_after } = await plan(rig, "late");
    const jitter = (run_after?.getTime() ?? 0) - (next?.getTime() ?? 0);
    expect(next?.toISOString()).toBe(later);
    expect(jitter).toBe(jitterOf("late", Date.parse(later), 30 * 60_000));
    await isPlanned("over");
    expect((await plan(rig, "over")).next?.toISOString()).toBe(later);
  });

  it("stores its error as the schedule's error, and retries while others are planned", async () => {
    await rig.until(async () => ((await plan(rig, "broken")).failures ?? 0) >= 2, "two failures");
    const { error, ask_at, next } = await plan(rig, "broken");
    expect(error).toMatchObject({
      code: "NO_CALENDAR",
      message: expect.stringMatching(/^no calendar for 20/),
    });
    expect(ask_at).not.toBeNull();
    expect(next).toBeNull();
    await isPlanned("beside");
  });

  it("is called again after a change of its code, and not otherwise", async () => {
    await isPlanned("moved");
    await rig.publish({
      "moved.ts": file("moved", once(2)),
      "broken.ts": file("broken", 'return last === null ? "2099-01-01" : null;'),
    });
    await rig.until(
      async () => (await plan(rig, "moved")).next?.toISOString() === "2099-01-02T00:00:00.000Z",
      "the plan of the new code",
    );
    await isPlanned("broken");
    expect(await plan(rig, "broken")).toMatchObject({ failures: 0, error: null });
    await rig.publish({});
    expect((await plan(rig, "moved")).ask_at).toBeNull();
  });
});

describe("the desk", () => {
  let rig: SchedulerRig;
  let desk: TimetableClient;

  beforeAll(async () => {
    rig = await SchedulerRig.open();
  });
  beforeEach(async () => {
    const bundles = new BundleCache(join(rig.root, "bundles"), (hash) => fetchBundle(rig.db, hash));
    const parts = { database: rig.db, bundles, logger: silentLogger, onPlanned: () => {}, answerMs: 2_000 };
    desk = new TimetableClient(parts);
    return async () => {
      await desk.stop();
      // The timetables of one test must not be called in the next.
      await rig.db.rows(adhoc("DELETE FROM dag_timetable"));
    };
  });

  const failed = (dagId: string) =>
    rig.until(async () => (await plan(rig, dagId)).error !== null, `an error of ${dagId}`);
  const GOOD = 'return last === null ? "2099-01-01" : null;';

  it("reports timetables that hang, exit, print or send invalid data, and plans the others", async () => {
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
    desk.poll();
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

  it("runs in a process without the engine's credentials and environment", async () => {
    vi.stubEnv("DATABASE_URL", "postgres://secret");
    onTestFinished(() => void vi.unstubAllEnvs());
    const look = "throw new Error(process.pid + ' ' + JSON.stringify(process.env));";
    await rig.publish({ "curious.ts": file("curious", look) });
    desk.poll();
    await failed("curious");
    const { error } = await plan(rig, "curious");
    expect(error?.code).toBe("TIMETABLE_THREW");
    expect(error?.message).toContain("PATH");
    expect(error?.message).not.toContain("secret");
    expect(error?.message).not.toContain(`Error: ${process.pid} `);
  });

  it("runs in the environment of tasks, and names a variable that a timetable lacks", async () => {
    vi.stubEnv("SHOP_REGION", "eu");
    vi.stubEnv("SHOP_KEY", "not-passed");
    vi.stubEnv("TRADEWIND_TASK_ENV", "SHOP_REG*");
    onTestFinished(() => void vi.unstubAllEnvs());
    const look = "throw new Error(process.env.SHOP_REGION + ', but SHOP_KEY is ' + process.env.SHOP_KEY);";
    await rig.publish({ "lacking.ts": file("lacking", look) });
    desk.poll();
    await failed("lacking");
    expect((await plan(rig, "lacking")).error?.message).toBe(
      "Error: eu, but SHOP_KEY is undefined\nSHOP_KEY is set for the scheduler but not passed to tasks: add it to TRADEWIND_TASK_ENV.",
    );
  });

  it("releases its claims when it stops", async () => {
    await rig.publish({ "h_hangs.ts": file("h_hangs", "for (;;);"), "i_good.ts": file("i_good", GOOD) });
    desk.poll();
    await rig.until(
      async () => (await takenUntil("h_hangs")) > Date.now() + 1_000,
      "the question to be taken",
    );
    await desk.stop();
    expect((await plan(rig, "h_hangs")).error).toBeNull();
    const taken = await claimQuestions(rig.db, 10, 60_000);
    expect(taken.map(({ dagId }) => dagId).sort()).toEqual(["h_hangs", "i_good"]);
  });

  const takenUntil = async (dagId: string) => (await plan(rig, dagId)).ask_at?.getTime() ?? 0;

  it("creates one plan per DAG with two clients at once", async () => {
    const names = Array.from({ length: 12 }, (_, i) => `own_${i}`);
    const text = names.map((name) => `export const ${name} = ${dagText(name)};`);
    await rig.publish({ "own.ts": `${ownClass(GOOD)}\n${text.join("\n")}` });
    const bundles = new BundleCache(join(rig.root, "other"), (hash) => fetchBundle(rig.db, hash));
    const other = new TimetableClient({
      database: rig.db,
      bundles,
      logger: silentLogger,
      onPlanned: () => {},
    });
    desk.poll();
    other.poll();
    for (const name of names)
      await rig.until(async () => (await plan(rig, name)).next !== null, `a plan of ${name}`);
    await other.stop();
  });

  describe("while others hang", () => {
    const HANGS = "for (;;);";
    const hang = Array.from({ length: 6 }, (_, i) => `hang_${i}`);
    const filesOf = (names: readonly string[], next: string) =>
      Object.fromEntries(names.map((name) => [`${name}.ts`, file(name, next)]));
    const open = (answerMs: number) => {
      const bundles = new BundleCache(join(rig.root, "bundles"), (hash) => fetchBundle(rig.db, hash));
      const parts = { database: rig.db, bundles, logger: silentLogger, onPlanned: () => {}, answerMs };
      const opened = new TimetableClient(parts);
      onTestFinished(() => opened.stop());
      return opened;
    };
    const held = async () => {
      const sql =
        "SELECT 1 FROM dag_timetable WHERE dag_id LIKE 'hang%' AND ask_at > now() + interval '1 minute'";
      return (await rig.db.rows(adhoc(sql))).length;
    };
    // So long that a test that waits for them times out.
    const LONG = 120_000;

    beforeEach(async () => {
      await rig.db.rows(adhoc("DELETE FROM dag_timetable"));
      await rig.publish(filesOf(hang, HANGS));
      await rig.db.rows(
        adhoc(`INSERT INTO dag_timetable (dag_id, ask_at, asked) SELECT dag_id, now(), 1 FROM dag
               WHERE dag_id LIKE 'hang%' ON CONFLICT DO NOTHING`),
      );
    });

    it("calls new timetables beside retried ones, which get at most two children", async () => {
      await rig.db.rows(adhoc("UPDATE dag_timetable SET failures = 1"));
      const slow = open(LONG);
      slow.poll();
      await rig.until(async () => (await held()) === 2, "two to hang");
      await rig.publish(filesOf(["new_a", "new_b"], GOOD));
      slow.poll();
      for (const name of ["new_a", "new_b"])
        await rig.until(async () => (await plan(rig, name)).next !== null, `a plan of ${name}`, 15_000);
      expect(await held()).toBe(2);
    });

    it("calls timetables that have answered before beside all new ones", async () => {
      const hourly = file("proven", HOURLY, `, start: new Date(${thisHour() - 3 * HOUR}), catchup: true`);
      await rig.publish({ "proven.ts": hourly });
      const first = open(2_000);
      const isPlanned = async () => (await plan(rig, "proven")).next !== null;
      await rig.db.rows(adhoc("UPDATE dag_timetable SET ask_at = NULL WHERE dag_id LIKE 'hang%'"));
      first.poll();
      await rig.until(isPlanned, "its first plan");
      await rig.db.rows(adhoc("UPDATE dag_timetable SET ask_at = now() WHERE dag_id LIKE 'hang%'"));
      const slow = open(LONG);
      slow.poll();
      await rig.until(async () => (await held()) === 3, "three to hang");
      for (let n = 0; n < 3; n++) {
        await createDueRuns(rig.db, planner, 10);
        slow.poll();
        await rig.until(isPlanned, `plan ${n} beside those that hang`, 15_000);
      }
      expect(await held()).toBe(3);
    });
  });
});
