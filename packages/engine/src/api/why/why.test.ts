import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addTrigger, addTriggerer, addWait, type TriggerSeed } from "../../../test/api/waits.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf(
      "etl",
      [
        { taskId: "a" },
        { taskId: "b", upstream: ["a"] },
        { taskId: "past", dependsOnPast: true },
        { taskId: "small", pool: "tiny" },
        { taskId: "lost", pool: "no_such" },
      ],
      { maxActiveRuns: 2, maxActiveTasks: 3 },
    ),
  );
  await tw.addJob("scheduler");
  await tw.sql("INSERT INTO pool (name, slots, occupied) VALUES ('tiny', 2, 2), ('@etl/a', 1, 1)");
});

let serial = 0;
async function ask(
  taskId: string,
  instance: Parameters<Installation["addInstance"]>[2] | null,
  run: Parameters<Installation["addRun"]>[1] = {},
  more: Record<string, string> = {},
) {
  const runId = `run-${serial++}`;
  const id = await tw.addRun("etl", { runId, ...run });
  if (instance !== null) await tw.addInstance(id, taskId, instance);
  for (const [task, state] of Object.entries(more)) await tw.addInstance(id, task, { state });
  const body = (await tw.call("GET", `/dags/etl/dagRuns/${runId}/taskInstances/${taskId}/why`)).json();
  await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [id]);
  return body.reasons as { code: string; message: string; until: string | null }[];
}

test("explains a wait for upstream tasks by the trigger rule", async () => {
  expect(await ask("b", {}, {}, { a: "running" })).toEqual([
    {
      code: "UPSTREAM",
      message: "Its rule allSuccess waits for upstream tasks: a is running.",
      until: null,
      tasks: [{ task_id: "a", map_index: -1, state: "running" }],
    },
  ]);
});

test("explains a retry delay", async () => {
  const retryAt = new Date(Date.now() + 60_000);
  expect(await ask("a", { state: "up_for_retry", tryNumber: 1, retryAt })).toMatchObject([
    { code: "RETRY_DELAY", until: retryAt.toISOString() },
  ]);
});

test("names the slots of a full pool, the tasks that hold them, and the remedy", async () => {
  const holder = await tw.addRun("etl", { runId: "holder", state: "running" });
  await tw.addInstance(holder, "a", { state: "running", pool: "tiny", mapIndex: 3 });
  await tw.addInstance(holder, "b", { state: "queued", pool: "tiny" });
  await tw.addInstance(holder, "past", { state: "scheduled", pool: "tiny" });
  await tw.addInstance(holder, "lost", { state: "running", pool: "default_pool" });
  const start = 'Pool "tiny" is full: 2 of 2 slots are taken, the task needs 1. Held by: ';
  const end =
    " It starts when enough slots are free. To start it now, enlarge the pool with: tradewind pools set tiny 3";
  expect(await ask("small", { state: "scheduled", pool: "tiny" })).toMatchObject([
    {
      code: "POOL_FULL",
      message: `${start}a[3] of run "holder" of DAG "etl" (running, 1 slot); b of run "holder" of DAG "etl" (queued, 1 slot).${end}`,
    },
  ]);
  for (let mapIndex = 10; mapIndex < 20; mapIndex++)
    await tw.addInstance(holder, "a", { state: "running", pool: "tiny", mapIndex });
  const [many] = await ask("small", { state: "scheduled", pool: "tiny" });
  expect(many?.message).toMatch(/\(running, 1 slot\); and 7 more\. It starts/);
  await tw.sql("DELETE FROM dag_run WHERE id = $1", [holder]);
});

test("names a pool that does not exist", async () => {
  expect(await ask("lost", { state: "scheduled", pool: "no_such" })).toMatchObject([
    { code: "POOL_MISSING" },
  ]);
});

test("distinguishes a pool that is too small from a full pool", async () => {
  await tw.sql("INSERT INTO pool (name, slots) VALUES ('closed', 0), ('endless', -1)");
  expect(await ask("a", { state: "scheduled", pool: "closed" })).toMatchObject([
    {
      code: "POOL_TOO_SMALL",
      message:
        'Pool "closed" has 0 slots in total, and the task needs 1: it can never run. Enlarge the pool with: tradewind pools set closed 1, or give the task fewer poolSlots.',
    },
  ]);
  expect(await ask("a", { state: "scheduled", pool: "endless" })).toMatchObject([{ code: "READY" }]);
});

