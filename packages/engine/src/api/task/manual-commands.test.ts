import { beforeAll, describe, expect, test } from "vitest";
import { drivenManifest } from "../../../test/api/driven.ts";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b", upstream: ["a"] }]));
  await tw.addDag(drivenManifest("online"));
});

const post = (path: string, key?: string) =>
  tw.call("POST", `/dags/${path}`, undefined, key === undefined ? {} : { "idempotency-key": key });
const actions = () =>
  tw.sql<{ key: string; value: unknown; sender: string; id: number }>(
    "SELECT id, key, value, sender FROM signal WHERE namespace = 'action' ORDER BY id",
  );

describe("task of a run that has not ended", () => {
  test.each(["start", "restart", "stop"])(
    "writes %s to the signal log, the audit log and the response",
    async (action) => {
      const id = await tw.addRun("etl", { runId: `now-${action}` });
      await tw.addInstance(id, "a", { state: "running", tryNumber: 1 });
      tw.changes.length = 0;
      const answer = await post(`etl/dagRuns/now-${action}/taskInstances/a/${action}`);
      const [sent] = (await actions()).slice(-1);
      expect([answer.statusCode, answer.json()]).toEqual([
        202,
        {
          ...{ dag_id: "etl", dag_run_id: `now-${action}`, task_id: "a" },
          ...{ action, version: sent!.id, cleared: [], reopened: false },
        },
      ]);
      expect(sent).toMatchObject({
        key: `etl/now-${action}/a`,
        value: { action, by: "admin" },
        sender: "admin",
      });
      expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }, { kind: "signals_sent" }]);
      const [deed] = await tw.sql("SELECT * FROM audit_event ORDER BY id DESC LIMIT 1");
      expect(deed).toMatchObject({
        ...{ actor: "admin", action: `${action}_task_instance`, dag_id: "etl", run_id: `now-${action}` },
        ...{ task_id: "a", details: { version: sent!.id } },
      });
      tw.changes.length = 0;
      await post(`etl/dagRuns/now-${action}/taskInstances/b/${action}`);
      expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }, { kind: "signals_sent" }]);
    },
  );

  test("executes a command once per idempotency key", async () => {
    await tw.addRun("etl", { runId: "keyed" });
    const before = (await actions()).length;
    const path = "etl/dagRuns/keyed/taskInstances/a/start";
    const first = await post(path, "k-1");
    tw.changes.length = 0;
    const again = await post(path, "k-1");
    expect(again.headers["idempotency-replayed"]).toBe("true");
    expect([again.statusCode, again.json()]).toEqual([202, first.json()]);
    expect(tw.changes).toEqual([]);
    expect((await actions()).length).toBe(before + 1);
    expect((await post("etl/dagRuns/keyed/taskInstances/b/start", "k-1")).statusCode).toBe(422);
  });

  test("rejects an unknown task or run", async () => {
    await tw.addRun("etl", { runId: "there" });
    for (const path of ["there/taskInstances/zzz/start", "gone/taskInstances/a/stop", "gone/stop"]) {
      const answer = await post(`etl/dagRuns/${path}`);
      expect([path, answer.statusCode, answer.json().code]).toEqual([path, 404, "NOT_FOUND"]);
    }
    expect((await post("etl/dagRuns/there/taskInstances/zzz/start")).json().detail).toContain(
      'Run "there" of DAG "etl" has no task "zzz"',
    );
  });
});

