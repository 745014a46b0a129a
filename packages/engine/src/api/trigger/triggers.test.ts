/** Triggers, waits, the wait history of a task, and deferred tasks in responses. */
import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addPastWait, addTrigger, addTriggerer, addWait } from "../../../test/api/waits.ts";

const MINUTE = 60_000;
const later = (ms: number) => new Date(Date.now() + ms);
const START = new Date("2026-01-01T10:00:00.000Z");

let tw: Installation;
let run: number;
let other: number;
let owner: number;
let dead: number;
const id = { hot: 0, cold: 0, timed: 0, unowned: 0, orphan: 0, schedule: 0 };

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf("etl", [
      { taskId: "wait_file", timeoutMs: 60 * MINUTE },
      { taskId: "wait_time" },
      { taskId: "wait_db" },
      { taskId: "mapped" },
    ]),
  );
  await tw.addDag(manifestOf("listener", [{ taskId: "t" }]));
  run = await tw.addRun("etl", { runId: "r1" });
  other = await tw.addRun("etl", { runId: "r2" });
  owner = await addTriggerer(tw, { host: "alpha" });
  dead = await addTriggerer(tw, { host: "omega", leaseSeconds: -1 });
  id.hot = await addTrigger(tw, {
    kind: "file",
    args: { path: "/in/orders.csv" },
    owner,
    polledAt: START,
    replicas: 2,
    standby: dead,
  });
  id.cold = await addTrigger(tw, { kind: "http", queue: "slow", wakeAt: later(MINUTE) });
  id.timed = await addTrigger(tw, { kind: "time", timed: { at: "x" }, wakeAt: later(-MINUTE) });
  id.unowned = await addTrigger(tw, {
    kind: "sql",
    args: {
      connection: "warehouse",
      key: "s3-object",
      password: "hunter2",
      nested: [{ apiKey: "hunter2", url: "postgres://ada:hunter2@db/x?token=hunter2&limit=1" }],
    },
  });
  id.orphan = await addTrigger(tw, { kind: "file", args: {}, owner: dead });
  id.schedule = await addTrigger(tw, { kind: "webhook", dagId: "listener", args: { name: "orders" } });
  await addWait(tw, {
    dagRunId: run,
    taskId: "wait_file",
    triggerId: id.hot,
    name: "orders",
    since: new Date(START.getTime() + 1000),
    timeoutAt: new Date("2026-01-02T00:00:00Z"),
    startedAt: START,
  });
  await addWait(tw, {
    dagRunId: run,
    taskId: "wait_time",
    triggerId: id.timed,
    kind: "time",
    method: "woken",
    since: new Date(START.getTime() + 3000),
  });
  await addWait(tw, {
    dagRunId: other,
    taskId: "wait_file",
    triggerId: id.hot,
    since: new Date(START.getTime() + 2000),
    startedAt: START,
    timeoutAt: new Date("2026-01-01T10:30:00Z"),
  });
  await addWait(tw, {
    dagRunId: other,
    taskId: "wait_db",
    triggerId: id.unowned,
    kind: "sql",
    since: new Date(START.getTime() + 4000),
  });
});

async function found(path: string): Promise<number[]> {
  const response = await tw.call("GET", path);
  expect([path, response.statusCode, response.body]).toEqual([path, 200, expect.anything()]);
  return response.json().triggers.map((trigger: { id: number }) => trigger.id);
}

