import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { seedTrigger, seedWait } from "../../../test/support/trigger-seed.ts";
import { TriggererRig } from "../../../test/support/triggerer-rig.ts";
import { TryLogReader } from "../../api/task/log-files.ts";
import { LogFolder } from "../../log/log-folder.ts";
import { SecretMask } from "../../secret/mask.ts";
import { silentLogger } from "../../service/logger.ts";
import { adhoc } from "../../store/database/database.ts";
import type { TaskInstanceRow } from "../../store/list/task-instances.ts";
import { fireTriggers } from "../../store/trigger/trigger-fire.ts";
import { TriggerLog } from "./trigger-log.ts";

let rig: TriggererRig;
beforeEach(async () => {
  rig = await TriggererRig.open();
  return () => rig.close();
});

function open(
  options: { mask?: SecretMask; maxOpenFiles?: number; announceAfterMs?: number } = {},
): TriggerLog {
  return new TriggerLog({
    database: rig.db,
    logs: new LogFolder(join(rig.root, "logs")),
    mask: new SecretMask(),
    logger: silentLogger,
    announceAfterMs: 60_000,
    ...options,
  });
}

const texts = async (attempt: string) => (await rig.log(attempt)).map(({ message }) => message);

it("begins with the trigger and the end of the wait, masks secrets, and ends with the outcome", async () => {
  const mask = new SecretMask();
  mask.add("hunter2-secret");
  const log = open({ mask });
  const args = { path: "/in/hunter2-secret" };
  const id = await seedTrigger(rig.db, { kind: "demo.file", args });
  const attempt = await seedWait(rig.db, { runId: rig.runId, triggerId: id });
  await rig.db.rows(adhoc("UPDATE deferral SET timeout_at = '2030-01-01T00:00Z'"));
  log.watch({ id, kind: "demo.file", args });
  log.line(id, "warn", "asked with hunter2-secret", { n: 1, key: "hunter2-secret" });
  await rig.until(async () => (await texts(attempt)).length === 2, "the first lines, while it waits");
  log.ended(id, [wait(attempt)], { level: "error", message: "The trigger failed: no hunter2-secret" });
  await log.close();
  expect(await rig.log(attempt)).toMatchObject([
    {
      level: "info",
      source: "engine",
      message: `Waiting for demo.file {"path":"/in/***"}, until 2030-01-01T00:00:00.000Z at the latest (trigger ${id}).`,
    },
    { level: "warn", source: "task", message: "asked with ***", fields: { n: 1, key: "***" } },
    { level: "error", source: "engine", message: "The trigger failed: no ***" },
  ]);
  const row = { dag_id: "dag", dag_run_id: rig.runId, task_id: "t0", map_index: -1 } as TaskInstanceRow;
  const read = await new TryLogReader(new LogFolder(join(rig.root, "logs")), row, 1).read(0, 100_000);
  expect(read.lines).toHaveLength(3);
});

it("begins with the timeout of the task if that ends the wait earlier", async () => {
  const log = open();
  const id = await seedTrigger(rig.db);
  const attempt = await seedWait(rig.db, { runId: rig.runId, triggerId: id });
  await rig.db.rows(adhoc("UPDATE deferral SET timeout_at = '2030-01-08T00:00Z'"));
  await rig.db.rows(
    adhoc(`INSERT INTO task_instance (dag_run_id, task_id, map_index, state, try_number, pool, pool_slots, queue,
                                      priority_weight, operator, started_at)
           VALUES ($1, 't0', -1, 'deferred', 1, 'default_pool', 1, 'default', 1, 'task', '2030-01-01T00:00Z')`),
    [rig.runId],
  );
  await rig.db.rows(
    adhoc("UPDATE dag_version SET manifest = jsonb_set(manifest, '{tasks,0,timeoutMs}', '600000')"),
  );
  log.watch({ id, kind: "demo.busy", args: {} });
  log.line(id, "info", "first");
  await rig.until(async () => (await texts(attempt)).length === 2, "the first lines");
  await log.close();
  expect((await texts(attempt))[0]).toContain("until 2030-01-01T00:10:00.000Z at the latest");
});

it("is ordered by time, and includes lines from just after the end", async () => {
  const log = open();
  const id = await seedTrigger(rig.db);
  const attempt = await seedWait(rig.db, { runId: rig.runId, triggerId: id });
  log.watch({ id, kind: "demo.busy", args: {} });
  log.line(id, "info", "first");
  log.engine(id, "info", "second");
  await rig.until(async () => (await texts(attempt)).length === 3, "the first lines");
  log.ended(id, [wait(attempt)], { level: "info", message: "The trigger fired: 1" });
  log.engine(id, "warn", "The trigger blocked all others for 700 ms");
  log.engine(id + 1, "warn", "without waiters");
  await log.close();
  expect((await texts(attempt)).slice(1)).toEqual([
    ...["first", "second", "The trigger fired: 1"],
    "The trigger blocked all others for 700 ms",
  ]);
  const times = (await rig.log(attempt)).map(({ t }) => t);
  expect(times).toEqual([...times].sort());
});

