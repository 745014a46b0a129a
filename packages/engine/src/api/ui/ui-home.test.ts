/** The first page of the web UI: what is wrong now, and the runs of the last hours. */
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

const NOW = Date.now();
const at = (minutes: number) => new Date(NOW - minutes * 60_000);

beforeAll(async () => {
  tw = await Installation.open();
  for (const dagId of ["steady", "failing", "waiting", "quiet"])
    await tw.addDag(manifestOf(dagId, [{ taskId: "a" }]));
  for (let run = 0; run < 6; run++)
    await tw.addRun("steady", {
      runId: `s${run}`,
      state: "success",
      runAfter: at(60 * run + 30),
      startedAt: at(60 * run + 30),
      endedAt: at(60 * run + 25),
    });
  await tw.addRun("steady", {
    runId: "yesterday",
    state: "success",
    runAfter: at(60 * 30),
    endedAt: at(60 * 30),
  });
  const failed = await tw.addRun("failing", {
    runId: "bad",
    state: "failed",
    runAfter: at(20),
    startedAt: at(20),
    endedAt: at(10),
  });
  await tw.addInstance(failed, "a", { state: "failed", tryNumber: 2, endedAt: at(10) });
  await tw.sql("UPDATE task_instance SET reason = 'boom' WHERE dag_run_id = $1", [failed]);
  const waits = await tw.addRun("waiting", {
    runId: "w",
    state: "running",
    runAfter: at(5),
    startedAt: at(5),
  });
  const [trigger] = await tw.sql<{ id: number }>(
    "INSERT INTO trigger (fingerprint, kind, args, queue, replicas, wake_at) VALUES ('\\x01', 'tradewind.time', '{}', 'default', 1, now()) RETURNING id",
  );
  await tw.sql(
    `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, kwargs, on_timeout, on_failure, deferred_at)
     VALUES (gen_random_uuid(), $1, 'a', -1, 1, $2, $2, 'tradewind.time', '{}', 'fail', 'fail', $3)`,
    [waits, trigger!.id, at(4)],
  );
  await tw.addRun("waiting", { runId: "late", state: "queued", runAfter: at(3) });
  await tw.addJob("scheduler");
  await tw.addJob("triggerer", -30);
  await tw.sql("UPDATE job SET heartbeat_at = now() - interval '48 seconds' WHERE kind = 'triggerer'");
  await tw.sql("INSERT INTO import_error (file, message) VALUES ('vat.ts', $1)", [
    "No matching export\nat line 7",
  ]);
  await tw.sql(
    `INSERT INTO backfill (dag_id, schedule, from_date, to_date, reprocess, is_reverse, max_active, stop_on_failure, total_runs, next_ordinal)
     VALUES ('quiet', '{}', $1, $2, 'none', false, 4, false, 10, 3)`,
    [at(1000), at(0)],
  );
  await tw.sql(
    "INSERT INTO dag_run (dag_id, run_id, run_type, state, version_id, triggered_by, backfill_id) SELECT 'quiet', 'b1', 'backfill', 'running', version_id, 'backfill', (SELECT id FROM backfill) FROM dag WHERE dag_id = 'quiet'",
  );
  await tw.sql("UPDATE pool SET occupied = 64 WHERE name = 'default_pool'");
});

const home = async (query = "") => (await tw.call("GET", `/ui/home${query}`)).json();

it("counts what fails, is late, runs, is queued and waits", async () => {
  const { counts, errors } = await home();
  expect(counts).toEqual({
    failing: { dags: 1, latest: at(10).toISOString() },
    late: { dags: 1, oldest: at(3).toISOString() },
    running: { count: 2, more: false, dags: 2, oldest: at(5).toISOString() },
    queued: { count: 1, more: false, dags: 1, oldest: expect.any(String) },
    waiting: { count: 1, more: false, dags: 0, oldest: at(4).toISOString() },
  });
  expect(errors).toEqual({ import_errors: 1, dead_letters: 0, dead_deliveries: 0 });
});