describe("triggers", () => {
  test("are filtered by kind, queue, state, DAG and triggerer", async () => {
    expect(await found("/triggers")).toEqual(Object.values(id));
    expect(await found("/triggers?kind=file")).toEqual([id.hot, id.orphan]);
    expect(await found("/triggers?kind=file&kind=sql")).toEqual([id.hot, id.unowned, id.orphan]);
    expect(await found("/triggers?queue=slow")).toEqual([id.cold]);
    expect(await found("/triggers?state=hot")).toEqual([id.hot]);
    expect(await found("/triggers?state=cold")).toEqual([id.cold]);
    expect(await found("/triggers?state=timed")).toEqual([id.timed]);
    expect(await found("/triggers?state=unowned")).toEqual([id.unowned, id.orphan, id.schedule]);
    expect(await found("/triggers?state=hot&state=cold")).toEqual([id.hot, id.cold]);
    expect(await found("/triggers?dag_id=listener")).toEqual([id.schedule]);
    expect(await found(`/triggers?triggerer_id=${owner}`)).toEqual([id.hot]);
    expect(await found(`/triggers?triggerer_id=${dead}`)).toEqual([id.hot, id.orphan]);
    expect(await found("/triggers?order_by=-id&limit=2&offset=1")).toEqual([id.orphan, id.unowned]);
    const page = (await tw.call("GET", "/triggers?limit=1&cursor=")).json();
    expect(await found(`/triggers?limit=1&cursor=${page.next_cursor}`)).toEqual([id.cold]);
  });

  test("have the same state in the list and by themselves", async () => {
    const { triggers } = (await tw.call("GET", "/triggers")).json();
    for (const { id, state } of triggers as { id: number; state: string }[]) {
      expect(await found(`/triggers?state=${state}`)).toContain(id);
    }
  });

  test("are shown with their triggerer and waiting tasks", async () => {
    expect((await tw.call("GET", `/triggers/${id.hot}`)).json()).toEqual({
      id: id.hot,
      kind: "file",
      args: { path: "/in/orders.csv" },
      args_text: "path=/in/orders.csv",
      members: null,
      bundle_hash: null,
      queue: "default",
      replicas: 2,
      state: "hot",
      dag_id: null,
      created_at: expect.any(String),
      wake_at: expect.any(String),
      claimed_at: null,
      triggerer: { id: owner, hostname: "alpha", is_alive: true },
      standby: { id: dead, hostname: "omega", is_alive: false },
      last_polled_at: START.toISOString(),
      waiting_tasks: 2,
      waits: [
        expect.objectContaining({ dag_run_id: "r1", task_id: "wait_file" }),
        expect.objectContaining({ dag_run_id: "r2", task_id: "wait_file" }),
      ],
    });
  });

  test("mask secrets in their arguments", async () => {
    const response = await tw.call("GET", `/triggers/${id.unowned}`);
    expect(response.body).not.toContain("hunter2");
    expect(response.json().args).toEqual({
      connection: "warehouse",
      key: "s3-object",
      password: "***",
      nested: [{ apiKey: "***", url: "postgres://***@db/x?token=***&limit=1" }],
    });
    expect((await tw.call("GET", "/waiting")).body).not.toContain("hunter2");
    expect((await tw.call("GET", "/dags/etl/dagRuns/r2/taskInstances/wait_db")).body).not.toContain(
      "hunter2",
    );
    expect((await tw.call("GET", "/dags/etl/dagRuns/r2/taskInstances/wait_db/why")).body).not.toContain(
      "hunter2",
    );
  });

  test("return 404 after firing or if unknown, and reject invalid filters", async () => {
    const missing = await tw.call("GET", "/triggers/999999");
    expect([missing.statusCode, missing.json().detail]).toEqual([404, expect.stringContaining("has fired")]);
    for (const path of ["/triggers/x", "/triggers?state=warm", "/waiting?order_by=x"])
      expect([path, (await tw.call("GET", path)).statusCode]).toEqual([path, 422]);
  });
});

test("shows the trigger of a paused DAG and one without a wake-up time as cold", async () => {
  await tw.sql("UPDATE dag SET is_paused = true WHERE dag_id = 'listener'");
  expect(await found("/triggers?state=unowned")).toEqual([id.unowned, id.orphan]);
  expect(await found("/triggers?state=cold")).toEqual([id.cold, id.schedule]);
  await tw.sql("UPDATE dag SET is_paused = false WHERE dag_id = 'listener'");
  await tw.sql("UPDATE trigger SET wake_at = 'infinity' WHERE id = $1", [id.schedule]);
  expect((await tw.call("GET", `/triggers/${id.schedule}`)).json()).toMatchObject({
    state: "cold",
    wake_at: null,
  });
  await tw.sql("UPDATE trigger SET wake_at = now() WHERE id = $1", [id.schedule]);
});

