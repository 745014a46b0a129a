/** Schedules by time, end to end: from a DAG's file to its runs. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { jitterOf } from "../model/index.ts";
import { adhoc } from "../store/database/database.ts";

const IMPORTS = 'import { continuous, cron, dag, dates, every, once } from "tradewind";\n';
const HOUR = 3_600_000;
let rig: SchedulerRig;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.scheduler();
});

const file = (dagId: string, options: string, task = "1") =>
  `${IMPORTS}export default dag("${dagId}", { ${options} }, (d) => { d.task("a", () => { ${task}; }); });`;

interface Run {
  readonly logical_date: Date;
  readonly interval_start: Date;
  readonly interval_end: Date;
  readonly run_after: Date;
  readonly state: string;
}

function runs(dagId: string): Promise<Run[]> {
  return rig.db.rows<Run>(
    adhoc(`SELECT logical_date, interval_start, interval_end, run_after, state FROM dag_run
           WHERE dag_id = $1 ORDER BY logical_date`),
    [dagId],
  );
}

async function next(dagId: string): Promise<Date | null> {
  const row = await rig.db.one<{ next_logical_date: Date | null }>(
    adhoc("SELECT next_logical_date FROM dag WHERE dag_id = $1"),
    [dagId],
  );
  return row?.next_logical_date ?? null;
}

const made = (dagId: string, count: number) =>
  rig.until(async () => (await runs(dagId)).length >= count, `${count} runs of ${dagId}`);
const datesOf = async (dagId: string) => (await runs(dagId)).map((run) => run.logical_date.toISOString());

it("creates a run for each past date with catchup, plans the next date, and then none", async () => {
  const list = '["2026-03-01T08:00:00Z", "2026-01-04", "2099-01-01", "2026-02-01T09:00:00+01:00"]';
  await rig.publish({
    "all.ts": file("all", `schedule: dates(${list}), start: "2026-01-01", catchup: true`),
    "newest.ts": file("newest", `schedule: dates(${list})`),
    "over.ts": file("over", `schedule: dates(${list}), end: "2098-01-01"`),
  });
  await made("all", 3);
  await made("newest", 1);
  await made("over", 1);
  const past = ["2026-01-04T00:00:00.000Z", "2026-02-01T08:00:00.000Z", "2026-03-01T08:00:00.000Z"];
  await rig.until(async () => (await next("all"))?.getUTCFullYear() === 2099, "the next date");
  expect(await datesOf("all")).toEqual(past);
  expect(await datesOf("newest")).toEqual(past.slice(-1));
  await rig.until(async () => (await next("over")) === null, "no further date");
  expect(await datesOf("over")).toEqual(past.slice(-1));
});

it("creates one run per time that any of several schedules names, each in its own zone", async () => {
  const list =
    'cron("0 9 * * *", "Europe/Berlin"), cron("0 8 * * *", "UTC"), every("12h"), dates(["2026-01-02T08:00:00Z", "2026-01-02T13:00:00Z"])';
  await rig.publish({
    "several.ts": file(
      "several",
      `schedule: [${list}], start: "2026-01-02", end: "2026-01-03", catchup: true`,
    ),
  });
  const expected = ["00", "08", "12", "13"].map((hour) => `2026-01-02T${hour}:00:00.000Z`);
  await made("several", 5);
  await rig.until(async () => (await next("several")) === null, "the end");
  expect(await datesOf("several")).toEqual([...expected, "2026-01-03T00:00:00.000Z"]);
  for (const run of await runs("several")) expect(run.interval_end).toEqual(run.logical_date);
});

it("gives a run of style interval the ended period, and a run of style trigger its time only", async () => {
  const since = new Date(Math.floor(Date.now() / HOUR) * HOUR - 2 * HOUR).toISOString();
  await rig.publish({
    "cron_i.ts": file(
      "cron_i",
      `schedule: cron("0 * * * *", "UTC", { style: "interval" }), start: "${since}", catchup: true`,
    ),
    "every_i.ts": file(
      "every_i",
      `schedule: every("1h", { style: "interval" }), start: "${since}", catchup: true`,
    ),
    "every_t.ts": file("every_t", `schedule: every("1h"), start: "${since}", catchup: true`),
  });
  for (const [dagId, length, count] of [
    ["cron_i", HOUR, 2],
    ["every_i", HOUR, 2],
    ["every_t", 0, 3],
  ] as const) {
    await made(dagId, count);
    const [first] = await runs(dagId);
    expect(first?.logical_date.toISOString()).toBe(since);
    expect(first?.interval_start).toEqual(first?.logical_date);
    expect((first?.interval_end.getTime() ?? 0) - Date.parse(since)).toBe(length);
    expect(first?.run_after).toEqual(first?.interval_end);
  }
});

it("runs once() once, also after a new version, and continuous() repeatedly", async () => {
  await rig.publish({
    "once.ts": file("once", "schedule: once()"),
    "loop.ts": file("loop", "schedule: continuous()"),
  });
  await made("once", 1);
  await made("loop", 3);
  await rig.publish({ "once.ts": file("once", "schedule: once()", "2") });
  const loop = await runs("loop");
  await made("loop", loop.length + 1);
  expect(await runs("once")).toHaveLength(1);
  expect(await next("once")).toBeNull();
  // Never two at a time, each with its own date.
  expect(loop.filter(({ state }) => state === "queued" || state === "running").length).toBeLessThanOrEqual(1);
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'loop'"));
});

it("delays continuous() more after each failure, and resumes after a manual run has succeeded", async () => {
  const flag = JSON.stringify(join(rig.root, "helped"));
  const task = `if (!existsSync(${flag})) throw new Error("no")`;
  const text = file("brake", "schedule: continuous()", task);
  await rig.publish({ "brake.ts": `import { existsSync } from "node:fs";\n${text}` });
  const ended = () =>
    rig.db.rows<{ run_after: Date; ended_at: Date; state: string }>(
      adhoc("SELECT * FROM dag_run WHERE dag_id = 'brake' AND ended_at IS NOT NULL ORDER BY run_after"),
    );
  await rig.until(async () => (await ended()).length === 3, "three runs");
  const failed = await ended();
  const gaps = failed
    .slice(1)
    .map((run, i) => run.run_after.getTime() - (failed[i]?.ended_at.getTime() ?? 0));
  expect(gaps[0]).toBeGreaterThanOrEqual(999);
  expect(gaps[1]).toBeGreaterThanOrEqual(1_999);
  await writeFile(join(rig.root, "helped"), "");
  expect(await rig.ended(await rig.trigger("brake"))).toBe("success");
  await made("brake", failed.length + 4);
  await rig.db.rows(adhoc("UPDATE dag SET is_paused = true WHERE dag_id = 'brake'"));
});

it("jitter delays runs and keeps their logical dates", async () => {
  const jitterMs = 20_000;
  const since = new Date(Math.floor(Date.now() / HOUR) * HOUR - 3 * HOUR).toISOString();
  const names = Array.from({ length: 5 }, (_, i) => `spread_${i}`);
  const options = `schedule: every("1h"), start: "${since}", catchup: true, jitter: ${jitterMs}`;
  await rig.publish(Object.fromEntries(names.map((name) => [`${name}.ts`, file(name, options)])));
  const delays = new Set<number>();
  for (const name of names) {
    await made(name, 3);
    for (const { logical_date: date, run_after } of await runs(name)) {
      expect(date.getTime() % HOUR).toBe(0);
      const delay = run_after.getTime() - date.getTime();
      expect(delay).toBe(jitterOf(name, date.getTime(), jitterMs));
      delays.add(delay);
    }
  }
  expect(delays.size).toBeGreaterThan(10);
});

it("pauses a DAG after a number of consecutive failures, and records why", async () => {
  await rig.publish({
    "bad.ts": file(
      "bad",
      'schedule: every("1s"), pauseAfterFailures: 2, maxActiveRuns: 1',
      'throw new Error("no")',
    ),
  });
  const dag = () =>
    rig.db.one<{ is_paused: boolean; pause_reason: string | null }>(
      adhoc("SELECT is_paused, pause_reason FROM dag WHERE dag_id = 'bad'"),
    );
  await rig.until(async () => (await dag())?.is_paused === true, "the pause");
  expect((await dag())?.pause_reason).toMatch(/^the last 2 scheduled runs have failed, up to scheduled__/);
  const failed = (await runs("bad")).filter(({ state }) => state === "failed");
  // A run that began before the pause may end after it.
  expect(failed.length).toBeGreaterThanOrEqual(2);
  expect(failed.length).toBeLessThanOrEqual(3);
  const audit = await rig.db.rows(
    adhoc("SELECT 1 FROM audit_event WHERE dag_id = 'bad' AND action = 'pause_dag'"),
  );
  expect(audit).toHaveLength(1);
});
