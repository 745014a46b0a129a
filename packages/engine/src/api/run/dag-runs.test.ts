import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { claimKey } from "../../store/access/idempotency.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  const tasks = [{ taskId: "a" }, { taskId: "b", upstream: ["a"] }];
  await tw.addDag(manifestOf("sales", tasks));
  await tw.addDag(manifestOf("other", tasks));
  await tw.addDag(
    manifestOf("typed", tasks, {
      hasParams: true,
      paramsSchema: {
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: {
          region: { type: "string", enum: ["eu", "us"] },
          days: { type: "array", items: { type: "integer" } },
        },
        required: ["region"],
        additionalProperties: false,
      },
    }),
  );
  const day = (n: number) => new Date(Date.UTC(2026, 0, n));
  await tw.addRun("sales", {
    runId: "r1",
    state: "success",
    logicalDate: day(1),
    runAfter: day(2),
    startedAt: day(2),
    endedAt: new Date(day(2).getTime() + 5000),
    conf: { k: "needle" },
  });
  await tw.addRun("sales", {
    runId: "r2",
    state: "failed",
    logicalDate: day(2),
    runAfter: day(3),
    startedAt: day(3),
    endedAt: new Date(day(3).getTime() + 60_000),
  });
  await tw.addRun("sales", {
    runId: "r3",
    state: "running",
    logicalDate: day(3),
    runAfter: day(4),
    startedAt: day(4),
  });
  await tw.addRun("other", { runId: "r1", state: "queued", runAfter: day(5) });
});

const found = async (path: string) =>
  (await tw.call("GET", path))
    .json()
    .dag_runs.map((run: { dag_id: string; dag_run_id: string }) => `${run.dag_id}/${run.dag_run_id}`);

describe("reading runs", () => {
  test("returns a run with Airflow's fields", async () => {
    expect((await tw.call("GET", "/dags/sales/dagRuns/r1")).json()).toMatchObject({
      dag_run_id: "r1",
      dag_id: "sales",
      logical_date: "2026-01-01T00:00:00.000Z",
      run_after: "2026-01-02T00:00:00.000Z",
      state: "success",
      run_type: "manual",
      duration: 5,
      conf: { k: "needle" },
      note: null,
      dag_versions: [{ version_number: 1, dag_id: "sales" }],
    });
    expect((await tw.call("GET", "/dags/sales/dagRuns/nope")).json().detail).toBe(
      'DAG "sales" has no run "nope"',
    );
    expect((await tw.call("GET", "/dags/nope/dagRuns")).statusCode).toBe(404);
  });

  test.each([
    ["/dags/sales/dagRuns", ["sales/r1", "sales/r2", "sales/r3"]],
    ["/dags/~/dagRuns?state=running&state=queued", ["sales/r3", "other/r1"]],
    ["/dags/~/dagRuns?order_by=-run_after&limit=2", ["other/r1", "sales/r3"]],
    ["/dags/~/dagRuns?run_id_pattern=R1", ["sales/r1", "other/r1"]],
    ["/dags/~/dagRuns?run_date_gte=2026-01-03&run_date_lt=2026-01-06", ["sales/r3", "other/r1"]],
    ["/dags/~/dagRuns?run_date_gt=2026-01-03", ["other/r1"]],
    ["/dags/sales/dagRuns?logical_date_gte=2026-01-02&logical_date_lt=2026-01-03T00:00:00Z", ["sales/r2"]],
    ["/dags/sales/dagRuns?duration_gt=5", ["sales/r2"]],
    ["/dags/sales/dagRuns?conf_contains=needle", ["sales/r1"]],
    ["/dags/~/dagRuns?dag_id_prefix_pattern=oth", ["other/r1"]],
    ["/dags/~/dagRuns?dag_id_pattern=%OTH%&state=queued", ["other/r1"]],
    ["/dags/~/dagRuns?dag_id_pattern=nothing", []],
    ["/dags/sales/dagRuns?dag_id_pattern=oth", []],
    ["/dags/~/dagRuns?run_type=scheduled", []],
    ["/dags/sales/dagRuns?dag_version=1&end_date_lte=2026-01-02T12:00:00Z", ["sales/r1"]],
  ])("returns for %s: %j", async (path, expected) => {
    expect(await found(path)).toEqual(expected);
  });

  test("accepts the same filters in the body of the batch form", async () => {
    const body = (
      await tw.call("POST", "/dags/~/dagRuns/list", {
        dag_ids: ["sales"],
        states: ["failed", "success"],
        order_by: "-id",
        page_limit: 1,
        run_after_gte: null,
      })
    ).json();
    expect(body.total_entries).toBe(2);
    expect(body.dag_runs.map((run: { dag_run_id: string }) => run.dag_run_id)).toEqual(["r2"]);
    expect((await tw.call("POST", "/dags/~/dagRuns/list", { order_by: "secret" })).statusCode).toBe(422);
    expect((await tw.call("POST", "/dags/sales/dagRuns/list", {})).statusCode).toBe(422);
  });
});

