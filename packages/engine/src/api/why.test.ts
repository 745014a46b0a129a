import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../test/api/installation.ts";

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

test("waits for upstream, by its rule", async () => {
  expect(await ask("b", {}, {}, { a: "running" })).toEqual([
    { code: "UPSTREAM", message: "Its rule allSuccess waits for upstream tasks: a is running.", until: null },
  ]);
});

test("waits for its retry delay", async () => {
  const retryAt = new Date(Date.now() + 60_000);
  expect(await ask("a", { state: "up_for_retry", tryNumber: 1, retryAt })).toMatchObject([
    { code: "RETRY_DELAY", until: retryAt.toISOString() },
  ]);
});

test("waits for a pool, with the numbers; a pool that is not there is named", async () => {
  expect(await ask("small", { state: "scheduled", pool: "tiny" })).toMatchObject([
    { code: "POOL_FULL", message: 'Pool "tiny" is full: 2 of 2 slots are taken, it needs 1.' },
  ]);
  expect(await ask("lost", { state: "scheduled", pool: "no_such" })).toMatchObject([
    { code: "POOL_MISSING" },
  ]);
});

test("waits for the limits of its run and of its task over all runs", async () => {
  expect(
    await ask("small", { state: "scheduled" }, {}, { a: "running", b: "queued", past: "running" }),
  ).toMatchObject([{ code: "MAX_ACTIVE_TASKS", message: "3 of at most 3 tasks of this run are active." }]);
  expect(await ask("a", { state: "scheduled", limitKey: "@etl/a" })).toMatchObject([
    { code: "MAX_ACTIVE_PER_DAG" },
  ]);
});

test("waits for itself in the run before", async () => {
  const before = await tw.addRun("etl", {
    runId: "before",
    state: "failed",
    logicalDate: new Date("2026-01-01T00:00:00Z"),
  });
  await tw.addInstance(before, "past", { state: "failed" });
  expect(await ask("past", {}, { logicalDate: new Date("2026-01-02T00:00:00Z") })).toMatchObject([
    { code: "DEPENDS_ON_PAST", message: expect.stringContaining('"before": past is failed') },
  ]);
});

test("waits for its run: not due, too many, or just queued", async () => {
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

test("says what is no wait at all", async () => {
  expect(await ask("a", { state: "success" })).toMatchObject([{ code: "FINISHED" }]);
  expect(await ask("a", { state: "running" })).toMatchObject([{ code: "RUNNING" }]);
  expect(await ask("a", { state: "queued" })).toMatchObject([{ code: "EXECUTOR" }]);
  expect(await ask("a", { state: "deferred" })).toMatchObject([{ code: "DEFERRED" }]);
  expect(await ask("a", {})).toMatchObject([{ code: "READY" }]);
  expect(await ask("a", {}, { state: "failed" })).toMatchObject([{ code: "RUN_FINISHED" }]);
});

test("names a paused DAG and a dead scheduler before anything else; Airflow's form of it", async () => {
  await tw.sql("UPDATE dag SET is_paused = true");
  await tw.sql("UPDATE job SET lease_until = now() - interval '1 second'");
  expect((await ask("a", {})).map((reason) => reason.code)).toEqual(["NO_SCHEDULER", "DAG_PAUSED", "READY"]);
  const run = await tw.addRun("etl", { runId: "airflow" });
  await tw.addInstance(run, "a");
  const body = (await tw.call("GET", "/dags/etl/dagRuns/airflow/taskInstances/a/dependencies")).json();
  expect(body.dependencies[0]).toEqual({
    name: "NO_SCHEDULER",
    reason: expect.stringContaining("tradewind scheduler"),
  });
  expect((await tw.call("GET", "/dags/etl/dagRuns/airflow/taskInstances/zzz/why")).statusCode).toBe(404);
});