test("explains slots reserved for a larger task", async () => {
  await tw.sql("INSERT INTO pool (name, slots, occupied) VALUES ('roomy', 4, 2)");
  const wide = await tw.addRun("etl", { runId: "wide", state: "running" });
  await tw.addInstance(wide, "b", { state: "scheduled", pool: "roomy" });
  await tw.sql("UPDATE task_instance SET pool_slots = 3, priority_weight = 9 WHERE dag_run_id = $1", [wide]);
  expect(await ask("a", { state: "scheduled", pool: "roomy" })).toMatchObject([
    { code: "POOL_KEPT", message: expect.stringContaining('task "b" of run "wide" of DAG "etl"') },
  ]);
  await tw.sql("UPDATE task_instance SET priority_weight = 0 WHERE dag_run_id = $1", [wide]);
  expect(await ask("a", { state: "scheduled", pool: "roomy" })).toMatchObject([{ code: "READY" }]);
  await tw.sql("DELETE FROM dag_run WHERE id = $1", [wide]);
});

test("names the limits of its run and of its task over all runs", async () => {
  expect(
    await ask("small", { state: "scheduled" }, {}, { a: "running", b: "queued", past: "running" }),
  ).toMatchObject([{ code: "MAX_ACTIVE_TASKS", message: "3 of at most 3 tasks of this run are active." }]);
  expect(await ask("a", { state: "scheduled", limitKey: "@etl/a" })).toMatchObject([
    { code: "MAX_ACTIVE_PER_DAG", message: expect.stringContaining("limit of this task over all runs") },
  ]);
  const active = await tw.addRun("etl", { runId: "active", state: "running" });
  await tw.addInstance(active, "a", { state: "running", limitKey: "@etl/a" });
  expect(await ask("a", { state: "scheduled", limitKey: "@etl/a" })).toMatchObject([
    {
      message: expect.stringMatching(
        /Held by: a of run "active" of DAG "etl" \(running\)\. .* raise maxActivePerDag of the task\.$/,
      ),
    },
  ]);
  await tw.sql("DELETE FROM dag_run WHERE id = $1", [active]);
  await tw.sql("INSERT INTO pool (name, slots, occupied) VALUES ('@@etl', 3, 3) ON CONFLICT DO NOTHING");
  expect(await ask("a", { state: "scheduled", limitKey: "@etl/free\n@@etl" })).toMatchObject([
    { code: "POOL_MISSING" },
    { code: "MAX_ACTIVE_PER_DAG", message: expect.stringContaining("limit of this DAG over all runs") },
  ]);
});

test("explains a wait for the previous run", async () => {
  const before = await tw.addRun("etl", {
    runId: "before",
    state: "failed",
    logicalDate: new Date("2026-01-01T00:00:00Z"),
  });
  await tw.addInstance(before, "past", { state: "failed" });
  expect(await ask("past", {}, { logicalDate: new Date("2026-01-02T00:00:00Z") })).toMatchObject([
    {
      code: "DEPENDS_ON_PAST",
      message: expect.stringContaining('"before": past is failed'),
      dag_run_id: "before",
      tasks: [{ task_id: "past", map_index: -1, state: "failed" }],
    },
  ]);
  const waiting = await tw.addRun("etl", {
    runId: "waiting 3",
    state: "running",
    logicalDate: new Date("2026-01-03T00:00:00Z"),
  });
  await tw.addInstance(waiting, "past");
  await tw.addRun("etl", {
    runId: "not started",
    state: "queued",
    logicalDate: new Date("2026-01-04T00:00:00Z"),
  });
  expect(await ask("past", {}, { logicalDate: new Date("2026-01-05T00:00:00Z") })).toMatchObject([
    {
      code: "DEPENDS_ON_PAST",
      message:
        'It depends on its own success in run "not started", which in turn waits for the run before it. The first of 4 such runs is "before": past is failed.',
      dag_run_id: "before",
    },
  ]);
  // A running task is waited for, independent of earlier runs.
  await tw.sql("UPDATE task_instance SET state = 'running' WHERE dag_run_id = $1", [waiting]);
  expect(await ask("past", {}, { logicalDate: new Date("2026-01-06T00:00:00Z") })).toMatchObject([
    { dag_run_id: "waiting 3", tasks: [{ task_id: "past", state: "running" }] },
  ]);
  await tw.sql("DELETE FROM dag_run WHERE run_id LIKE 'waiting%' OR run_id = 'not started'");
});