describe("creating runs", () => {
  test("creates a queued run, wakes the scheduler and writes an audit record", async () => {
    tw.changes.length = 0;
    const response = await tw.call("POST", "/dags/sales/dagRuns", {
      dag_run_id: "mine",
      logical_date: "2026-05-01T00:00:00+02:00",
      conf: { a: [1] },
      note: "manual",
    });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toMatchObject({
      dag_run_id: "mine",
      state: "queued",
      logical_date: "2026-04-30T22:00:00.000Z",
      conf: { a: [1] },
      note: "manual",
      triggered_by: "rest_api",
      triggering_user_name: "admin",
    });
    expect(tw.changes).toEqual([{ kind: "run_created", dagRunIds: [expect.any(Number)] }]);
    const events = (await tw.call("GET", "/eventLogs?run_id=mine")).json().event_logs;
    expect(events).toMatchObject([{ event: "trigger_dag_run", dag_id: "sales", owner: "admin" }]);
  });

  test("accepts an empty body", async () => {
    const body = (await tw.call("POST", "/dags/sales/dagRuns", {})).json();
    expect(body).toMatchObject({
      dag_run_id: expect.stringMatching(/^manual__/),
      logical_date: null,
      conf: {},
    });
  });

  test("rejects a duplicate run id and a duplicate logical date", async () => {
    const byId = await tw.call("POST", "/dags/sales/dagRuns", { dag_run_id: "r1" });
    expect([byId.statusCode, byId.json().detail]).toEqual([409, 'DAG "sales" already has a run "r1"']);
    const byDate = await tw.call("POST", "/dags/sales/dagRuns", { logical_date: "2026-01-02T00:00:00Z" });
    expect([byDate.statusCode, byDate.json().detail]).toEqual([
      409,
      'DAG "sales" already has a run for this logical date: "r2"',
    ]);
  });

  test.each([
    [{ conf: [] }, ["body", "conf"]],
    [{ conf: "x" }, ["body", "conf"]],
    [{ logical_date: "soon" }, ["body", "logical_date"]],
    [{ logical_date: 5 }, ["body", "logical_date"]],
    [{ dag_run_id: "a/b" }, ["body", "dag_run_id"]],
    [{ dag_run_id: "~" }, ["body", "dag_run_id"]],
    [{ dag_run_id: "" }, ["body", "dag_run_id"]],
    [{ dag_run_id: "x".repeat(251) }, ["body", "dag_run_id"]],
    [{ data_interval_start: "2026-01-01T00:00:00Z" }, ["body", "data_interval_end"]],
    [
      { data_interval_start: "2026-01-02T00:00:00Z", data_interval_end: "2026-01-01T00:00:00Z" },
      ["body", "data_interval_end"],
    ],
    [{ note: "x".repeat(1001) }, ["body", "note"]],
    [{ state: "success" }, ["body", "state"]],
    [{ partition_key: "p" }, ["body", "partition_key"]],
  ])("rejects %j with a 422 at %j", async (body, loc) => {
    const response = await tw.call("POST", "/dags/sales/dagRuns", body);
    expect(response.statusCode).toBe(422);
    expect(response.json().detail[0].loc).toEqual(loc);
  });

  test("rejects unknown and stale DAGs", async () => {
    expect((await tw.call("POST", "/dags/nope/dagRuns", {})).statusCode).toBe(404);
    await tw.addDag(manifestOf("gone", [{ taskId: "t" }]));
    await tw.sql("UPDATE dag SET is_stale = true WHERE dag_id = 'gone'");
    expect((await tw.call("POST", "/dags/gone/dagRuns", {})).statusCode).toBe(409);
  });

  test.each([
    [{}, ["body", "conf", "region"]],
    [{ region: "mars" }, ["body", "conf", "region"]],
    [{ region: "eu", days: [1, "two"] }, ["body", "conf", "days", "1"]],
    [{ region: "eu", colour: "red" }, ["body", "conf", "colour"]],
    [{ region: "eu", dais: [1] }, ["body", "conf", "dais"]],
  ])("rejects conf %j at %j by the DAG's schema", async (conf, loc) => {
    const response = await tw.call("POST", "/dags/typed/dagRuns", { conf });
    expect(response.statusCode).toBe(422);
    expect(response.json().detail[0].loc).toEqual(loc);
    expect(response.json().errors[0].pointer).toBe(`/${loc.slice(1).join("/")}`);
    if ("region" in conf && conf.region === "mars")
      expect(response.json().detail[0].msg).toBe("conf.region: must be one of: eu, us");
    expect(
      (await tw.call("POST", "/dags/typed/dagRuns", { conf: { region: "eu", days: [1] } })).statusCode,
    ).toBe(200);
  });
  test.each<[string, object, number]>([
    ["without a rule for other keys", {}, 422],
    ["that is closed and composed", { additionalProperties: false, allOf: [{ type: "object" }] }, 422],
    ["that allows other keys", { additionalProperties: true }, 200],
  ])("checks a conf with a misspelled key against a schema %s", async (_, more, status) => {
    const paramsSchema = { type: "object", properties: { region: { type: "string" } }, ...more };
    await tw.addDag(manifestOf("strict", [{ taskId: "a" }], { paramsSchema }));
    const response = await tw.call("POST", "/dags/strict/dagRuns", { conf: { regoin: "eu" } });
    expect(response.statusCode).toBe(status);
    if (status === 422) expect(response.json().detail[0].loc).toEqual(["body", "conf", "regoin"]);
    if (Object.keys(more).length === 0) {
      const problem = response.json();
      expect(problem.detail[0].msg).toBe('conf.regoin: is unknown; did you mean "region"?');
      expect(problem.errors).toEqual([
        { pointer: "/conf/regoin", message: 'is unknown; did you mean "region"?' },
      ]);
    }
  });
});

