/** Fields of a single run that lists leave out: owner, progress and used slots. */
import { randomUUID } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let run: number;

beforeEach(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("daily", [{ taskId: "a" }, { taskId: "b" }, { taskId: "c" }]));
  run = await tw.addRun("daily", { runId: "r1", state: "running" });
});

const read = async () => (await tw.call("GET", "/dags/daily/dagRuns/r1")).json();

test("has no percentage without tasks, and no lock without an owner", async () => {
  expect(await read()).toMatchObject({
    lock: null,
    progress: { total: 0, finished: 0, percent: null, by_state: {} },
    slot_seconds: { running: 0, occupied: 0, deferred: 0 },
  });
  const [listed] = (await tw.call("GET", "/dags/daily/dagRuns")).json().dag_runs;
  for (const name of ["lock", "progress", "slot_seconds"]) expect(listed).not.toHaveProperty(name);
});

test("counts ended tasks in the progress", async () => {
  await tw.addInstance(run, "a", { state: "success" });
  await tw.addInstance(run, "b", { state: "upstream_failed" });
  await tw.addInstance(run, "c", { state: "up_for_retry" });
  expect((await read()).progress).toEqual({
    total: 3,
    finished: 2,
    percent: 66,
    by_state: { success: 1, up_for_retry: 1, upstream_failed: 1 },
  });
});

test("shows the owner, its generation and the start of the ownership", async () => {
  await tw.addJob("scheduler");
  const [job] = await tw.sql<{ id: number; hostname: string; pid: number }>(
    "SELECT id, hostname, pid FROM job",
  );
  const { id: job_id, hostname, pid } = job!;
  await tw.sql(
    "UPDATE dag_run SET owner_job = $2, generation = 7, owned_since = '2026-01-01T00:00:00Z' WHERE id = $1",
    [run, job_id],
  );
  expect((await read()).lock).toEqual({
    ...{ job_id, kind: "scheduler", hostname, pid },
    ...{ generation: 7, since: "2026-01-01T00:00:00.000Z" },
  });
});

test("adds up slot seconds of all attempts once, and of waits separately", async () => {
  await tw.addInstance(run, "a", { state: "success" });
  const [first, second] = [randomUUID(), randomUUID()];
  // The first attempt was queued at 0:00, ran from 0:01 to 0:03 and deferred for a minute; the second ran from 1:05 to 1:09.
  await tw.sql(
    `UPDATE task_instance SET attempt = $2, pool_slots = 3, started_at = '2026-01-01T00:00:01Z',
       queued_at = '2026-01-01T00:01:04Z', attempt_started_at = '2026-01-01T00:01:05Z', ended_at = '2026-01-01T00:01:09Z'
     WHERE dag_run_id = $1`,
    [run, second],
  );
  await tw.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, queued_at, started_at, ended_at)
     VALUES ($2, $1, 'a', -1, 1, 'deferred', '2026-01-01T00:00:00Z', '2026-01-01T00:00:01Z', '2026-01-01T00:00:03Z')`,
    [run, first],
  );
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, kind, kwargs, on_timeout, on_failure,
                           deferred_at, ended_at, end_kind)
     VALUES ($2, $1, 'a', -1, 1, 1, 'time', '{}', 'fail', 'fail', '2026-01-01T00:00:03Z', '2026-01-01T00:01:03Z', 'resumed')`,
    [run, first],
  );
  const expected = { running: 2 + 4, occupied: 3 * (3 + 5), deferred: 60 };
  expect((await read()).slot_seconds).toEqual(expected);
  // An edit that ends the run also records the current attempt: it counts once.
  await tw.sql(
    `INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, queued_at, started_at, ended_at)
     SELECT attempt, dag_run_id, task_id, map_index, 2, state, queued_at, attempt_started_at, ended_at FROM task_instance`,
  );
  expect((await read()).slot_seconds).toEqual(expected);
  // A task that consists of its trigger: it began with a wait that ended it. No process ran.
  await tw.addInstance(run, "sensor", { state: "success" });
  const wait = randomUUID();
  await tw.sql(
    `UPDATE task_instance SET attempt = $2, started_at = '2026-01-01T00:00:00Z', ended_at = '2026-01-01T00:00:30Z'
     WHERE dag_run_id = $1 AND task_id = 'sensor'`,
    [run, wait],
  );
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, kind, kwargs, on_timeout, on_failure,
                           deferred_at, ended_at, end_kind)
     VALUES ($2, $1, 'sensor', -1, 1, 1, 'time', '{}', 'fail', 'fail', '2026-01-01T00:00:00Z', '2026-01-01T00:00:30Z', 'finished')`,
    [run, wait],
  );
  expect((await read()).slot_seconds).toEqual({ ...expected, deferred: 90 });
});
