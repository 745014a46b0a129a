/** A program that drives runs of its own choice, beside schedulers, on a real database with real task processes. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { gatedDags } from "../../test/support/gated-dags.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun } from "../store/edit/end-run.ts";
import { DagRunJob, type DagRunJobOptions, type EndedRun } from "./dag-run-job.ts";

let rig: SchedulerRig;
let gate: string;
const opened: DagRunJob[] = [];

beforeEach(async () => {
  rig = await SchedulerRig.open();
  gate = join(rig.root, "gate");
  await rig.publish({
    "dags.ts": `
      ${gatedDags(rig.root)}
      export const quick = dag("quick", { maxActiveRuns: 100 }, (d) => {
        d.task("t", (_, ctx) => {
          if (ctx.run.logicalDate?.getUTCDate() === 3) throw new Error("the third");
          return ctx.run.conf;
        });
      });
      export const narrow = dag("narrow", { maxActiveRuns: 2 }, (d) => { d.task("t", gate); });
    `,
  });
  return () => rig.close();
});

afterEach(async () => {
  await writeFile(gate, "");
  await Promise.all(opened.splice(0).map((job) => job.close()));
});

const open = async (options: DagRunJobOptions = {}) => {
  const job = await DagRunJob.open({
    databaseUrl: rig.url,
    home: join(rig.root, "driver"),
    parallelism: 4,
    logLevel: "error",
    ...options,
  });
  opened.push(job);
  return job;
};
const dates = (dagId: string, count: number) =>
  Array.from({ length: count }, (_, day) => ({ dagId, logicalDate: new Date(Date.UTC(2026, 0, day + 1)) }));
const collect = async (job: DagRunJob) => {
  const ended: EndedRun[] = [];
  for await (const run of job.collect()) ended.push(run);
  return ended;
};
const rows = (state: string) =>
  rig.db.rows<{ id: number; run_id: string; owner_job: number; kind: string | null }>(
    adhoc(
      "SELECT r.id, r.run_id, r.owner_job, j.kind FROM dag_run r LEFT JOIN job j ON j.id = r.owner_job WHERE r.state = $1 ORDER BY r.id",
    ),
    [state],
  );
const running = (count: number) =>
  rig.until(async () => (await rows("running")).length === count, `${count} running runs`);
const task = (id: number) => async () => (await rig.states(id)).t === "running";

it("creates and drives submitted runs without a scheduler, and reports each end once", async () => {
  const job = await open();
  await job.submit([...dates("quick", 2), { dagId: "quick", conf: { region: "eu" } }]);
  expect(job.progress()).toMatchObject({ total: 3, finished: 0, percent: 0 });
  const ended = await collect(job);
  expect(ended.map(({ state }) => state)).toEqual(["success", "success", "success"]);
  expect(
    ended
      .map(({ runId }) => runId)
      .sort()
      .slice(0, 2),
  ).toEqual(["manual__2026-01-01T00:00:00.000Z", "manual__2026-01-02T00:00:00.000Z"]);
  expect(job.progress()).toEqual({
    ...{ total: 3, waiting: 0, running: 0, success: 3, failed: 0, finished: 3, percent: 100 },
  });
  const conf = await rig.db.one(adhoc("SELECT conf FROM dag_run WHERE logical_date IS NULL"));
  expect(conf).toEqual({ conf: { region: "eu" } });
  expect(await rig.poolsAreExact()).toBe(true);
});

it("creates runs within maxActive, and within maxActiveRuns of the DAG", async () => {
  const job = await open({ maxActive: 3 });
  await job.submit(dates("held", 5));
  await running(3);
  expect(await rows("queued")).toEqual([]);
  expect(job.progress()).toMatchObject({ total: 5, waiting: 2, running: 3 });
  await job.withdraw();
  expect(job.progress()).toMatchObject({ total: 3, waiting: 0, running: 3 });
  await writeFile(gate, "");
  expect(await collect(job)).toHaveLength(3);
  expect(await rows("success")).toHaveLength(3);
});

it("starts a run of another DAG when the limit of a DAG is reached", async () => {
  const job = await open();
  await job.submit([...dates("narrow", 4), ...dates("quick", 1)]);
  await rig.until(async () => (await rows("success")).length === 1, "the quick one");
  expect(await rows("running")).toHaveLength(2);
  expect(await rows("queued")).toEqual([]);
  await writeFile(gate, "");
  expect(await collect(job)).toHaveLength(5);
});

it("keeps schedulers from queued runs that it has not started, until it withdraws them", async () => {
  const first = await rig.trigger("held");
  const second = await rig.trigger("held");
  const job = await open({ maxActive: 1 });
  const names = await Promise.all([first, second].map(async (id) => (await rig.run(id)).run_id));
  await job.submit(names.map((runId) => ({ dagId: "held", runId })));
  await rig.until(task(first), "the first run");
  await rig.scheduler({ shared: false });
  const third = await rig.trigger("held");
  await rig.until(task(third), "a run of the scheduler");
  expect(await rows("queued")).toMatchObject([{ id: second, kind: "driver" }]);
  await job.withdraw();
  await rig.until(task(second), "the second run");
  expect((await rows("running")).map(({ kind }) => kind)).toEqual(["driver", "scheduler", "scheduler"]);
});

it("reports runs that other jobs drive or have ended, and uses the existing run of a date", async () => {
  await rig.scheduler({ shared: false });
  const done = await rig.trigger("quick", { logicalDate: new Date("2026-01-01") });
  await rig.ended(done);
  const theirs = await rig.trigger("held");
  await rig.until(task(theirs), "their run");
  const job = await open();
  await job.submit([...dates("quick", 1), { dagId: "held", runId: (await rig.run(theirs)).run_id }]);
  const ended = collect(job);
  await rig.until(async () => job.progress().success === 1, "the end of the first");
  expect(await rows("running")).toMatchObject([{ id: theirs, kind: "scheduler" }]);
  await writeFile(gate, "");
  expect((await ended).map(({ dagId, state }) => [dagId, state])).toEqual([
    ["quick", "success"],
    ["held", "success"],
  ]);
});

it("reports a run that a user cancelled", async () => {
  const job = await open();
  await job.submit(dates("held", 1));
  await running(1);
  const [run] = await rows("running");
  await rig.db.transaction((tx) => cancelRun(tx, run!.id, "not needed"));
  rig.wakeUps.send(`run:${run!.id}`);
  expect(await collect(job)).toMatchObject([{ state: "failed", reason: "not needed" }]);
});

it("leaves its runs to a scheduler when it is closed", async () => {
  const job = await open({ maxActive: 1 });
  await job.submit(dates("held", 3));
  await running(1);
  const [run] = await rows("running");
  await rig.until(task(run!.id), "the task");
  await job.close();
  expect(await collect(job)).toEqual([]);
  await writeFile(gate, "");
  await rig.scheduler({ shared: false });
  expect(await rig.ended(run!.id)).toBe("success");
  expect(await rows("queued")).toEqual([]);
});

it("takes over the runs of an earlier driver once its lease has expired", async () => {
  const dead = await rig.db.one<{ id: number }>(
    adhoc(`INSERT INTO job (kind, hostname, pid, version, lease_until)
           VALUES ('driver', 'gone', 1, '0', now() - interval '1 minute') RETURNING id`),
  );
  for (const state of ["running", "queued"]) {
    const id = await rig.trigger("quick", {
      logicalDate: new Date(state === "queued" ? "2026-01-02" : "2026-01-01"),
    });
    await rig.db.rows(adhoc("UPDATE dag_run SET state = $2, owner_job = $3 WHERE id = $1"), [
      id,
      state,
      dead!.id,
    ]);
  }
  const job = await open();
  await job.submit(dates("quick", 2));
  expect((await collect(job)).map(({ state }) => state)).toEqual(["success", "success"]);
});

it("waits for the callbacks of its runs", async () => {
  const job = await open();
  await job.submit(dates("told", 1));
  await collect(job);
  expect(await rig.db.rows(adhoc("SELECT 1 FROM callback"))).toEqual([]);
});

it("accepts more runs while it collects", async () => {
  const job = await open();
  await job.submit(dates("quick", 1));
  const days: number[] = [];
  for await (const run of job.collect()) {
    const day = run.logicalDate!.getUTCDate();
    days.push(day);
    if (day < 3) await job.submit([{ dagId: "quick", logicalDate: new Date(Date.UTC(2026, 0, day + 1)) }]);
  }
  expect(days).toEqual([1, 2, 3]);
  expect(job.progress()).toMatchObject({ total: 3, success: 2, failed: 1 });
});

it("submits nothing if a DAG or a run is unknown or a conf is invalid", async () => {
  await rig.db.rows(
    adhoc(
      "UPDATE dag_version SET manifest = manifest || jsonb_build_object('paramsSchema', $1::jsonb) WHERE dag_id = 'told'",
    ),
    [JSON.stringify({ type: "object", properties: { region: { type: "string" } } })],
  );
  const job = await open();
  const refused = (run: Parameters<DagRunJob["submit"]>[0]) => job.submit([...dates("quick", 1), ...run]);
  await expect(refused([{ dagId: "typo" }])).rejects.toMatchObject({ code: "DAG_RUN_DAG_UNKNOWN" });
  await expect(refused([{ dagId: "quick", runId: "typo" }])).rejects.toMatchObject({
    code: "DAG_RUN_UNKNOWN",
  });
  await expect(refused([{ dagId: "told", conf: { region: 7 } }])).rejects.toThrow(
    /The conf does not fit the params of DAG "told": conf\.region/,
  );
  expect(job.progress().total).toBe(0);
  expect(await collect(job)).toEqual([]);
  await job.close();
  await expect(job.submit(dates("quick", 1))).rejects.toMatchObject({ code: "DAG_RUN_JOB_CLOSED" });
  expect(await rows("queued")).toEqual([]);
});

it("rejects invalid runs with the field, the value and the remedy, and submits nothing", async () => {
  const job = await open();
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const start = new Date("2026-01-02");
  const end = new Date("2026-01-01");
  const of = (run: object) => [...dates("quick", 1), { dagId: "quick", ...run }];
  const cases: [unknown, string][] = [
    [
      {},
      "runs is {}: it must be an array or another iterable of runs. Submit a single run as submit([run]).",
    ],
    [undefined, "runs is undefined: it must be"],
    [[null], "runs[0] is null: it must be an object."],
    [[{}], "runs[0].dagId is undefined: it must be a non-empty string."],
    [
      of({ logicalDate: "2026-01-01" }),
      `runs[1].logicalDate is '2026-01-01': it must be a valid Date. Write new Date("2026-01-01").`,
    ],
    [of({ logicalDate: new Date("x") }), "runs[1].logicalDate is Invalid Date: it must be a valid Date."],
    [of({ logicaldate: start }), 'runs[1]: unknown key "logicaldate". Did you mean "logicalDate"?'],
    [of({ dataInterval: { start, end: 5 } }), "runs[1].dataInterval.end is 5: it must be a valid Date."],
    [
      of({ dataInterval: { start, end } }),
      "runs[1].dataInterval.end is 2026-01-01T00:00:00.000Z: it must be",
    ],
    [of({ conf: ["eu"] }), "runs[1].conf is [ 'eu' ]: it must be an object."],
    [of({ conf: circular }), "runs[1].conf cannot be stored as JSON: "],
    [of({ runId: undefined }), "runs[1].runId is undefined: it must be a non-empty string."],
    [of({ runId: "manual__x", conf: {} }), "runs[1] has a runId and conf: an existing run keeps its conf."],
  ];
  for (const [runs, message] of cases)
    await expect(job.submit(runs as never)).rejects.toMatchObject({
      name: "EngineError",
      code: "DAG_RUN_INVALID",
      message: expect.stringContaining(message),
    });
  expect(job.progress().total).toBe(0);
});

it.each([
  [{ maxActiv: 8 }, 'unknown option "maxActiv". Did you mean "maxActive"?'],
  [{ maxActive: "8" }, "maxActive is '8': it must be a number."],
  [{ maxActive: 1.5 }, "maxActive is 1.5: it must be a whole number from 1."],
  [{ home: null }, "home is null: it must be a string."],
  [
    { databaseUrl: new URL("postgresql://me:secret@db/x") },
    "databaseUrl has a wrong type: it must be a string.",
  ],
  [null, "the options are null: they must be an object."],
])("rejects the options %j", async (options, message) => {
  await expect(DagRunJob.open(options as never)).rejects.toMatchObject({
    name: "EngineError",
    code: "CONFIG_INVALID",
    message: expect.stringContaining(`DagRunJob.open: ${message}`),
  });
});

it("names what is missing if it cannot be opened", async () => {
  const home = join(rig.root, "nowhere");
  const url = process.env.DATABASE_URL;
  delete process.env.DATABASE_URL;
  try {
    await expect(DagRunJob.open({ home })).rejects.toMatchObject({
      code: "DAG_RUN_JOB_NO_DATABASE",
      message: expect.stringContaining(`the home ${home} does not exist`),
    });
    expect(existsSync(home)).toBe(false);
  } finally {
    if (url !== undefined) process.env.DATABASE_URL = url;
  }
  await expect(open({ maxActive: 0 })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  await rig.db.rows(
    adhoc("DELETE FROM schema_migration WHERE version = (SELECT max(version) FROM schema_migration)"),
  );
  await expect(open()).rejects.toMatchObject({ code: "DATABASE_NOT_MIGRATED" });
});