test("explains a run that is not due, over a limit, or just queued", async () => {
  const runAfter = new Date(Date.now() + 3_600_000);
  expect(await ask("a", null, { state: "queued", runAfter })).toMatchObject([
    { code: "RUN_NOT_DUE", until: runAfter.toISOString() },
  ]);
  expect(await ask("a", null, { state: "queued" })).toMatchObject([{ code: "RUN_QUEUED" }]);
  const running = [await tw.addRun("etl"), await tw.addRun("etl")];
  expect(await ask("a", null, { state: "queued" })).toMatchObject([
    { code: "MAX_ACTIVE_RUNS", message: expect.stringContaining("2 of at most 2") },
  ]);
  await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = ANY($1)", [running]);
});

/** A deferred task in a new run, and its reasons. */
async function askDeferred(trigger: Partial<TriggerSeed>, wait: { timeoutAt?: Date; since?: Date } = {}) {
  const runId = `deferred-${serial++}`;
  const dagRunId = await tw.addRun("etl", { runId });
  await addWait(tw, {
    dagRunId,
    taskId: "a",
    triggerId: await addTrigger(tw, trigger),
    kind: trigger.kind ?? "file",
    ...wait,
  });
  const body = (await tw.call("GET", `/dags/etl/dagRuns/${runId}/taskInstances/a/why`)).json();
  await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [dagRunId]);
  return body.reasons as { code: string; message: string; until: string | null }[];
}

const SINCE = new Date("2026-01-01T10:00:00.000Z");

test("explains a wait: trigger, start, timeout, triggerer and last poll", async () => {
  const owner = await addTriggerer(tw, { host: "alpha" });
  const timeoutAt = new Date("2026-01-01T12:00:00.000Z");
  const polledAt = new Date("2026-01-01T11:00:00.000Z");
  const args = { path: "/in/orders.csv", token: "hunter2" };
  expect(await askDeferred({ args, owner, polledAt }, { since: SINCE, timeoutAt })).toEqual([
    {
      code: "DEFERRED",
      message:
        "It waits on file(path=/in/orders.csv, token=***) since 2026-01-01T10:00:00.000Z, until 2026-01-01T12:00:00.000Z at the latest; " +
        `on triggerer ${owner} (alpha), last polled at 2026-01-01T11:00:00.000Z. It holds no worker.`,
      until: "2026-01-01T12:00:00.000Z",
    },
  ]);
  const [told] = await askDeferred({ kind: "tradewind.webhook", owner });
  expect(told!.message).toContain(`; on triggerer ${owner} (alpha). It holds`);
  const [unpolled] = await askDeferred({ kind: "tradewind.http", owner });
  expect(unpolled!.message).toContain("(alpha), not polled yet. It holds");
  const [long] = await askDeferred({ owner, args: { path: "x".repeat(5000) } });
  expect(long!.message.length).toBeLessThan(400);
  const wakeAt = new Date(Date.now() + 3_600_000);
  const [timed] = await askDeferred({ kind: "time", timed: {}, wakeAt });
  expect(timed!.message).toContain(`, without a timeout; it fires at ${wakeAt.toISOString()}`);
  const [cold] = await askDeferred({ wakeAt });
  expect(cold!.message).toContain(`cannot fire before ${wakeAt.toISOString()}`);
  await tw.sql("UPDATE job SET lease_until = now() WHERE kind = 'triggerer'");
});

