/** Backfills from the command line to the tasks' processes, against a real standalone. */
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCaptured } from "./support/captured-host.ts";
import { StandaloneProcess } from "./support/standalone-process.ts";

const DAGS = `
import { cron, dag, Timetable } from "tradewind";
export const daily = dag("daily", { schedule: cron("0 2 * * *", "UTC") }, (d) => {
  const a = d.task("a", () => 1);
  d.task("b", { after: [a] }, () => {});
});
export const berlin = dag("berlin", { schedule: cron("0 2 * * *", "Europe/Berlin") }, (d) => {
  d.task("only", () => {});
});
export const weak = dag("weak", { schedule: cron("0 0 * * *", "UTC") }, (d) => {
  d.task("only", (_, ctx) => { if (ctx.run.logicalDate?.getUTCDate() === 2) throw new Error("the second"); });
});
export const endless = dag("endless", { schedule: cron("0 0 * * *", "UTC") }, (d) => {
  d.task("nap", (_, ctx) => new Promise((done) => setTimeout(done, 60_000)));
});
/** Every day but the third, for the day before. */
class Most extends Timetable<null> {
  next({ last, start, now }) {
    const day = new Date(last?.logicalDate ?? start ?? now);
    do day.setUTCDate(day.getUTCDate() + 1); while (day.getUTCDate() === 3);
    day.setUTCHours(5, 0, 0, 0);
    return { logicalDate: day, dataInterval: { start: new Date(day.getTime() - 86_400_000), end: day } };
  }
}
export const own = dag("own", { schedule: new Most(null) }, (d) => {
  d.task("only", (_, ctx) => ctx.run.dataInterval?.start.toISOString() ?? null);
});
class Odd extends Timetable<string> {
  next({ last, start, now }) {
    const at = (last?.logicalDate ?? start ?? now).getTime();
    if (this.args === "throws" && at > Date.parse("2020-01-02")) throw Object.assign(new Error("no such year"), { code: "NO_YEAR" });
    if (this.args === "back" && at > Date.parse("2020-01-02")) return new Date(at - 1);
    return new Date(at + (this.args === "endless" && at >= Date.parse("2020-01-01") ? 1 : 3_600_000));
  }
}
export const odd = ["throws", "back", "endless"].map((how) =>
  dag("odd_" + how, { schedule: new Odd(how) }, (d) => { d.task("only", () => {}); }));
export const byHand = dag("by_hand", {}, (d) => { d.task("only", () => {}); });
`;

let standalone: StandaloneProcess;
const tw = (...argv: string[]) => runCaptured(argv, { env: { TRADEWIND_HOME: standalone.home } });
const json = async <T>(...argv: string[]): Promise<T> =>
  JSON.parse((await tw(...argv, "--json")).stdout) as T;
const JANUARY = ["--from", "2020-01-01", "--to", "2020-01-04"];

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-cli-"));
  await mkdir(join(folder, "dags"));
  await writeFile(join(folder, "dags", "dags.ts"), DAGS);
  standalone = await StandaloneProcess.startOn(folder);
  await standalone.until(/DAGs? loaded:.*daily/);
}, 120_000);
afterAll(() => standalone?.remove());