describe("Idempotency-Key", () => {
  const post = (key: string, body: object) =>
    tw.call("POST", "/dags/other/dagRuns", body, { "idempotency-key": key });
  const count = async () => (await tw.call("GET", "/dags/other/dagRuns?limit=0")).json().total_entries;

  test("returns the stored response for a repeated request and does nothing", async () => {
    const before = await count();
    const first = await post("key-1", { conf: { n: 1 } });
    tw.changes.length = 0;
    const again = await post("key-1", { conf: { n: 1 } });
    expect([again.statusCode, again.json()]).toEqual([first.statusCode, first.json()]);
    expect([first.headers["idempotency-replayed"], again.headers["idempotency-replayed"]]).toEqual([
      undefined,
      "true",
    ]);
    expect(await count()).toBe(before + 1);
    expect(tw.changes).toEqual([]);
  });

  test("rejects another request with the same key", async () => {
    await post("key-2", { conf: { n: 1 } });
    const other = await post("key-2", { conf: { n: 2 } });
    expect(other.statusCode).toBe(422);
    expect(other.json().detail[0].loc).toEqual(["header", "idempotency-key"]);
    const otherPath = await tw.call(
      "POST",
      "/dags/sales/dagRuns",
      { conf: { n: 1 } },
      { "idempotency-key": "key-2" },
    );
    expect(otherPath.statusCode).toBe(422);
  });

  test("keeps the key free after a failed request", async () => {
    expect((await post("key-3", { dag_run_id: "r1" })).statusCode).toBe(409);
    expect((await post("key-3", { dag_run_id: "r1-other" })).statusCode).toBe(200);
  });

  test("runs exactly one of many concurrent requests, and returns its response or a 409 for the others", async () => {
    const before = await count();
    const answers = await Promise.all(Array.from({ length: 8 }, () => post("key-4", { conf: { n: 4 } })));
    expect(await count()).toBe(before + 1);
    expect(new Set(answers.map((answer) => answer.statusCode)).difference(new Set([200, 409])).size).toBe(0);
    const runs = new Set(
      answers.filter((answer) => answer.statusCode === 200).map((answer) => answer.json().dag_run_id),
    );
    expect(runs.size).toBe(1);
    expect((await post("key-4", { conf: { n: 4 } })).headers["idempotency-replayed"]).toBe("true");
  });

  test("returns a 409 while the first request is in progress", async () => {
    const [token] = await tw.sql<{ id: number }>("SELECT id FROM api_token");
    await tw.database.transaction(async (tx) => {
      expect(await claimKey(tx, token!.id, "key-5")).toEqual({ kind: "free" });
      const { headers, statusCode, json } = await post("key-5", {});
      expect([statusCode, json().code, headers["retry-after"]]).toEqual([
        409,
        "IDEMPOTENCY_IN_PROGRESS",
        "1",
      ]);
    });
    // The first request ended without a response: the key is free again.
    expect((await post("key-5", {})).statusCode).toBe(200);
  });

  test("stores neither run nor key if the connection breaks before the commit, and both on the retry", async () => {
    const before = await count();
    await tw.sql(`CREATE FUNCTION end_connection() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'`);
    await tw.sql("CREATE TRIGGER end_connection AFTER INSERT ON dag_run EXECUTE FUNCTION end_connection()");
    const send = () =>
      tw.app.inject({
        method: "POST",
        url: "/api/v2/dags/other/dagRuns",
        headers: { authorization: `Bearer ${tw.token}`, "idempotency-key": "key-7" },
        payload: {},
      });
    const failed = await send();
    expect([failed.statusCode, failed.json().code]).toEqual([503, "DATABASE_AWAY"]);
    expect(await count()).toBe(before);
    await tw.sql("DROP TRIGGER end_connection ON dag_run");
    const retried = await send();
    expect([retried.statusCode, retried.headers["idempotency-replayed"]]).toEqual([200, undefined]);
    expect((await send()).json()).toEqual(retried.json());
    expect(await count()).toBe(before + 1);
  });

  test("allows reuse of a key after a day, and encrypts the stored response", async () => {
    await post("key-6", { conf: { canary: "not-in-clear-6" } });
    const [row] = await tw.sql<{ body: string }>("SELECT body FROM idempotency_key WHERE key = 'key-6'");
    expect(JSON.stringify(row)).not.toContain("not-in-clear-6");
    await tw.sql("UPDATE idempotency_key SET created_at = now() - interval '25 hours' WHERE key = 'key-6'");
    expect((await post("key-6", { conf: { n: 7 } })).statusCode).toBe(200);
  });

  test("rejects a key that is not visible ASCII", async () => {
    expect((await post("x".repeat(300), {})).statusCode).toBe(422);
    expect((await post("two words", {})).statusCode).toBe(422);
  });
});