it("shows components with the age of their heartbeat, import errors, backfills and pools", async () => {
  const shown = await home();
  expect(shown.components).toMatchObject([
    { kind: "scheduler", hostname: "host-1", is_alive: true },
    { kind: "triggerer", is_alive: false },
  ]);
  expect(shown.components[1].heartbeat_age).toBeGreaterThanOrEqual(48);
  expect(shown.import_errors).toMatchObject([{ file: "vat.ts", message: "No matching export" }]);
  expect(shown.backfills).toMatchObject([
    { dag_id: "quiet", state: "running", total_runs: 10, handled: 3, running: 1, queued: 0, failed: 0 },
  ]);
  expect(shown.pools).toEqual([{ name: "default_pool", slots: 128, occupied: 64 }]);
  expect(shown.database.latency_ms).toBeGreaterThan(0);
});

it("shows a dead component until another one of its kind has replaced it", async () => {
  const shown = async () =>
    (await home()).components
      .filter(({ kind }: { kind: string }) => kind === "dag_processor")
      .map(({ pid, is_alive }: { pid: number; is_alive: boolean }) => [pid, is_alive]);
  const add = (pid: number, state: string, heartbeat: string, started: string) =>
    tw.sql(
      `INSERT INTO job (kind, hostname, pid, version, state, started_at, heartbeat_at, lease_until, ended_at)
       VALUES ('dag_processor', 'host-1', $1, '0.1.0', $2, now() - $3::interval, now() - $4::interval,
               now() - $4::interval + interval '10 s', CASE WHEN $2 = 'dead' THEN now() END)`,
      [pid, state, started, heartbeat],
    );
  await add(1, "dead", "5 min", "1 h");
  await add(2, "running", "4 min", "1 h"); // Not yet declared dead.
  expect(await shown()).toEqual([
    [1, false],
    [2, false],
  ]);
  await add(3, "running", "1 s", "2 min");
  expect(await shown()).toEqual([
    [1, false],
    [3, true],
  ]);
  await add(4, "running", "1 s", "1 min");
  expect(await shown()).toEqual([
    [3, true],
    [4, true],
  ]);
});

it("names the failed task of failing DAGs, and why others are late", async () => {
  const shown = await home();
  expect(shown.failing).toEqual([
    {
      ...{ dag_id: "failing", run_id: "bad", failed_at: at(10).toISOString() },
      task: { task_id: "a", map_index: -1, try_number: 2, reason: "boom", failed_instances: 1 },
    },
  ]);
  expect(shown.late).toEqual([
    { dag_id: "waiting", run_id: "late", since: at(3).toISOString(), because: "not_started" },
  ]);
});

it("shows the last hours: failing DAGs first, then late ones, then those with the most runs", async () => {
  const { timeline } = await home("?hours=24");
  expect(timeline.is_partial).toBe(false);
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  expect([timeline.slices.success.length, sum(timeline.slices.success), sum(timeline.slices.failed)]).toEqual(
    [144, 6, 1],
  );
  expect(
    timeline.dags.map((dag: { dag_id: string; runs: number; failed: number }) => [
      dag.dag_id,
      dag.runs,
      dag.failed,
    ]),
  ).toEqual([
    ["failing", 1, 1],
    ["waiting", 0, 0],
    ["steady", 6, 0],
    ["quiet", 0, 0],
  ]);
  const steady = timeline.dags[2];
  expect(steady.bars.run_ids).toEqual(["s5", "s4", "s3", "s2", "s1", "s0"]);
  const hour = (await home("?hours=1&dags=3")).timeline;
  expect(hour.dags.map((dag: { dag_id: string; runs: number }) => [dag.dag_id, dag.runs])).toEqual([
    ["failing", 1],
    ["waiting", 0],
    ["steady", 1],
  ]);
});