describe("backfill", () => {
  it("says what it would do, does it, and shows exact figures at the end", { timeout: 60_000 }, async () => {
    const dry = await tw("backfill", "create", "daily", ...JANUARY, "--dry-run");
    expect(dry.stdout).toMatch(/2020-01-01 02:00:00Z +a new run\n.*2020-01-02 02:00:00Z +a new run/);
    expect(dry.stderr).toContain(
      "4 dates, 2020-01-01 02:00:00Z to 2020-01-04 02:00:00Z. The range is 2020-01-01 00:00:00Z to 2020-01-04 23:59:59.999Z, both included.",
    );
    const exact = ["--from", "2020-01-01T02:00Z", "--to", "2020-01-04T01:59Z"];
    expect((await json<object[]>("backfill", "create", "daily", ...exact, "--dry-run")).length).toBe(3);

    const local = ["--from", "2020-01-01T02:00", "--to", "2020-01-02T02:00"];
    const dates = await json<{ logical_date: string }[]>(
      "backfill",
      "create",
      "berlin",
      ...local,
      "--dry-run",
    );
    expect(dates.map(({ logical_date }) => logical_date)).toEqual([
      "2020-01-01T01:00:00.000Z",
      "2020-01-02T01:00:00.000Z",
    ]);

    const conf = ["--conf", '{"why":"test"}'];
    const done = await tw("backfill", "create", "daily", ...JANUARY, ...conf, "--wait", "--json");
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({
      backfill: { dag_id: "daily", state: "done", dag_run_conf: { why: "test" } },
      runs: { total: 4, finished: 4, succeeded: 4, skipped: 0, failed: 0, running: 0 },
      tasks: { total: 8, finished: 8, succeeded: 8, skipped: 0, failed: 0, running: 0 },
      percent: 100,
    });
    const runs = await json<{ run_type: string }[]>("runs", "list", "daily");
    expect(runs.filter((run) => run.run_type === "backfill")).toHaveLength(4);
    const again = await tw("backfill", "create", "daily", ...JANUARY, "--dry-run");
    expect(again.stdout).toContain("nothing: it has a run (success)");
  });

  it("fails when a run of it does, and does the failed ones again", { timeout: 60_000 }, async () => {
    const first = await tw(
      "backfill",
      "create",
      "weak",
      ...JANUARY,
      "--max-active",
      "1",
      "--stop-on-failure",
      "--wait",
    );
    expect(first.code).toBe(1);
    expect(first.stderr).toMatch(
      /✗ backfill \d+ of weak failed: runs 2 of 4 finished \(1 succeeded, 0 skipped, 1 failed\)/,
    );
    expect(first.stderr).toMatch(/weak [█░]{24} +[\d.]+ % · runs/);
    const second = await tw(
      "backfill",
      "create",
      "weak",
      ...JANUARY,
      "--reprocess",
      "failed",
      "--wait",
      "--json",
    );
    expect(second.code).toBe(1);
    expect(JSON.parse(second.stdout).runs).toMatchObject({ succeeded: 2, failed: 1, skipped: 1, cleared: 1 });
  });

  it("is listed, shown, paused, changed, resumed and cancelled", { timeout: 60_000 }, async () => {
    const made = await tw("backfill", "create", "endless", ...JANUARY, "--max-active", "1", "--reverse");
    const id = /Backfill (\d+) of endless: 4 runs, 1 at once, dates \S+ \S+Z to \S+ \S+Z\./.exec(
      made.stderr,
    )?.[1] as string;
    await standaloneUntil(async () => (await shown(id)).runs.running === 1);
    expect((await tw("backfill", "wait", id, "--timeout", "1s")).code).toBe(124);
    expect((await tw("backfill", "pause", id)).stderr).toContain(`Backfill ${id} is paused.`);
    expect((await tw("backfill", "list", "endless", "--active")).stdout).toMatch(
      /endless +paused +2020-01-01 +2020-01-04 /,
    );
    expect(await json("backfill", "set", id, "--max-active", "2")).toMatchObject({ max_active_runs: 2 });
    expect((await tw("backfill", "unpause", id)).code).toBe(0);
    await standaloneUntil(async () => (await shown(id)).runs.running === 2);
    expect((await tw("backfill", "show", id)).stdout).toMatch(/order +backwards/);
    expect((await tw("backfill", "cancel", id)).code).toBe(2);
    expect(await json("backfill", "cancel", id, "--yes")).toMatchObject({ state: "cancelled" });
    expect((await tw("backfill", "wait", id)).code).toBe(1);
    expect((await tw("backfill", "pause", id)).code).toBe(5);
  });

  it("fills the dates of a timetable of the author's own", { timeout: 60_000 }, async () => {
    const dry = await json<{ logical_date: string }[]>("backfill", "create", "own", ...JANUARY, "--dry-run");
    const dates = ["2020-01-01T05:00:00.000Z", "2020-01-02T05:00:00.000Z", "2020-01-04T05:00:00.000Z"];
    expect(dry.map((date) => date.logical_date)).toEqual(dates);
    const done = await tw("backfill", "create", "own", ...JANUARY, "--reverse", "--wait", "--json");
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout).runs).toMatchObject({ total: 3, succeeded: 3 });
    type Run = { run_type: string; logical_date: string; data_interval_start: string };
    const runs = (await json<Run[]>("runs", "list", "own")).filter(({ run_type }) => run_type === "backfill");
    expect(runs.map((run) => run.logical_date).sort()).toEqual(dates);
    expect(runs.map((run) => run.data_interval_start).sort()[0]).toBe("2019-12-31T05:00:00.000Z");
    for (const [how, said] of [
      ["throws", /cannot list its dates: no such year \[NO_YEAR\]/],
      ["back", /which is not after the last run's .* \[TW_TIMETABLE_ANSWER\]/],
      ["endless", /more than 10000 dates .* \[BACKFILL_TOO_LONG\]/],
    ] as const) {
      const refused = await tw("backfill", "create", `odd_${how}`, ...JANUARY);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(said) });
    }
  });

  it("explains what cannot be", async () => {
    expect(await tw("backfill", "create", "by_hand", ...JANUARY)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("has no time-based schedule"),
    });
    expect((await tw("backfill", "create", "daily", "--from", "2020-01-01")).code).toBe(2);
    expect((await tw("backfill", "create", "nobody", ...JANUARY)).code).toBe(3);
    const reversed = ["backfill", "create", "daily", "--from", "2020-01-09", "--to", "2020-01-01"];
    for (const more of [[], ["--dry-run"]])
      expect((await tw(...reversed, ...more)).stderr).toMatch(/^ {2}--from: /m);
    expect((await tw("backfill", "show", "4711")).code).toBe(3);
    expect((await tw("backfill", "set", "1")).stderr).toContain("--max-active");
  });
});

function shown(id: string): Promise<{ runs: { running: number } }> {
  return json("backfill", "show", id);
}

async function standaloneUntil(holds: () => Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 30_000; !(await holds()); )
    if (Date.now() > deadline) throw new Error(`waited in vain:\n${standalone.stderr.slice(-3_000)}`);
}