describe("editing runs", () => {
  const run = async (runId: string, state: string) => {
    const id = await tw.addRun("sales", { runId, state });
    await tw.addInstance(id, "a", { state: state === "running" ? "running" : "success", tryNumber: 1 });
    await tw.addInstance(id, "b", {
      state: state === "running" ? "pending" : "failed",
      tryNumber: state === "running" ? 0 : 1,
    });
    return id;
  };

  test("sets and removes a note", async () => {
    await run("noted", "success");
    expect((await tw.call("PATCH", "/dags/sales/dagRuns/noted", { note: "look here" })).json().note).toBe(
      "look here",
    );
    expect(
      (
        await tw.call("PATCH", "/dags/sales/dagRuns/noted?update_mask=note", { note: null, state: "failed" })
      ).json(),
    ).toMatchObject({ note: null, state: "success" });
    expect((await tw.call("PATCH", "/dags/sales/dagRuns/noted", {})).statusCode).toBe(422);
    expect((await tw.call("PATCH", "/dags/sales/dagRuns/noted", { state: "running" })).statusCode).toBe(422);
    expect((await tw.call("PATCH", "/dags/sales/dagRuns/nope", { note: "x" })).statusCode).toBe(404);
  });

  test("marks a running run, cancels it only while it runs, and deletes it only after its end", async () => {
    const marked = await run("marked", "running");
    tw.changes.length = 0;
    await tw.sql("UPDATE pool SET occupied = 2 WHERE name = 'default_pool'");
    expect((await tw.call("PATCH", "/dags/sales/dagRuns/marked", { state: "success" })).json().state).toBe(
      "success",
    );
    expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [marked] }]);

    await run("cancelled", "running");
    expect((await tw.call("DELETE", "/dags/sales/dagRuns/cancelled")).statusCode).toBe(409);
    expect((await tw.call("POST", "/dags/sales/dagRuns/cancelled/cancel")).json()).toMatchObject({
      state: "failed",
      end_reason: "cancelled by admin",
    });
    expect((await tw.call("POST", "/dags/sales/dagRuns/cancelled/cancel")).statusCode).toBe(409);
    expect((await tw.call("DELETE", "/dags/sales/dagRuns/cancelled")).statusCode).toBe(204);
    expect((await tw.call("DELETE", "/dags/sales/dagRuns/cancelled")).statusCode).toBe(404);
  });

  test("keeps the end of a run and of a task that have ended when they are marked", async () => {
    const times = { startedAt: new Date("2026-03-01T00:00:00Z"), endedAt: new Date("2026-03-01T00:00:01Z") };
    const id = await tw.addRun("sales", { runId: "remarked", state: "failed", ...times });
    await tw.addInstance(id, "a", { state: "failed", tryNumber: 1, ...times });
    await tw.addInstance(id, "b", { state: "running", tryNumber: 1, startedAt: times.startedAt });
    await tw.sql("UPDATE pool SET occupied = 1 WHERE name = 'default_pool'");
    const end_date = times.endedAt.toISOString();
    for (const state of ["success", "failed"]) {
      const marked = await tw.call("PATCH", "/dags/sales/dagRuns/remarked", { state });
      expect(marked.json()).toMatchObject({ state, end_date, duration: 1 });
    }
    const path = "/dags/sales/dagRuns/remarked/taskInstances";
    for (const task of ["a", "b"]) await tw.call("PATCH", `${path}/${task}`, { new_state: "skipped" });
    expect((await tw.call("GET", `${path}/a`)).json()).toMatchObject({
      state: "skipped",
      end_date,
      duration: 1,
    });
    // It had not ended: the first mark of its run has ended it.
    const ended = (await tw.call("GET", `${path}/b`)).json().end_date as string;
    expect(Date.now() - Date.parse(ended)).toBeLessThan(60_000);
  });

  test("changes nothing in a dry run of clear, and sets the run to queued otherwise", async () => {
    const id = await run("cleared", "failed");
    const dry = (await tw.call("POST", "/dags/sales/dagRuns/cleared/clear", { only_failed: true })).json();
    expect(dry.task_instances.map((each: { task_id: string }) => each.task_id)).toEqual(["b"]);
    expect((await tw.call("GET", "/dags/sales/dagRuns/cleared")).json().state).toBe("failed");
    const real = (
      await tw.call("POST", "/dags/sales/dagRuns/cleared/clear", { dry_run: false, note: "again" })
    ).json();
    expect(real).toMatchObject({ dag_run_id: "cleared", state: "queued", note: "again" });
    expect(await tw.sql("SELECT DISTINCT state FROM task_instance WHERE dag_run_id = $1", [id])).toEqual([
      { state: "pending" },
    ]);
    expect(
      (await tw.call("POST", "/dags/sales/dagRuns/cleared/clear", { only_failed: true, only_new: true }))
        .statusCode,
    ).toBe(422);
  });
});

