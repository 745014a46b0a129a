import type { Json } from "@tradewind/sdk/manifest";
import { beforeEach, describe, expect, it } from "vitest";
import { seedDag, waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { waitRow } from "../../../test/support/trigger-seed.ts";
import { LONG_LEASE, TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { adhoc } from "../../store/database/database.ts";
import { recordWebhook } from "../../store/trigger/webhooks.ts";
import { checkEngineTrigger } from "./engine-triggers.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  await seedDag(rig.db, "other");
  return () => rig.close();
});

async function seedRun(runId: string, state: string, logicalDate: string | null = null): Promise<number> {
  const row = await rig.db.one<{ id: number }>(
    adhoc(`INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by, logical_date)
           SELECT 'other', $1, 'manual', $2, version_id, 'cli', $3 FROM dag WHERE dag_id = 'other' RETURNING id`),
    [runId, state, logicalDate],
  );
  return row?.id ?? 0;
}

async function seedTask(dagRunId: number, state: string, mapIndex = -1): Promise<void> {
  await rig.db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, map_index, state, pool, pool_slots, queue, priority_weight, operator)
           VALUES ($1, 'load', $3, $2, 'default_pool', 1, 'default', 1, 'task')
           ON CONFLICT (dag_run_id, task_id, map_index) DO UPDATE SET state = EXCLUDED.state`),
    [dagRunId, state, mapIndex],
  );
}

const ring = (name: string, body: Json) =>
  rig.db.transaction((tx) => recordWebhook(tx, { name, sender: "test", value: { body, headers: {} } }));

const runArgs = (facts: object) => ({
  dagId: "other",
  runId: null,
  logicalDate: null,
  states: ["success"],
  ...facts,
});
const taskArgs = (facts: object) => ({
  dagId: "other",
  taskId: "load",
  runId: null,
  logicalDate: null,
  mapIndex: null,
  states: ["success"],
  failedStates: ["failed", "upstream_failed"],
  ...facts,
});

describe("a wait for another run", () => {
  it("fires at once if the run already exists, by its id and by its date", async () => {
    const date = "2026-01-01T00:00:00.000Z";
    await seedRun("r1", "success", date);
    await rig.triggerer({ lease: LONG_LEASE });
    const byId = await rig.wait("tradewind.dagrun", null, { args: runArgs({ runId: "r1" }) });
    const byDate = await rig.wait("tradewind.dagrun", null, { args: runArgs({ logicalDate: date }) });
    const event = { dagId: "other", runId: "r1", logicalDate: date, state: "success" };
    expect(await rig.outcome(byId.attempt)).toEqual({ kind: "event", payload: event });
    expect(await rig.outcome(byDate.attempt)).toEqual({ kind: "event", payload: event });
  });

  it("waits for a run that does not exist yet, logs that, and fires when the run has ended", async () => {
    const { job } = await rig.triggerer({ lease: LONG_LEASE });
    const { attempt } = await rig.wait("tradewind.dagrun", null, { args: runArgs({ runId: "later" }) });
    await rig.until(async () => (await rig.log(attempt)).length > 1, "its log line");
    expect((await rig.log(attempt)).map(({ message }) => message)).toEqual([
      expect.stringMatching(/^Waiting for tradewind.dagrun .*"later"/),
      'There is no run "later" of DAG "other" yet; waiting for it, too.',
    ]);
    const id = await seedRun("later", "running");
    await rig.notify("ended");
    await rig.db.rows(adhoc("UPDATE dag_run SET state = 'success' WHERE id = $1"), [id]);
    await rig.notify("ended");
    expect(await rig.outcome(attempt)).toMatchObject({ payload: { runId: "later", state: "success" } });
    expect(job.size).toBe(0);
  });
});

describe("a wait for another task", () => {
  it.each([
    ["at a wake-up", { lease: LONG_LEASE }, "states"],
    ["at a sweep when the wake-up is lost", {}, null],
  ])("fires when the task has ended although its run has not: %s", async (_, options, topic) => {
    const id = await seedRun("r1", "running");
    await seedTask(id, "running");
    await rig.triggerer(options);
    const { attempt } = await rig.wait("tradewind.externaltask", null, { args: taskArgs({ runId: "r1" }) });
    await rig.until(async () => (await rig.owners())[0] !== null, "a look");
    await seedTask(id, "success");
    if (topic !== null) await rig.notify(topic);
    const payload = { dagId: "other", runId: "r1", taskId: "load", state: "success" };
    expect(await rig.outcome(attempt)).toEqual({ kind: "event", payload });
  });

  it("fails and names the task if the task has failed", async () => {
    const id = await seedRun("r1", "running");
    await seedTask(id, "upstream_failed");
    await rig.triggerer({ lease: LONG_LEASE });
    const { attempt } = await rig.wait("tradewind.externaltask", null, { args: taskArgs({ runId: "r1" }) });
    expect(await rig.outcome(attempt)).toMatchObject({
      kind: "failed",
      error: {
        code: "EXTERNAL_TASK_FAILED",
        message: 'Task "load" of DAG "other" is upstream_failed in run "r1".',
      },
    });
    await rig.until(async () => (await rig.log(attempt)).length > 1, "its last log line");
    expect((await rig.log(attempt)).at(-1)).toMatchObject({
      level: "error",
      message: expect.stringContaining("EXTERNAL_TASK_FAILED"),
    });
  });

  it("waits for all instances of a mapped task, or for one of them if given", async () => {
    const id = await seedRun("r1", "running");
    await seedTask(id, "success", 0);
    await seedTask(id, "running", 1);
    const check = (facts: object) =>
      checkEngineTrigger(
        rig.db,
        { kind: "tradewind.externaltask", args: taskArgs({ runId: "r1", ...facts }) as unknown as Json },
        new Date(),
      );
    expect(await check({ mapIndex: 0 })).toMatchObject({ state: "success" });
    expect(await check({})).toBeUndefined();
    await seedTask(id, "success", 1);
    expect(await check({})).toMatchObject({ state: "success" });
    await seedTask(id, "failed", 0);
    await expect(check({})).rejects.toThrow('Task "load[0]" of DAG "other" is failed');
  });
});

describe("a wait for a webhook", () => {
  it("fires with the first call since it began, or since the given time", async () => {
    const { created_at } = await ring("paid", "before");
    await ring("paid", "just before");
    await rig.triggerer({ lease: LONG_LEASE });
    const fresh = await rig.wait("tradewind.webhook", null, { args: { name: "paid", after: null } });
    const since = await rig.wait("tradewind.webhook", null, {
      args: { name: "paid", after: created_at.toISOString() },
    });
    expect(await rig.outcome(since.attempt)).toMatchObject({ payload: { body: "before" } });
    expect((await waitRow(rig.db, fresh.attempt)).fired_at).toBeNull();
    await ring("paid", { order: 7 });
    await ring("paid", { order: 8 });
    await rig.notify("fired");
    expect(await rig.outcome(fresh.attempt)).toEqual({
      kind: "event",
      payload: { body: { order: 7 }, headers: {} },
      calls: { paid: expect.any(Number) },
    });
  });
});

describe("a joint wait", () => {
  const member = (kind: string, args: object, source: "builtin" | "bundle") => ({
    kind,
    args: args as Json,
    source,
    queue: "default",
    replicas: 1,
    wake: null,
    timed: null,
  });

  it("combines running and observed members in any order", async () => {
    await rig.triggerer({ lease: LONG_LEASE });
    const bundle = await rig.bundle("demo.say", "yield args.say;");
    const members = {
      said: member("demo.say", { say: "hello" }, "bundle"),
      call: member("tradewind.webhook", { name: "paid", after: null }, "builtin"),
    };
    const { attempt } = await rig.wait("tradewind.all", bundle, { args: { members } as unknown as Json });
    await rig.until(async () => (await rig.owners())[0] !== null, "it to run");
    await ring("paid", "now");
    await rig.notify("fired");
    expect(await rig.outcome(attempt)).toEqual({
      kind: "event",
      payload: { said: "hello", call: { body: "now", headers: {} } },
      calls: { paid: expect.any(Number) },
    });
  });

  it("of observed members only needs no runner, and fails with its first failure", async () => {
    const id = await seedRun("r1", "success");
    await seedTask(id, "failed");
    await rig.triggerer({ lease: LONG_LEASE });
    const run = member("tradewind.dagrun", runArgs({ runId: "r1" }), "builtin");
    const task = member("tradewind.externaltask", taskArgs({ runId: "r1" }), "builtin");
    const good = await rig.wait("tradewind.all", null, {
      args: { members: { a: run, b: run } } as unknown as Json,
    });
    const bad = await rig.wait("tradewind.all", null, {
      args: { members: { run, task } } as unknown as Json,
    });
    expect(await rig.outcome(good.attempt)).toMatchObject({
      payload: { a: { runId: "r1" }, b: { runId: "r1" } },
    });
    expect(await rig.outcome(bad.attempt)).toMatchObject({
      kind: "failed",
      error: { code: "EXTERNAL_TASK_FAILED" },
    });
  });
});

describe("invalid arguments", () => {
  const RUN = "tradewind.dagrun";
  const TASK = "tradewind.externaltask";
  const HOOK = "tradewind.webhook";
  const call = (kind: string, args: Json) => ({
    ...{ kind, args, source: "builtin", queue: "default", replicas: 1, wake: null, timed: null },
  });

  it.each([
    [RUN, "an invalid date", runArgs({ logicalDate: "yesterday" })],
    [RUN, "a date out of range", runArgs({ logicalDate: "0000-01-01T00:00:00Z" })],
    [RUN, "a NUL", runArgs({ runId: "a\u0000b" })],
    [RUN, "nothing", null],
    [TASK, "an invalid index", taskArgs({ runId: "r1", mapIndex: 2 ** 40 })],
    [TASK, "no states", { ...taskArgs({ runId: "r1" }), states: null }],
    [HOOK, "an invalid time", { name: "hook", after: "soon" }],
    ["tradewind.all", "an invalid member", { members: { a: null, b: call(RUN, runArgs({ runId: "r1" })) } }],
    ["tradewind.all", "a member's date", { members: { a: call(RUN, runArgs({ logicalDate: "never" })) } }],
  ])("of %s (%s) fail only their own trigger", async (kind, _, args) => {
    await seedRun("r1", "success");
    const broken = await rig.wait(kind, null, { args: args as Json });
    const sound = await rig.wait(RUN, null, { args: runArgs({ runId: "r1" }) });
    const { job } = await rig.triggerer({ lease: LONG_LEASE });
    expect(await rig.outcome(sound.attempt)).toMatchObject({ kind: "event" });
    expect(await rig.outcome(broken.attempt)).toMatchObject({
      kind: "failed",
      error: { code: "TRIGGER_ARGS_INVALID" },
    });
    expect(job.size).toBe(0);
  });

  it("fail a task that polls with them", async () => {
    const asked = checkEngineTrigger(rig.db, { kind: RUN, args: runArgs({ logicalDate: "x" }) }, new Date());
    await expect(asked).rejects.toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
  });

  it("accept every valid spelling", async () => {
    await seedRun("r1", "success", "2026-03-02T00:00:00.000Z");
    await rig.triggerer({ lease: LONG_LEASE });
    const { attempt } = await rig.wait(RUN, null, {
      args: runArgs({ logicalDate: "2026-03-02T01:00:00+01:00" }),
    });
    expect(await rig.outcome(attempt)).toMatchObject({ kind: "event" });
  });
});

it("keeps the findings of a poll that fails half way", async () => {
  await seedTask(await seedRun("r1", "success"), "success");
  const run = await rig.wait("tradewind.dagrun", null, { args: runArgs({ runId: "r1" }) });
  const task = await rig.wait("tradewind.externaltask", null, { args: taskArgs({ runId: "r1" }) });
  let triggerer: Promise<unknown> | undefined;
  await rig.db.transaction(async (tx) => {
    await tx.rows(adhoc("LOCK TABLE task_instance IN ACCESS EXCLUSIVE MODE"));
    triggerer = rig.triggerer({ lease: LONG_LEASE });
    await waitingForLock(rig.db);
    // Longer than the lock timeout of a poll: the next one waits. The logs of triggers read the table, too.
    const waiting = adhoc(
      `SELECT query_start::text AS since FROM pg_stat_activity WHERE datname = current_database()
         AND wait_event_type = 'Lock' AND query LIKE 'SELECT u.id, r.run_id, t.map_index, t.state%'`,
    );
    const polls = new Set<string>();
    await rig.until(async () => {
      for (const { since } of await rig.db.rows<{ since: string }>(waiting)) polls.add(since);
      return polls.size > 1;
    }, "a poll to give up, and the next one to wait");
  });
  await triggerer;
  expect(await rig.outcome(task.attempt)).toMatchObject({ kind: "event" });
  expect(await rig.outcome(run.attempt)).toMatchObject({ kind: "event" });
});