test("names the missing triggerer of a trigger and the command that starts one", async () => {
  const wakeAt = new Date(Date.now() + 3_600_000);
  const lost = (message: string) => ({ code: "NO_TRIGGERER", message, until: null });
  const plain = 'No triggerer of queue "default" is alive. Start one with: tradewind triggerer';
  expect((await askDeferred({}))[1]).toEqual(lost(plain));
  expect((await askDeferred({ wakeAt }))[1]).toEqual(lost(plain));
  expect((await askDeferred({ timed: {}, wakeAt, queue: "gpu" }))[1]).toMatchObject({
    code: "NO_TRIGGERER",
    message: expect.stringMatching(/^No triggerer is alive\./),
  });
  const job = await addTriggerer(tw, { facts: { queues: ["default"], capacity: 2, triggers: 1 } });
  expect((await askDeferred({ queue: "gpu" }))[1]).toEqual(
    lost('No triggerer of queue "gpu" is alive. Start one with: tradewind triggerer --queues gpu'),
  );
  expect((await askDeferred({ queue: "it's; rm" }))[1]!.message).toMatch(/--queues 'it'\\''s; rm'$/);
  expect((await askDeferred({ timed: {}, wakeAt, queue: "gpu" })).map(({ code }) => code)).toEqual([
    "DEFERRED",
  ]);
  expect((await askDeferred({}))[1]).toMatchObject({ code: "TRIGGER_UNOWNED" });
  await tw.sql(`UPDATE job SET facts = '{"queues":["default"],"capacity":2,"triggers":2}' WHERE id = $1`, [
    job,
  ]);
  expect((await askDeferred({}))[1]).toEqual({
    code: "TRIGGERER_FULL",
    message: `Every triggerer of queue "default" is full: job ${job} runs 2 of 2. Start another, or give them a larger --capacity.`,
    until: null,
  });
});

test("reports states without a wait", async () => {
  expect(await ask("a", { state: "success" })).toMatchObject([{ code: "FINISHED" }]);
  expect(await ask("a", { state: "running" })).toMatchObject([{ code: "RUNNING" }]);
  expect(await ask("a", { state: "queued" })).toMatchObject([{ code: "EXECUTOR" }]);
  expect(await ask("a", { state: "deferred" })).toMatchObject([{ code: "DEFERRED" }]);
  expect(await ask("a", {})).toMatchObject([{ code: "READY" }]);
  expect(await ask("a", {}, { state: "failed" })).toMatchObject([{ code: "RUN_FINISHED" }]);
});

test("names a paused DAG and a dead scheduler first, also in Airflow's form", async () => {
  await tw.sql("UPDATE dag SET is_paused = true");
  await tw.sql("UPDATE job SET lease_until = now() - interval '1 second'");
  expect((await ask("a", {})).map((reason) => reason.code)).toEqual(["NO_SCHEDULER", "DAG_PAUSED"]);
  const queued = await ask("a", null, { state: "queued" });
  expect(queued.map((reason) => reason.code)).toEqual(["NO_SCHEDULER", "DAG_PAUSED"]);
  expect(queued[1]?.message).toContain("tradewind dags unpause etl");
  const full = await ask("small", { state: "scheduled", pool: "tiny" });
  expect(full.map((reason) => reason.code)).toEqual(["NO_SCHEDULER", "DAG_PAUSED", "POOL_FULL"]);
  const run = await tw.addRun("etl", { runId: "airflow" });
  await tw.addInstance(run, "a");
  const body = (await tw.call("GET", "/dags/etl/dagRuns/airflow/taskInstances/a/dependencies")).json();
  expect(body.dependencies[0]).toEqual({
    name: "NO_SCHEDULER",
    reason: expect.stringContaining("tradewind scheduler"),
  });
  expect((await tw.call("GET", "/dags/etl/dagRuns/airflow/taskInstances/zzz/why")).statusCode).toBe(404);
});

test("reports that live schedulers serve other DAGs, unless a live job owns the run", async () => {
  await tw.sql("UPDATE dag SET is_paused = false");
  await tw.sql("UPDATE job SET lease_until = now() + interval '1 hour', dags = '{other}'");
  const code = async (run: object) => (await ask("a", null, run)).map((reason) => reason.code);
  expect(await ask("a", null, { state: "queued" })).toEqual([
    {
      code: "DAG_UNSERVED",
      message: expect.stringContaining("tradewind scheduler --dags etl"),
      until: null,
    },
  ]);
  await tw.sql("UPDATE job SET dags = '{other,etl}'");
  expect(await code({ state: "queued" })).toEqual(["RUN_QUEUED"]);
  await tw.sql("UPDATE job SET dags = NULL");
  expect(await code({ state: "queued" })).toEqual(["RUN_QUEUED"]);
  await tw.sql(`UPDATE job SET facts = '{"draining":true}'`);
  expect(await code({ state: "queued" })).toEqual(["DAG_UNSERVED"]);
  await tw.sql("UPDATE job SET facts = NULL");
});
