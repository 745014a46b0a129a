import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { seedTrigger } from "../../../test/support/trigger-seed.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf(
      "sales",
      [
        { taskId: "extract", retries: 2, timeoutMs: 90_000 },
        { taskId: "load", upstream: ["extract"], rule: "oneFailed" },
      ],
      {
        tags: ["daily", "eu"],
        schedule: { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "interval" },
        paramsSchema: {
          type: "object",
          properties: { region: { type: "string", default: "eu" }, day: { type: "string" } },
        },
      },
    ),
    "// the source, version 1",
  );
  await tw.addDag(
    manifestOf(
      "sales",
      [
        { taskId: "extract" },
        {
          taskId: "load",
          upstream: ["extract"],
          rule: "oneFailed",
          retries: 2,
          retryBackoff: 1.5,
          timeoutMs: 90_061_500,
        },
      ],
      {
        tags: ["daily", "eu"],
        schedule: { kind: "cron", expression: "0 2 * * *", timezone: "Europe/Berlin", style: "interval" },
        paramsSchema: {
          type: "object",
          properties: { region: { type: "string", default: "eu" }, day: { type: "string" } },
        },
      },
    ),
    "// the source, version 2",
  );
  await tw.addDag(manifestOf("billing", [{ taskId: "bill" }], { tags: ["daily"], owner: "grace" }));
  await tw.addDag(manifestOf("retired", [{ taskId: "rest" }]));
  await tw.sql("UPDATE dag SET is_stale = true WHERE dag_id = 'retired'");
  await tw.sql("UPDATE dag SET is_paused = true WHERE dag_id = 'billing'");
  await tw.sql("INSERT INTO import_error (file, message) VALUES ('billing.ts', 'SyntaxError: unexpected }')");
  await tw.addRun("sales", {
    runId: "one",
    state: "failed",
    startedAt: new Date("2026-03-01T00:00:00Z"),
    endedAt: new Date("2026-03-01T00:01:00Z"),
  });
});

const ids = async (query: string) =>
  (await tw.call("GET", `/dags${query}`)).json().dags.map((dag: { dag_id: string }) => dag.dag_id);

