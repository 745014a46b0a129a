import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let run: number;
const BASE = "/dags/etl/dagRuns/r1/taskInstances";

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf("etl", [
      { taskId: "a" },
      { taskId: "b", upstream: ["a"] },
      { taskId: "c", upstream: ["b"] },
      { taskId: "group.d" },
    ]),
  );
  run = await tw.addRun("etl", {
    runId: "r1",
    state: "running",
    logicalDate: new Date("2026-01-01T00:00:00Z"),
  });
  const started = new Date("2026-01-02T00:00:00Z");
  await tw.addInstance(run, "a", {
    state: "success",
    tryNumber: 2,
    maxTries: 2,
    attempt: randomUUID(),
    startedAt: started,
    endedAt: new Date(started.getTime() + 2500),
  });
  await tw.addInstance(run, "b", { state: "failed", tryNumber: 1 });
  await tw.addInstance(run, "c", { state: "upstream_failed" });
  await tw.addInstance(run, "group.d");
  await tw.addInstance(run, "a", { mapIndex: 0, state: "success", tryNumber: 1 });
  await tw.sql(
    "INSERT INTO task_attempt (attempt, dag_run_id, task_id, map_index, try_number, state, reason, ended_at) VALUES ($1, $2, 'a', -1, 1, 'failed', 'boom', now())",
    [randomUUID(), run],
  );
});

const found = async (path: string) =>
  (await tw.call("GET", path))
    .json()
    .task_instances.map(
      (each: { task_id: string; map_index: number }) => `${each.task_id}[${each.map_index}]`,
    );

describe("reading task instances", () => {
  test("names the failed task at the start of the chain for a task that did not run", async () => {
    const failedUpstream = { task_id: "b", map_index: -1, rendered_map_index: null };
    expect((await tw.call("GET", `${BASE}/c`)).json()).toMatchObject({ failed_upstream: failedUpstream });
    expect((await tw.call("GET", `${BASE}/b`)).json()).toMatchObject({ failed_upstream: null });
    const all = (await tw.call("GET", "/dags/~/dagRuns/~/taskInstances?state=upstream_failed")).json();
    expect(all.task_instances).toMatchObject([{ task_id: "c", failed_upstream: failedUpstream }]);
  });

  test("lists one run in topological order, page by page", async () => {
    await tw.addDag(
      manifestOf("order", [
        { taskId: "a", upstream: ["z"] },
        { taskId: "m", upstream: ["a"] },
        { taskId: "z" },
      ]),
    );
    const ordered = await tw.addRun("order", { runId: "r", state: "success" });
    for (const taskId of ["a", "left_behind", "m", "z"]) await tw.addInstance(ordered, taskId);
    const list = "/dags/order/dagRuns/r/taskInstances?order_by=topological_index";
    expect(await found(list)).toEqual(["z[-1]", "a[-1]", "m[-1]", "left_behind[-1]"]);
    expect(await found(`${list}&limit=2&offset=1`)).toEqual(["a[-1]", "m[-1]"]);
    const first = (await tw.call("GET", `${list}&limit=3&cursor=`)).json();
    expect(await found(`${list}&limit=3&cursor=${first.next_cursor}`)).toEqual(["left_behind[-1]"]);
    const refused = await tw.call("GET", "/dags/order/dagRuns/~/taskInstances?order_by=topological_index");
    expect(refused.statusCode).toBe(422);
    expect(refused.body).toContain("orders the tasks of one run");
    await tw.sql("DELETE FROM dag_run WHERE dag_id = 'order'");
    await tw.call("DELETE", "/dags/order");
  });

  test("returns an instance with Airflow's fields and without its attempt token", async () => {
    const response = await tw.call("GET", `${BASE}/a`);
    expect(response.json()).toMatchObject({
      id: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
      task_id: "a",
      dag_id: "etl",
      dag_run_id: "r1",
      map_index: -1,
      state: "success",
      try_number: 2,
      duration: 2.5,
      pool: "default_pool",
      dag_version: { version_number: 1 },
    });
    const [{ attempt }] = (await tw.sql<{ attempt: string }>(
      "SELECT attempt FROM task_instance WHERE attempt IS NOT NULL",
    )) as [{ attempt: string }];
    expect(response.body).not.toContain(attempt);
    expect((await tw.call("GET", `${BASE}/group.d`)).json().state).toBeNull();
    expect((await tw.call("GET", `${BASE}/a/0`)).json()).toMatchObject({
      map_index: 0,
      rendered_map_index: "0",
    });
    expect((await tw.call("GET", `${BASE}/a/7`)).statusCode).toBe(404);
    expect((await tw.call("GET", `${BASE}/zzz`)).json().detail).toContain(
      'Task "zzz" of run "r1" of DAG "etl"',
    );
  });

  test.each([
    [`${BASE}?order_by=task_id&order_by=-map_index`, ["a[0]", "a[-1]", "b[-1]", "c[-1]", "group.d[-1]"]],
    [`${BASE}?state=failed&state=upstream_failed`, ["b[-1]", "c[-1]"]],
    [`${BASE}?state=none`, ["group.d[-1]"]],
    [`${BASE}?task_id=a&map_index=0`, ["a[0]"]],
    [`${BASE}?task_group_id=group`, ["group.d[-1]"]],
    [`${BASE}?duration_gte=2`, ["a[-1]"]],
    [`${BASE}?try_number=2`, ["a[-1]"]],
    [`${BASE}?pool=none_such`, []],
    ["/dags/~/dagRuns/~/taskInstances?state=failed&logical_date_gte=2026-01-01", ["b[-1]"]],
    [`${BASE}/a/listMapped`, ["a[-1]", "a[0]"]],
  ])("returns for %s: %j", async (path, expected) => {
    expect(await found(path)).toEqual(expected);
  });

  test("accepts the batch form", async () => {
    const body = {
      dag_ids: ["etl"],
      task_ids: ["a", "group.d"],
      state: [null, "success"],
      order_by: "task_id",
    };
    const answer = (await tw.call("POST", "/dags/~/dagRuns/~/taskInstances/list", body)).json();
    expect(answer.total_entries).toBe(3);
    expect((await tw.call("GET", "/dags/etl/dagRuns/nope/taskInstances")).statusCode).toBe(404);
  });

  test("returns recorded tries and the current one", async () => {
    const body = (await tw.call("GET", `${BASE}/a/tries`)).json();
    expect(
      body.task_instances.map((each: { try_number: number; state: string; reason: string | null }) => [
        each.try_number,
        each.state,
        each.reason,
      ]),
    ).toEqual([
      [1, "failed", "boom"],
      [2, "success", null],
    ]);
    expect((await tw.call("GET", `${BASE}/a/tries/1`)).json().state).toBe("failed");
    expect((await tw.call("GET", `${BASE}/a/0/tries/1`)).json().state).toBe("success");
    expect((await tw.call("GET", `${BASE}/a/tries/3`)).statusCode).toBe(404);
    expect((await tw.call("GET", `${BASE}/group.d/tries`)).json().total_entries).toBe(0);
  });
});