describe("waiting", () => {
  const names = (body: { waiting: { dag_run_id: string; task_id: string }[] }) =>
    body.waiting.map((wait) => `${wait.dag_run_id}/${wait.task_id}`);
  const ask = async (query: string) => (await tw.call("GET", `/waiting?${query}`)).json();

  test("lists the longest wait first, with all fields", async () => {
    const body = await ask("");
    expect([names(body), body.total_entries]).toEqual([
      ["r1/wait_file", "r2/wait_file", "r1/wait_time", "r2/wait_db"],
      4,
    ]);
    expect(body.waiting[0]).toEqual({
      dag_id: "etl",
      dag_run_id: "r1",
      task_id: "wait_file",
      map_index: -1,
      rendered_map_index: null,
      try_number: 1,
      trigger_id: id.hot,
      kind: "file",
      args: { path: "/in/orders.csv" },
      args_text: "path=/in/orders.csv",
      members: null,
      queue: "default",
      trigger_state: "hot",
      name: "orders",
      method: null,
      since: "2026-01-01T10:00:01.000Z",
      // The task's own timeout is earlier: an hour from the start of the try.
      until: "2026-01-01T11:00:00.000Z",
      timeout_at: "2026-01-02T00:00:00.000Z",
      task_timeout_at: "2026-01-01T11:00:00.000Z",
      wake_at: expect.any(String),
      triggerer: { id: owner, hostname: "alpha", is_alive: true },
      last_polled_at: START.toISOString(),
    });
    expect(body.waiting[1]).toMatchObject({ until: "2026-01-01T10:30:00.000Z" });
    expect(body.waiting[2]).toMatchObject({
      trigger_state: "timed",
      method: "woken",
      until: null,
      triggerer: null,
    });
    expect(body.waiting[3]).toMatchObject({ trigger_state: "unowned" });
  });

  test("is filtered", async () => {
    expect(names(await ask("run_id=r1"))).toEqual(["r1/wait_file", "r1/wait_time"]);
    expect(names(await ask("dag_id=etl&task_id=wait_file"))).toEqual(["r1/wait_file", "r2/wait_file"]);
    expect(names(await ask("kind=sql"))).toEqual(["r2/wait_db"]);
    expect(names(await ask(`trigger_id=${id.timed}`))).toEqual(["r1/wait_time"]);
    expect(names(await ask("dag_id=listener"))).toEqual([]);
    expect(names(await ask("order_by=-since&limit=1"))).toEqual(["r2/wait_db"]);
  });

  test.each(["since", "-since", "trigger_id", "-trigger_id"])(
    "is paged by cursor in the order of %s, in both directions",
    async (order) => {
      const whole = names(await ask(`order_by=${order}`));
      let page = await ask(`order_by=${order}&limit=1&cursor=`);
      const forth = names(page);
      for (; page.next_cursor !== null; forth.push(...names(page)))
        page = await ask(`order_by=${order}&limit=1&cursor=${page.next_cursor}`);
      expect(forth).toEqual(whole);
      const back = names(page);
      for (; page.previous_cursor !== null; back.unshift(...names(page)))
        page = await ask(`order_by=${order}&limit=1&cursor=${page.previous_cursor}`);
      expect(back).toEqual(whole);
    },
  );

  test("has no attempt token in its cursor", async () => {
    const { next_cursor } = await ask("limit=1&cursor=");
    const attempts = await tw.sql<{ attempt: string }>("SELECT attempt FROM deferral");
    const text = Buffer.from(next_cursor, "base64url").toString();
    expect(attempts.filter(({ attempt }) => text.includes(attempt))).toEqual([]);
  });

  test("does not list a wait after its trigger has fired", async () => {
    const trigger = await addTrigger(tw);
    await addWait(tw, { dagRunId: run, taskId: "mapped", mapIndex: 3, triggerId: trigger });
    expect(names(await ask(`trigger_id=${trigger}`))).toEqual(["r1/mapped"]);
    await tw.sql(
      `UPDATE deferral SET fired_at = now(), waits_on = NULL, outcome = '{"kind":"event","payload":1,"key":null}'
       WHERE waits_on = $1`,
      [trigger],
    );
    await tw.sql("DELETE FROM trigger WHERE id = $1", [trigger]);
    expect(names(await ask(`trigger_id=${trigger}`))).toEqual([]);
    const instance = (await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/mapped/3")).json();
    expect(instance).toMatchObject({ state: "deferred", trigger: null, triggerer_job: null });
    const why = (await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/mapped/3/why")).json();
    expect(why.reasons.at(-1)).toMatchObject({ code: "TRIGGER_FIRED" });
  });
});

describe("deferred task instance", () => {
  const TRIGGER = {
    classpath: "file",
    kwargs: '{"path":"/in/orders.csv"}',
    created_date: expect.any(String),
    queue: "default",
  };

  test("has Airflow's trigger and triggerer_job, alone and in lists", async () => {
    const expected = {
      state: "deferred",
      trigger: { ...TRIGGER, id: id.hot, triggerer_id: owner },
      triggerer_job: {
        id: owner,
        job_type: "TriggererJob",
        hostname: "alpha",
        state: "running",
        is_alive: true,
        latest_heartbeat: expect.any(String),
      },
    };
    expect((await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/wait_file")).json()).toMatchObject(
      expected,
    );
    const { task_instances } = (await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances")).json();
    const byTask = new Map(task_instances.map((each: { task_id: string }) => [each.task_id, each]));
    expect(byTask.get("wait_file")).toMatchObject(expected);
    expect(byTask.get("wait_time")).toMatchObject({
      trigger: { classpath: "time", triggerer_id: null },
      triggerer_job: null,
    });
  });

  test("has neither in any other state", async () => {
    await tw.addInstance(run, "wait_db", { state: "running", tryNumber: 1 });
    expect((await tw.call("GET", "/dags/etl/dagRuns/r1/taskInstances/wait_db")).json()).toMatchObject({
      trigger: null,
      triggerer_job: null,
    });
  });
});

describe("waits of a task", () => {
  const PATH = "/dags/etl/dagRuns/r1/taskInstances/wait_file/deferrals";
  const at = (hour: number) => new Date(Date.UTC(2025, 11, 31, hour));
  /** A NUL in an event must not cause an error: see ADR 6. */
  const EVENT = '{"kind":"event","payload":{"text":"a\\u0000b"},"key":null}';

  beforeAll(async () => {
    const of = { dagRunId: run, taskId: "wait_file" };
    await addPastWait(tw, of, { outcome: EVENT, endKind: "resumed", at: at(1) });
    await addPastWait(tw, of, {
      outcome: '{"kind":"failed","error":{"name":"E","message":"no such host","stack":null,"code":null}}',
      endKind: "finished",
      at: at(2),
    });
    await addPastWait(tw, of, {
      outcome: '{"kind":"ending","ending":{"kind":"skipped","reason":"nothing to do"}}',
      endKind: "finished",
      at: at(3),
    });
    await addPastWait(tw, of, { outcome: '{"kind":"timeout"}', endKind: "timeout", at: at(4) });
  });

  test("are listed from the first to the current one, without payloads", async () => {
    const body = (await tw.call("GET", PATH)).json();
    expect(body.total_entries).toBe(5);
    expect(body.deferrals[0]).toEqual({
      try_number: 1,
      trigger_id: 7,
      kind: "http",
      name: null,
      method: null,
      on_timeout: "fail",
      deferred_at: "2025-12-31T01:00:00.000Z",
      timeout_at: null,
      fired_at: "2025-12-31T01:01:00.000Z",
      ended_at: "2025-12-31T01:01:01.000Z",
      end_kind: "resumed",
      outcome: "event",
      reason: null,
      outcome_bytes: Buffer.byteLength(EVENT),
    });
    const seen = body.deferrals.map((each: Record<string, unknown>) => [
      each["outcome"],
      each["reason"],
      each["end_kind"],
    ]);
    expect(seen).toEqual([
      ["event", null, "resumed"],
      ["failed", "no such host", "finished"],
      ["ending", "nothing to do", "finished"],
      ["timeout", null, "timeout"],
      [null, null, null],
    ]);
    expect(body.deferrals[4]).toMatchObject({ name: "orders", fired_at: null, outcome_bytes: null });
  });

  test("include their payloads on request, in pages", async () => {
    const body = (await tw.call("GET", `${PATH}?include_payload=true&limit=2`)).json();
    expect(body.deferrals.map((each: { payload: unknown }) => each.payload)).toEqual([
      { text: "a\0b" },
      null,
    ]);
    expect((await tw.call("GET", `${PATH}?include_payload=true&limit=51`)).statusCode).toBe(422);
    const newest = (await tw.call("GET", `${PATH}?order_by=-deferred_at&limit=1`)).json();
    expect(newest.deferrals).toMatchObject([{ name: "orders" }]);
  });

  test("belong to one existing instance, by map index", async () => {
    const mapped = (index: string) =>
      tw.call("GET", `/dags/etl/dagRuns/r1/taskInstances/mapped/${index}deferrals`);
    expect((await mapped("3/")).json()).toMatchObject({ total_entries: 1 });
    expect((await mapped("")).statusCode).toBe(404);
    expect((await tw.call("GET", `${PATH}?map_index=4`)).statusCode).toBe(404);
  });
});