describe("task of an ended run", () => {
  test("clears the task and its downstream tasks to start it", async () => {
    const id = await tw.addRun("etl", { runId: "over", state: "success" });
    for (const task of ["a", "b"]) await tw.addInstance(id, task, { state: "success", tryNumber: 1 });
    tw.changes.length = 0;
    const answer = await post("etl/dagRuns/over/taskInstances/a/restart");
    expect([answer.statusCode, answer.json()]).toMatchObject([
      202,
      {
        version: null,
        reopened: false,
        cleared: [
          { task_id: "a", map_index: -1 },
          { task_id: "b", map_index: -1 },
        ],
      },
    ]);
    expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }]);
    const [deed] = await tw.sql("SELECT details FROM audit_event ORDER BY id DESC LIMIT 1");
    expect(deed).toEqual({ details: { version: null, instances: 2 } });
  });

  test("clears and starts a task that never started", async () => {
    const id = await tw.addRun("online", { runId: "over", state: "success" });
    await tw.addInstance(id, "train", { state: "skipped" });
    tw.changes.length = 0;
    expect((await post("online/dagRuns/over/taskInstances/train/start")).json()).toMatchObject({
      version: expect.any(Number),
      cleared: [{ task_id: "train" }],
      // All of its rules are armed again.
      reopened: true,
    });
    expect(tw.changes).toEqual([{ kind: "run_edited", dagRunIds: [id] }, { kind: "signals_sent" }]);
  });

  test("rejects a stop with the remedy", async () => {
    await tw.addRun("etl", { runId: "ended", state: "failed" });
    const stop = await post("etl/dagRuns/ended/taskInstances/a/stop");
    expect([stop.statusCode, stop.json().code, stop.json().detail]).toEqual([
      409,
      "RUN_OVER",
      'Run "ended" of DAG "etl" has ended (failed): none of its tasks is running. Rerun the task with: tradewind tasks start etl ended a',
    ]);
    const start = await post("etl/dagRuns/ended/taskInstances/a/start");
    expect([start.statusCode, start.json().detail]).toEqual([
      409,
      'Run "ended" of DAG "etl" ended before its start (failed). Start another run with: tradewind dags trigger etl',
    ]);
  });
});

describe("a run", () => {
  test("is closed", async () => {
    await tw.addRun("online", { runId: "open" });
    const answer = await post("online/dagRuns/open/stop");
    expect([answer.statusCode, answer.json()]).toMatchObject([202, { task_id: null, action: "stop" }]);
    expect((await actions()).at(-1)).toMatchObject({
      key: "online/open",
      value: { action: "stop", by: "admin" },
    });
    const [deed] = await tw.sql("SELECT action, task_id FROM audit_event ORDER BY id DESC LIMIT 1");
    expect(deed).toEqual({ action: "stop_dag_run", task_id: null });
  });

  test("rejects closing a run that is not signal-driven or has ended", async () => {
    await tw.addRun("etl", { runId: "plain" });
    const plain = await post("etl/dagRuns/plain/stop");
    expect([plain.statusCode, plain.json().code, plain.json().detail]).toEqual([
      409,
      "RUN_NOT_DRIVEN",
      'Run "plain" of DAG "etl" is not signal-driven and ends when its tasks have ended. End it now with: tradewind runs cancel etl plain',
    ]);
    await tw.addRun("online", { runId: "past", state: "success" });
    const past = await post("online/dagRuns/past/stop");
    expect([past.statusCode, past.json().code]).toEqual([409, "RUN_OVER"]);
  });
});

describe("dead letter of an onSignal", () => {
  const bury = async (listener: string) => {
    const sql = `INSERT INTO signal_dead_letter
        (listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts)
      VALUES ($1, 1, '1', 'default', 'ask.it', '1', 'test', now(), 'no', 5) RETURNING id`;
    return (await tw.sql<{ id: number }>(sql, [listener]))[0]!.id;
  };
  const retry = (id: number) => tw.call("POST", `/signals/deadLetters/${id}/retry`);

  test("makes the owner of its run reload it", async () => {
    const id = await tw.addRun("online", { runId: "buried/2", state: "running" });
    const letter = await bury("task:online/buried/2/ask");
    const generation = () => tw.sql("SELECT generation FROM dag_run WHERE id = $1", [id]);
    const [before] = (await generation()) as { generation: number }[];
    tw.changes.length = 0;
    expect((await retry(letter)).statusCode).toBe(202);
    expect(await generation()).toEqual([{ generation: before!.generation + 1 }]);
    expect(tw.changes).toEqual([{ kind: "signals_sent" }, { kind: "run_edited", dagRunIds: [id] }]);
  });

  test("stays dead if its run has ended or was deleted, unlike one of a listener with such a name", async () => {
    await tw.addRun("online", { runId: "buried", state: "success" });
    const over = await bury("task:online/buried/ask");
    const answer = await retry(over);
    expect([answer.statusCode, answer.json().code, answer.json().detail]).toEqual([
      409,
      "RUN_OVER",
      `Run "buried" of DAG "online" has ended (success): its task "ask" no longer receives signals. Delete the dead letter with: tradewind signals dead-letters delete ${over}`,
    ]);
    expect((await retry(await bury("task:online/never/ask"))).json().detail).toContain(
      "does not exist any more",
    );
    await tw.sql(
      `INSERT INTO signal_listener (name, filter, tx, signal_id) VALUES ('task:a/b/c', '{}', '1', 0)`,
    );
    expect((await retry(await bury("task:a/b/c"))).statusCode).toBe(202);
  });
});