describe("waiting for a run", () => {
  test("returns at once for a finished run, and at the end of a running one", async () => {
    const id = await tw.addRun("sales", { runId: "waited", state: "running" });
    const waiting = tw.call("GET", "/dags/sales/dagRuns/waited/wait?interval=0.05");
    await tw.sql("UPDATE dag_run SET state = 'success', ended_at = now() WHERE id = $1", [id]);
    const response = await waiting;
    expect(response.headers["content-type"]).toBe("application/x-ndjson");
    const lines = response.body
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({
      state: "success",
      dag_run_id: "waited",
      end_date: expect.any(String),
    });
    expect((await tw.call("GET", "/dags/sales/dagRuns/waited/wait")).body.trim().split("\n")).toHaveLength(1);
  });

  test("includes the requested outputs in the last line", async () => {
    const id = await tw.addRun("sales", { runId: "with_results", state: "success" });
    await tw.sql(
      `INSERT INTO xcom (dag_run_id, task_id, map_index, key, value)
       VALUES ($1, 'a', -1, 'return_value', '42'), ($1, 'a', -1, 'other', '1'), ($1, 'b', 1, 'return_value', '"y"'),
              ($1, 'b', 0, 'return_value', '"x"')`,
      [id],
    );
    const results = async (query: string) =>
      (await tw.call("GET", `/dags/sales/dagRuns/with_results/wait?interval=0.01${query}`)).json().results;
    expect(await results("&result=a&result=b&result=none")).toEqual({ a: 42, b: ["x", "y"] });
    expect(await results("")).toBeUndefined();
  });

  test("ends after its timeout", async () => {
    const response = await tw.call("GET", "/dags/sales/dagRuns/r3/wait?timeout=0.1&interval=0.05");
    expect(JSON.parse(response.body.trim())).toMatchObject({ state: "running" });
    expect((await tw.call("GET", "/dags/sales/dagRuns/r3/wait?timeout=-1")).statusCode).toBe(422);
    expect((await tw.call("GET", "/dags/sales/dagRuns/nope/wait")).statusCode).toBe(404);
  });
});
