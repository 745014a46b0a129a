/** User actions in the signal log: user, action and object, and no other data. */
import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, beforeEach, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;

beforeAll(async () => {
  tw = await Installation.open();
  for (const dagId of ["etl", "report", "mail"])
    await tw.addDag(manifestOf(dagId, [{ taskId: "load" }, { taskId: "after", upstream: ["load"] }]));
});

beforeEach(async () => {
  await tw.sql("DELETE FROM signal WHERE namespace = 'action'");
  await tw.sql("DELETE FROM audit_event");
});

async function told(): Promise<[string, Json][]> {
  const rows = await tw.sql<{ key: string; value: Json; sender: string }>(
    "SELECT key, value, sender FROM signal WHERE namespace = 'action' ORDER BY tx, id",
  );
  for (const { sender } of rows) expect(sender).toBe("admin");
  return rows.map(({ key, value }) => [key, value]);
}

const by = (action: string) => ({ action, by: "admin" });

async function done(
  ...calls: readonly [method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown][]
) {
  for (const [method, path, body] of calls) {
    const response = await tw.call(method, path, body);
    expect(response.statusCode, `${method} ${path}: ${response.body}`).toBeLessThan(300);
  }
}

it("logs actions on runs and tasks by name", async () => {
  await done(["POST", "/dags/etl/dagRuns", { dag_run_id: "r1", logical_date: null }]);
  const [run] = await tw.sql<{ id: number }>("SELECT id FROM dag_run WHERE run_id = 'r1'");
  for (const task of ["load", "after"])
    await tw.addInstance(run!.id, task, { state: "failed", tryNumber: 1 });
  const task = "/dags/etl/dagRuns/r1/taskInstances/load";
  await done(
    ["PATCH", "/dags/etl/dagRuns/r1", { note: "secret" }],
    ["PATCH", task, { new_state: "success" }],
    ["PATCH", `${task}/-1`, { note: "secret" }],
    ["POST", "/dags/etl/clearTaskInstances", { dry_run: false, dag_run_id: "r1", only_failed: false }],
    ["POST", "/dags/etl/dagRuns/r1/clear", { dry_run: true }],
    ["POST", "/dags/etl/dagRuns/r1/clear", { dry_run: false }],
    ["POST", "/dags/etl/dagRuns/r1/cancel"],
    ["DELETE", "/dags/etl/dagRuns/r1"],
  );
  expect(await told()).toEqual([
    ["etl/r1", by("trigger_dag_run")],
    ["etl/r1", by("patch_dag_run")],
    ["etl/r1/load", by("patch_task_instance")],
    ["etl/r1/load", { ...by("patch_task_instance"), mapIndex: -1 }],
    ["etl/r1", by("clear_task_instances")],
    ["etl/r1", by("clear_dag_run")],
    ["etl/r1", by("cancel_dag_run")],
    ["etl/r1", by("delete_dag_run")],
  ]);
});

it("logs actions on DAGs, one signal per DAG", async () => {
  await done(
    ["PATCH", "/dags/etl", { is_paused: true }],
    ["PATCH", "/dags/etl", { is_paused: true }],
    ["PATCH", "/dags?dag_id_pattern=~", { is_paused: false }],
    ["PATCH", "/dags?dag_id_pattern=~", { is_paused: true }],
    ["DELETE", "/dags/mail"],
  );
  const rows = await told();
  expect(rows.slice(0, 2)).toEqual([
    ["etl", by("pause_dag")],
    ["etl", by("unpause_dag")],
  ]);
  expect(rows.slice(2).toSorted(([a], [b]) => a.localeCompare(b))).toEqual([
    ["etl", by("pause_dag")],
    ["mail", by("pause_dag")],
    ["mail", by("delete_dag")],
    ["report", by("pause_dag")],
  ]);
});

it("logs actions on settings by name, without values", async () => {
  await done(
    ["POST", "/pools", { name: "gpu", slots: 2, description: "secret" }],
    ["PATCH", "/pools/gpu", { slots: 3 }],
    ["DELETE", "/pools/gpu"],
    ["POST", "/variables", { key: "password", value: "secret" }],
    ["PATCH", "/variables/password", { key: "password", value: "secret" }],
    ["DELETE", "/variables/password"],
    ["POST", "/connections", { connection_id: "db", conn_type: "postgres", password: "secret" }],
    ["PATCH", "/connections/db", { connection_id: "db", conn_type: "postgres", password: "secret" }],
    ["DELETE", "/connections/db"],
    ["POST", "/tokens", { name: "secret" }],
  );
  const rows = await told();
  expect(rows.map(([key]) => key)).toEqual([
    ...Array(3).fill("pools/gpu"),
    ...Array(3).fill("variables/password"),
    ...Array(3).fill("connections/db"),
    expect.stringMatching(/^tokens\/\d+$/),
  ]);
  expect(rows.map(([, value]) => value)).toEqual([
    ...["pool", "variable", "connection"].flatMap((what) =>
      ["create", "patch", "delete"].map((deed) => by(`${deed}_${what}`)),
    ),
    by("create_token"),
  ]);
  expect(JSON.stringify(rows)).not.toContain("secret");
});

it("logs a repeated request once, and a rejected one not at all", async () => {
  const send = (body: unknown) => tw.call("POST", "/pools", body, { "idempotency-key": "once" });
  for (let n = 0; n < 2; n++) expect((await send({ name: "one", slots: 1 })).statusCode).toBe(201);
  expect((await tw.call("POST", "/pools", { name: "one", slots: 1 })).statusCode).toBe(409);
  expect(await told()).toEqual([["pools/one", by("create_pool")]]);
});

it("logs manual commands under names of their own", async () => {
  const id = await tw.addRun("etl", { runId: "r2" });
  await tw.addInstance(id, "load", { state: "pending" });
  await done(["POST", "/dags/etl/dagRuns/r2/taskInstances/load/stop"]);
  expect(await told()).toEqual([["etl/r2/load", by("stop")]]);
  const [audit] = await tw.sql<{ action: string }>("SELECT action FROM audit_event");
  expect(audit?.action).toBe("stop_task_instance");
  // In an ended run it is no command: the tasks to start were cleared.
  await tw.sql("UPDATE dag_run SET state = 'failed' WHERE id = $1", [id]);
  await tw.sql("UPDATE task_instance SET state = 'failed', try_number = 1 WHERE dag_run_id = $1", [id]);
  await done(["POST", "/dags/etl/dagRuns/r2/taskInstances/load/start"]);
  expect((await told())[1]).toEqual(["etl/r2/load", by("start_task_instance")]);
});