describe("dags", () => {
  test("lists DAGs with Airflow's fields, without stale ones", async () => {
    const body = (await tw.call("GET", "/dags")).json();
    expect(body.total_entries).toBe(2);
    expect(body.dags[1]).toMatchObject({
      dag_id: "sales",
      description: "About sales",
      is_paused: false,
      is_stale: false,
      timetable_summary: "0 2 * * *",
      owners: ["ada"],
      tags: [
        { name: "daily", dag_id: "sales", dag_display_name: "sales" },
        { name: "eu", dag_id: "sales", dag_display_name: "sales" },
      ],
      relative_fileloc: "sales.ts",
      has_import_errors: false,
      max_active_runs: 16,
    });
  });

  test("lists each DAG with its latest run and the time zone of its schedule", async () => {
    await tw.addRun("sales", {
      runId: "earlier",
      state: "success",
      runAfter: new Date("2026-02-01T00:00:00Z"),
    });
    const [billing, sales] = (await tw.call("GET", "/dags")).json().dags;
    expect(billing).toMatchObject({ last_run: null, timezone: "UTC" });
    expect(sales).toMatchObject({
      timezone: "Europe/Berlin",
      last_run: {
        dag_run_id: "one",
        state: "failed",
        queued_at: expect.any(String),
        start_date: "2026-03-01T00:00:00.000Z",
        end_date: "2026-03-01T00:01:00.000Z",
      },
    });
    await tw.sql("DELETE FROM dag_run WHERE run_id = 'earlier'");
  });

  test.each([
    ["?exclude_stale=false&order_by=-dag_id", ["sales", "retired", "billing"]],
    ["?dag_id_pattern=AL", ["sales"]],
    ["?dag_id_pattern=bill|sal", ["billing", "sales"]],
    ["?dag_id_prefix_pattern=bil", ["billing"]],
    ["?tags=daily", ["billing", "sales"]],
    ["?tags=daily&tags=eu&tags_match_mode=all", ["sales"]],
    ["?owners=grace", ["billing"]],
    ["?paused=true", ["billing"]],
    ["?has_import_errors=true", ["billing"]],
    ["?last_dag_run_state=failed", ["sales"]],
    ["?dag_run_state=success", []],
    [
      "?dag_run_start_date_gte=2026-03-01T00:00:00%2B00:00&dag_run_end_date_lt=2026-03-01T00:02:00",
      ["sales"],
    ],
    ["?limit=1&offset=1", ["sales"]],
  ])("returns for %s: %j", async (query, expected) => {
    expect(await ids(query)).toEqual(expected);
  });

  test("reads a DAG with details", async () => {
    expect((await tw.call("GET", "/dags/sales")).json().dag_id).toBe("sales");
    const details = (await tw.call("GET", "/dags/sales/details")).json();
    expect(details).toMatchObject({
      params: { region: "eu" },
      timezone: "Europe/Berlin",
      active_runs_count: 0,
      latest_dag_version: { version_number: 2 },
    });
    expect((await tw.call("GET", "/dags/nope")).statusCode).toBe(404);
    expect((await tw.call("GET", "/dags/nope/details")).json().detail).toBe('DAG "nope" does not exist');
  });

  test("pauses and unpauses, notifies the scheduler, and writes an audit record", async () => {
    tw.changes.length = 0;
    const paused = await tw.call("PATCH", "/dags/sales?update_mask=is_paused", { is_paused: true });
    expect([paused.statusCode, paused.json().is_paused]).toEqual([200, true]);
    await tw.call("PATCH", "/dags/sales", { is_paused: true });
    expect((await tw.call("PATCH", "/dags/sales", { is_paused: false })).json().is_paused).toBe(false);
    expect(tw.changes).toEqual([
      { kind: "dag_changed", dagIds: ["sales"] },
      { kind: "dag_changed", dagIds: ["sales"] },
    ]);
    const events = (await tw.call("GET", "/eventLogs?dag_id=sales&order_by=-id&limit=2")).json().event_logs;
    expect(events.map((event: { event: string; owner: string }) => [event.event, event.owner])).toEqual([
      ["unpause_dag", "admin"],
      ["pause_dag", "admin"],
    ]);
    expect((await tw.call("PATCH", "/dags/nope", { is_paused: true })).statusCode).toBe(404);
    expect((await tw.call("PATCH", "/dags/sales?update_mask=owner", { is_paused: true })).statusCode).toBe(
      422,
    );
    expect((await tw.call("PATCH", "/dags/sales", { is_paused: "yes" })).statusCode).toBe(422);
  });

  test("pauses DAGs by pattern", async () => {
    const body = (await tw.call("PATCH", "/dags?dag_id_pattern=sal", { is_paused: true })).json();
    expect(body.dags.map((dag: { is_paused: boolean }) => dag.is_paused)).toEqual([true]);
    await tw.call("PATCH", "/dags?dag_id_pattern=sal", { is_paused: false });
  });

  test("deletes a DAG with its history, but not with unfinished runs", async () => {
    await tw.addDag(manifestOf("doomed", [{ taskId: "t" }]));
    const run = await tw.addRun("doomed", { state: "queued" });
    expect((await tw.call("DELETE", "/dags/doomed")).statusCode).toBe(409);
    await tw.sql("UPDATE dag_run SET state = 'success' WHERE id = $1", [run]);
    expect((await tw.call("DELETE", "/dags/doomed")).statusCode).toBe(200);
    expect((await tw.call("DELETE", "/dags/doomed")).statusCode).toBe(404);
    expect(await tw.sql("SELECT 1 FROM dag_run WHERE id = $1", [run])).toEqual([]);
  });

  test("returns statistics and tags", async () => {
    const stats = (await tw.call("GET", "/dagStats?dag_ids=sales")).json();
    expect(stats.dags).toEqual([
      {
        dag_id: "sales",
        dag_display_name: "sales",
        stats: [
          { state: "queued", count: 0 },
          { state: "running", count: 0 },
          { state: "success", count: 0 },
          { state: "failed", count: 1 },
        ],
      },
    ]);
    expect((await tw.call("GET", "/dagTags")).json()).toEqual({ tags: ["daily", "eu"], total_entries: 2 });
  });
});