it("is complete after close, including lines added during a write", async () => {
  const log = open();
  const seeded = [];
  for (const taskId of ["t0", "t1", "t2"]) {
    const id = await seedTrigger(rig.db, { kind: `demo.${taskId}` });
    seeded.push({ id, attempt: await seedWait(rig.db, { runId: rig.runId, triggerId: id, taskId }) });
    log.watch({ id, kind: `demo.${taskId}`, args: {} });
  }
  const [first, second, third] = seeded;
  log.ended(first!.id, [wait(first!.attempt)], { level: "info", message: "first" });
  log.ended(second!.id, [{ ...wait(second!.attempt), task_id: "t1" }], { level: "info", message: "second" });
  log.line(third!.id, "info", "third");
  await log.close();
  const ends = await Promise.all(seeded.map(async ({ attempt }) => (await texts(attempt)).at(-1)));
  expect(ends).toEqual(["first", "second", "third"]);
});

it("announces a silent trigger", async () => {
  const log = open({ announceAfterMs: 1 });
  const id = await seedTrigger(rig.db);
  const attempt = await seedWait(rig.db, { runId: rig.runId, triggerId: id });
  log.watch({ id, kind: "demo.silent", args: {} });
  await rig.until(async () => (await texts(attempt)).length === 1, "the announcement");
  await log.close();
  expect(await texts(attempt)).toEqual([`Waiting for demo.silent {} (trigger ${id}).`]);
});

it("writes a shared trigger's lines to 50 logs, refers the others to one of those, and keeps few files open", async () => {
  const log = open({ maxOpenFiles: 8, announceAfterMs: 1 });
  const id = await seedTrigger(rig.db, { ownerJob: undefined });
  const attempts: string[] = [];
  for (let n = 0; n < 60; n++)
    attempts.push(await seedWait(rig.db, { runId: rig.runId, triggerId: id, taskId: `t${n}` }));
  await rig.db.rows(
    adhoc("UPDATE deferral SET deferred_at = now() + substr(task_id, 2)::int * interval '1 second'"),
  );
  log.watch({ id, kind: "demo.shared", args: {} });
  await rig.until(async () => (await texts(attempts[59] ?? "")).length === 1, "the last log");
  const fds = async () => (await readdir("/proc/self/fd")).length;
  const openNow = await fds();
  log.line(id, "info", "first");
  log.line(id, "info", "second");
  await rig.until(async () => (await texts(attempts[49] ?? "")).length === 3, "the lines");
  expect(await fds()).toBeLessThanOrEqual(openNow + 8);
  const job = await rig.triggerer();
  await rig.db.rows(adhoc("UPDATE trigger SET owner_job = $1"), [job.job.jobId]);
  const { fired } = await fireTriggers(rig.db, job.job.jobId, [
    { id, outcome: { kind: "event", payload: 1 } },
  ]);
  log.ended(id, fired.get(id) ?? [], { level: "info", message: "The trigger fired: 1" });
  await log.close();
  expect(await texts(attempts[0] ?? "")).toEqual([
    `Waiting for demo.shared {} (trigger ${id}).`,
    "first",
    "second",
    "The trigger fired: 1",
  ]);
  const heard = await Promise.all(attempts.map(async (attempt) => (await texts(attempt)).includes("second")));
  expect(heard).toEqual(attempts.map((_, n) => n < 50));
  expect(await texts(attempts[59] ?? "")).toEqual([
    `Waiting for demo.shared {} (trigger ${id}). Many tasks wait for it: its output is in the log of task "t0" of DAG "dag", run ${rig.runId}.`,
  ]);
});

it("streams the lines of a running trigger to the task's log", async () => {
  await rig.triggerer();
  const body = `host.log("info", "looking", { n: 1 }); await new Promise(() => {});`;
  const { attempt } = await rig.wait("demo.talk", await rig.bundle("demo.talk", body));
  await rig.until(async () => (await texts(attempt)).includes("looking"), "the line");
  expect(
    await readFile(
      join(rig.root, "logs", "dag", `${rig.runId}`, "t0", "-1", `1-${attempt}.trigger.log`),
      "utf8",
    ),
  ).toContain('"fields":{"n":1}');
});

it("reports once that a trigger has blocked all others, with a one-line reason", async () => {
  await rig.triggerer();
  const body = "await null; for (;;);";
  const { attempt } = await rig.wait("demo.hang", await rig.bundle("demo.hang", body));
  const { error } = (await rig.outcome(attempt)) as { error: { message: string; code: string } };
  expect(error).toMatchObject({ code: "TRIGGER_BLOCKED", message: expect.not.stringContaining("\n") });
  await rig.until(
    async () => (await texts(attempt)).some((text) => text.includes("failed")),
    "the last word",
  );
  const frames = (await texts(attempt)).filter((text) => /^ {4}at run \(/.test(text));
  expect(frames).toHaveLength(1);
});

function wait(attempt: string) {
  return { attempt, dag_run_id: rig.runId, task_id: "t0", map_index: -1, try_number: 1 };
}