describe("outputs", () => {
  test("lists and shows outputs as stored JSON", async () => {
    const values: Record<string, unknown> = {
      return_value: { rows: [1, 2], text: "ä" },
      nothing: null,
      word: "w",
    };
    for (const [key, value] of Object.entries(values)) {
      await tw.sql("INSERT INTO xcom (dag_run_id, task_id, key, value) VALUES ($1, 'a', $2, $3)", [
        run,
        key,
        JSON.stringify(value),
      ]);
    }
    const list = (await tw.call("GET", `${BASE}/a/xcomEntries?order_by=-key`)).json();
    expect(list.xcom_entries.map((each: { key: string }) => each.key)).toEqual([
      "word",
      "return_value",
      "nothing",
    ]);
    for (const [key, value] of Object.entries(values)) {
      expect((await tw.call("GET", `${BASE}/a/xcomEntries/${key}`)).json().value).toEqual(value);
    }
    expect((await tw.call("GET", `${BASE}/a/xcomEntries/word?stringify=true`)).json().value).toBe('"w"');
    expect(
      (await tw.call("GET", "/dags/~/dagRuns/~/taskInstances/~/xcomEntries?xcom_key=word")).json()
        .total_entries,
    ).toBe(1);
    expect((await tw.call("GET", `${BASE}/a/xcomEntries/nope`)).statusCode).toBe(404);
  });

  test("shows a value with NUL and lone surrogates", async () => {
    await tw.sql("INSERT INTO xcom (dag_run_id, task_id, key, value) VALUES ($1, 'b', 'odd', $2)", [
      run,
      '"a\\u0000b\\ud800"',
    ]);
    expect((await tw.call("GET", `${BASE}/b/xcomEntries/odd`)).json().value).toBe("a\0b\ud800");
  });
});