describe("tasks, versions, sources, import errors", () => {
  test("returns tasks of the current manifest", async () => {
    const body = (await tw.call("GET", "/dags/sales/tasks")).json();
    expect(body.total_entries).toBe(2);
    expect(body.tasks[0]).toMatchObject({
      task_id: "extract",
      downstream_task_ids: ["load"],
      execution_timeout: null,
      // 0 is Airflow's "off": the delay between tries is constant.
      retry_exponential_backoff: 0,
    });
    expect((await tw.call("GET", "/dags/sales/tasks/load")).json()).toMatchObject({
      is_mapped: false,
      trigger_rule: "one_failed",
      upstream_task_ids: ["extract"],
      retries: 2,
      retry_exponential_backoff: 1.5,
      execution_timeout: { __type: "TimeDelta", days: 1, seconds: 3661, microseconds: 500_000 },
    });
    expect((await tw.call("GET", "/dags/sales/tasks/nope")).json().detail).toBe(
      'DAG "sales" has no task "nope"',
    );
    expect((await tw.call("GET", "/dags/nope/tasks")).statusCode).toBe(404);
  });

  test("returns the topological index, groups and role of tasks", async () => {
    await tw.addDag(
      manifestOf(
        "placed",
        [
          { taskId: "a", upstream: ["g.h.z"] },
          {
            taskId: "drop",
            upstream: ["make", "a"],
            role: "teardown",
            teardown: { of: "make", failsRun: false },
          },
          { taskId: "g.h.z", upstream: ["make"], group: "g.h" },
          { taskId: "make", role: "setup", executor: "pods", executorConfig: { image: "a" } },
        ],
        {
          groups: [
            { groupId: "g", parent: null, docs: null },
            { groupId: "g.h", parent: "g", docs: null },
          ],
        },
      ),
    );
    const made = { executor: "pods", executor_config: { image: "a" } };
    const { tasks } = (await tw.call("GET", "/dags/placed/tasks?order_by=topological_index")).json();
    expect(tasks).toMatchObject([
      {
        task_id: "make",
        topological_index: 0,
        role: "setup",
        task_group_path: [],
        teardown_of: null,
        ...made,
      },
      { task_id: "g.h.z", topological_index: 1, role: "work", task_group_path: ["g", "g.h"] },
      { task_id: "a", topological_index: 2, executor: null, executor_config: {} },
      { task_id: "drop", topological_index: 3, role: "teardown", teardown_of: "make" },
    ]);
    await tw.call("DELETE", "/dags/placed");
  });

  test("returns versions, newest first on request", async () => {
    const body = (await tw.call("GET", "/dags/sales/dagVersions?order_by=-version_number")).json();
    expect(body.dag_versions.map((version: { version_number: number }) => version.version_number)).toEqual([
      2, 1,
    ]);
    expect((await tw.call("GET", "/dags/~/dagVersions")).json().total_entries).toBe(4);
    const one = (await tw.call("GET", "/dags/sales/dagVersions/1")).json();
    expect(one).toMatchObject({
      dag_id: "sales",
      version_number: 1,
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
    });
    expect((await tw.call("GET", "/dags/sales/dagVersions/9")).statusCode).toBe(404);
  });

  test("returns the changes between two versions", async () => {
    const diff = (await tw.call("GET", "/dags/sales/dagVersions/diff")).json();
    expect(diff).toMatchObject({
      from: { version_number: 1 },
      to: { version_number: 2 },
      is_same_shape: false,
      options: [],
      tasks: { added: [], removed: [], changed: [{ id: "extract" }, { id: "load" }] },
      source_diff: expect.stringContaining("-// the source, version 1\n"),
    });
    expect((await tw.call("GET", "/dags/sales/dagVersions/diff?from=2&to=2")).json()).toMatchObject({
      is_same_shape: true,
      is_same_code: true,
      source_diff: "",
    });
    expect((await tw.call("GET", "/dags/sales/dagVersions/diff?from=9")).statusCode).toBe(404);
    expect((await tw.call("GET", "/dags/sales/dagVersions/diff?from=x")).statusCode).toBe(422);
  });

  test("returns sources as JSON and as text", async () => {
    expect((await tw.call("GET", "/dagSources/sales")).json()).toMatchObject({
      content: "// the source, version 2",
      version_number: 2,
    });
    const text = await tw.call("GET", "/dagSources/sales?version_number=1", undefined, {
      accept: "text/plain",
    });
    expect([text.headers["content-type"], text.body]).toEqual([
      "text/plain; charset=utf-8",
      "// the source, version 1",
    ]);
    expect((await tw.call("GET", "/dagSources/nope")).statusCode).toBe(404);
  });

  test("import errors", async () => {
    const body = (await tw.call("GET", "/importErrors?filename_pattern=bill")).json();
    expect(body).toMatchObject({
      total_entries: 1,
      import_errors: [{ filename: "billing.ts", stack_trace: "SyntaxError: unexpected }" }],
    });
    const id = body.import_errors[0].import_error_id;
    expect((await tw.call("GET", `/importErrors/${id}`)).json()).toEqual(body.import_errors[0]);
    expect((await tw.call("GET", `/importErrors/${id + 1000}`)).statusCode).toBe(404);
  });
});

describe("monitor", () => {
  test("reports health by leases", async () => {
    const read = async () => (await tw.app.inject("/api/v2/monitor/health")).json();
    expect(await read()).toEqual({
      metadatabase: { status: "healthy" },
      scheduler: {
        status: "unhealthy",
        latest_scheduler_heartbeat: null,
        unserved_dags: [],
        unserved_queues: [],
        failing_executors: [],
      },
      triggerer: {
        status: null,
        latest_triggerer_heartbeat: null,
        triggers: 0,
        capacity: 0,
        full_triggerers: 0,
        unclaimed_triggers: [],
        process_crashes: 0,
        suspected_triggers: 0,
      },
      dag_processor: { status: null, latest_dag_processor_heartbeat: null },
    });
    await tw.addJob("scheduler");
    await tw.addJob("dag_processor", -10);
    expect(await read()).toMatchObject({
      scheduler: { status: "healthy", latest_scheduler_heartbeat: expect.any(String) },
      dag_processor: { status: "unhealthy" },
    });
  });

  test("reports DAGs without a live scheduler in health, and the DAGs of a job", async () => {
    const unserved = async () =>
      (await tw.app.inject("/api/v2/monitor/health")).json().scheduler.unserved_dags as string[];
    const served = "UPDATE job SET dags = $1 WHERE kind = 'scheduler'";
    const open = await tw.sql<{ dag_id: string }>(
      "SELECT dag_id FROM dag WHERE NOT is_paused AND NOT is_stale ORDER BY dag_id",
    );
    const dags = open.map(({ dag_id }) => dag_id);
    expect(await unserved()).toEqual([]);
    await tw.sql(served, [["another"]]);
    expect(await unserved()).toEqual(dags);
    expect(dags).not.toEqual([]);
    expect((await tw.call("GET", "/jobs?job_type=SchedulerJob")).json().jobs).toMatchObject([
      { facts: { dags: ["another"] } },
    ]);
    await tw.sql(served, [dags]);
    expect(await unserved()).toEqual([]);
    await tw.sql(served, [null]);
  });

  test("reports crashes, full triggerers and unclaimed triggers in health", async () => {
    const facts = { triggers: 5, capacity: 5, queues: ["default"], crashes: 3, suspects: 2 };
    await tw.addJob("triggerer");
    await tw.sql("UPDATE job SET facts = $1 WHERE kind = 'triggerer'", [JSON.stringify(facts)]);
    await seedTrigger(tw.database, { queue: "gpu", wakeMs: -60_000 });
    await seedTrigger(tw.database, { queue: "gpu", wakeMs: -60_000 });
    // A new trigger, and one that is not due yet.
    await seedTrigger(tw.database, { queue: "slow" });
    await seedTrigger(tw.database, { queue: "slow", wakeMs: 60_000 });
    expect((await tw.app.inject("/api/v2/monitor/health")).json().triggerer).toMatchObject({
      status: "healthy",
      triggers: 5,
      capacity: 5,
      full_triggerers: 1,
      unclaimed_triggers: [{ queue: "gpu", triggers: 2 }],
      process_crashes: 3,
      suspected_triggers: 2,
    });
    await tw.sql("DELETE FROM trigger");
    await tw.sql("DELETE FROM job WHERE kind = 'triggerer'");
  });

  test("jobs", async () => {
    expect((await tw.call("GET", "/jobs?job_type=SchedulerJob&is_alive=true")).json()).toMatchObject({
      total_entries: 1,
      jobs: [{ job_type: "SchedulerJob", hostname: "host-1", state: "running" }],
    });
    expect((await tw.call("GET", "/jobs?is_alive=false")).json().total_entries).toBe(1);
  });

  test("version", async () => {
    expect((await tw.app.inject("/api/v2/version")).json()).toEqual({
      version: "0.1.0-test",
      git_version: null,
    });
  });

  test("filters and reads event logs", async () => {
    const body = (
      await tw.call("GET", "/eventLogs?included_events=pause_dag&included_events=unpause_dag")
    ).json();
    expect(body.total_entries).toBeGreaterThan(0);
    const [event] = body.event_logs;
    expect((await tw.call("GET", `/eventLogs/${event.event_log_id}`)).json()).toEqual(event);
    expect(
      (await tw.call("GET", "/eventLogs?excluded_events=pause_dag&event=pause_dag")).json().total_entries,
    ).toBe(0);
    expect((await tw.call("GET", "/eventLogs/999999")).statusCode).toBe(404);
  });
});