describe("editing task instances", () => {
  const state = async (runId: string) =>
    Object.fromEntries(
      (await tw.call("GET", `/dags/etl/dagRuns/${runId}/taskInstances?order_by=task_id`))
        .json()
        .task_instances.map((each: { task_id: string; state: string }) => [each.task_id, each.state]),
    );
  const fresh = async (runId: string, logicalDate?: Date) => {
    const id = await tw.addRun("etl", { runId, state: "failed", logicalDate });
    await tw.addInstance(id, "a", { state: "success", tryNumber: 1 });
    await tw.addInstance(id, "b", { state: "failed", tryNumber: 1 });
    await tw.addInstance(id, "c", { state: "upstream_failed" });
    return id;
  };

  test("marks an instance after a dry run", async () => {
    const id = await fresh("mark");
    const path = "/dags/etl/dagRuns/mark/taskInstances/b";
    const dry = (await tw.call("PATCH", `${path}/dry_run`, { new_state: "success" })).json();
    expect(dry.task_instances.map((each: { task_id: string }) => each.task_id)).toEqual(["b", "c"]);
    expect(await state("mark")).toMatchObject({ b: "failed" });
    tw.changes.length = 0;
    const real = (await tw.call("PATCH", path, { new_state: "success", note: "fixed manually" })).json();
    // Tasks that were upstream_failed because of it are evaluated again.
    expect(real.task_instances).toMatchObject([
      { task_id: "b", state: "success", note: "fixed manually" },
      { task_id: "c", state: null, note: null },
    ]);
    expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }]);
    expect((await tw.call("GET", "/eventLogs?run_id=mark")).json().event_logs).toMatchObject([
      { event: "patch_task_instance", task_id: "b" },
    ]);
  });

  test("marks with downstream tasks, and can be repeated", async () => {
    await fresh("down");
    const body = { new_state: "skipped", include_downstream: true };
    const first = (await tw.call("PATCH", "/dags/etl/dagRuns/down/taskInstances/b/-1", body)).json();
    expect(first.task_instances.map((each: { task_id: string }) => each.task_id)).toEqual(["b", "c"]);
    const again = (await tw.call("PATCH", "/dags/etl/dagRuns/down/taskInstances/b/-1", body)).json();
    expect(again.task_instances.map((each: { task_id: string }) => each.task_id)).toEqual(["b"]);
  });

  test.each([
    [{}, 422],
    [{ new_state: "running" }, 422],
    [{ new_state: "success", colour: "red" }, 422],
    [{ note: 5 }, 422],
  ])("rejects %j with a %i", async (body, status) => {
    expect((await tw.call("PATCH", `${BASE}/b`, body)).statusCode).toBe(status);
  });

  test("returns 404 for unknown tasks and runs", async () => {
    const body = { new_state: "success" };
    expect((await tw.call("PATCH", `${BASE}/zzz`, body)).json().detail).toBe('DAG "etl" has no task "zzz"');
    expect((await tw.call("PATCH", `${BASE}/b/9`, body)).statusCode).toBe(404);
    expect((await tw.call("PATCH", "/dags/etl/dagRuns/nope/taskInstances/b", body)).statusCode).toBe(404);
    expect((await tw.call("POST", "/dags/nope/clearTaskInstances", {})).statusCode).toBe(404);
    expect((await tw.call("POST", "/dags/etl/clearTaskInstances", { dag_run_id: "nope" })).statusCode).toBe(
      404,
    );
    expect((await tw.call("POST", "/dags/etl/clearTaskInstances", { task_ids: ["zzz"] })).statusCode).toBe(
      404,
    );
  });

  test("clears by task and direction, by default only failed tasks", async () => {
    const id = await fresh("clear");
    const clear = async (body: object) =>
      (await tw.call("POST", "/dags/etl/clearTaskInstances", { dag_run_id: "clear", ...body }))
        .json()
        .task_instances.map((each: { task_id: string }) => each.task_id);
    expect(await clear({})).toEqual(["b", "c"]);
    expect(await clear({ task_ids: ["b"] })).toEqual(["b", "c"]);
    expect(await clear({ task_ids: [["b", -1]], include_upstream: true, only_failed: false })).toEqual([
      "a",
      "b",
      "c",
    ]);
    expect(await clear({ task_ids: ["c"], include_upstream: true, include_downstream: true })).toEqual([
      "b",
      "c",
    ]);
    expect(await clear({ only_running: true })).toEqual([]);
    expect(await state("clear")).toEqual({ a: "success", b: "failed", c: "upstream_failed" });

    tw.changes.length = 0;
    expect(await clear({ task_ids: ["b"], include_downstream: true, dry_run: false, note: "again" })).toEqual(
      ["b", "c"],
    );
    expect(await state("clear")).toEqual({ a: "success", b: null, c: null });
    expect((await tw.call("GET", "/dags/etl/dagRuns/clear")).json().state).toBe("queued");
    expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }]);
  });

  test("clears over runs, by date and by past and future", async () => {
    for (const day of [11, 12, 13]) await fresh(`day${day}`, new Date(Date.UTC(2026, 2, day)));
    const clear = async (body: object) =>
      (await tw.call("POST", "/dags/etl/clearTaskInstances", { task_ids: ["b"], ...body }))
        .json()
        .task_instances.map((each: { dag_run_id: string }) => each.dag_run_id);
    // Includes the downstream task that could not run.
    const runs = async (body: object) => [...new Set(await clear(body))];
    expect(await runs({ start_date: "2026-03-12", end_date: "2026-03-13" })).toEqual(["day12", "day13"]);
    expect(await runs({ dag_run_id: "day12", include_future: true })).toEqual(["day12", "day13"]);
    expect(await runs({ dag_run_id: "day12", include_past: true, start_date: "2026-03-01" })).toEqual([
      "day11",
      "day12",
    ]);
    for (const bad of [
      { include_past: true },
      { start_date: "2026-03-13", end_date: "2026-03-12" },
      { task_ids: [["b"]] },
      { task_ids: "b" },
    ]) {
      expect((await tw.call("POST", "/dags/etl/clearTaskInstances", bad)).statusCode).toBe(422);
    }
  });

  test("each try keeps the version it ran with when the run moves to the current version", async () => {
    const dag = manifestOf("fixed", [{ taskId: "a" }, { taskId: "b" }]);
    await tw.addDag(dag);
    const id = await tw.addRun("fixed", { runId: "moved", state: "failed" });
    for (const [task, state] of Object.entries({ a: "failed", b: "success" }))
      await tw.addInstance(id, task, { state, tryNumber: 1, attempt: randomUUID() });
    await tw.sql(
      "UPDATE task_instance SET reason = 'Error: wrong sum' WHERE dag_run_id = $1 AND task_id = 'a'",
      [id],
    );
    const clear = (body: object) =>
      tw.call("POST", "/dags/fixed/clearTaskInstances", {
        ...{ dag_run_id: "moved", task_ids: ["a"], run_on_latest_version: true, dry_run: false, ...body },
      });
    const versions = async (path: string) =>
      (await tw.call("GET", `/dags/fixed/dagRuns/moved/taskInstances/${path}`))
        .json()
        .task_instances.map(
          (each: { dag_version: { version_number: number } }) => each.dag_version.version_number,
        );
    for (const tryNumber of [2, 3]) {
      await tw.addDag(dag);
      expect((await clear({})).statusCode).toBe(200);
      // What the scheduler does for the next try.
      await tw.sql(
        `UPDATE task_instance SET state = 'failed', attempt = $2, try_number = $3, reason = 'Error: other'
         WHERE dag_run_id = $1 AND task_id = 'a'`,
        [id, randomUUID(), tryNumber],
      );
    }
    expect(await versions("a/tries")).toEqual([1, 2, 3]);
    expect(await versions("b/tries")).toEqual([1]);
    const list = await tw.call("GET", "/dags/fixed/dagRuns/moved/taskInstances?order_by=task_id");
    expect(list.json().task_instances).toMatchObject([
      { task_id: "a", dag_version: { version_number: 3 } },
      { task_id: "b", dag_version: { version_number: 1 } },
    ]);
    const same = await tw.call("GET", "/ui/dags/fixed/runs/moved/task-instances/a/same-error?try=1");
    expect(same.json()).toMatchObject({ versions: [1], since: { run_id: "moved", version: 1 } });
    await tw.sql("UPDATE dag_run SET state = 'failed', ended_at = now() WHERE id = $1", [id]);
    expect((await tw.call("DELETE", "/dags/fixed")).statusCode).toBe(200);
    expect(await tw.sql("SELECT FROM attempt_version WHERE dag_run_id = $1", [id])).toEqual([]);
  });

  test("rejects an edit with prevent_running_task while a task runs", async () => {
    const id = await tw.addRun("etl", { runId: "busy" });
    await tw.addInstance(id, "a", { state: "running", tryNumber: 1, attempt: randomUUID() });
    const body = { dag_run_id: "busy", only_failed: false, prevent_running_task: true, dry_run: false };
    expect((await tw.call("POST", "/dags/etl/clearTaskInstances", body)).statusCode).toBe(409);
  });
});
