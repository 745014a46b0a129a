import { randomUUID } from "node:crypto";
import { beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { claimAssignments, insertAssignments } from "../../store/execute/assignments.ts";
import { registerWorker } from "../../store/execute/workers.ts";

let tw: Installation;
let dagRunId: number;

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("sales", [{ taskId: "load" }, { taskId: "sum" }]));
  dagRunId = await tw.addRun("sales", { runId: "monday" });
});

async function worker(
  name: string,
  queues: readonly string[] | null = ["default"],
  leaseMs = 60_000,
): Promise<number> {
  return registerWorker(
    tw.database,
    { name, hostname: "host-1", pid: 4711, version: "0.1.0", slots: 4, queues, labels: { zone: "a" } },
    { leaseMs, tokenId: null, assignment: null },
  );
}

/** An attempt of the task that the worker has claimed; returns its id. */
async function claimed(by: number, taskId: string): Promise<string> {
  const id = randomUUID();
  await tw.addInstance(dagRunId, taskId, { state: "running", tryNumber: 2, attempt: id });
  const content = { run: { dagId: "sales", runId: "monday" }, tryNumber: 2 };
  const where = { executor: "queue", queue: "default", priority: 1, config: null };
  await insertAssignments(tw.database, [
    { id, kind: "attempt", dagRunId, taskId, mapIndex: -1, content, ...where },
  ]);
  await claimAssignments(tw.database, by, [id]);
  return id;
}

const list = async (query = "") =>
  (await tw.call("GET", `/workers${query}`)).json<{ workers: { name: string; state: string }[] }>().workers;
const drain = (id: number, isDraining: boolean) =>
  tw.call("POST", `/workers/${id}/drain`, { is_draining: isDraining });

it("lists workers by state, queue and name", async () => {
  await worker("big", ["default", "gpu"]);
  await worker("late", ["default"], -1_000);
  await worker("pod", null);
  await drain(await worker("leaving", ["gpu"]), true);
  expect((await list("?order_by=name")).map(({ name, state }) => [name, state])).toEqual([
    ["big", "alive"],
    ["late", "dead"],
    ["leaving", "draining"],
    ["pod", "alive"],
  ]);
  const names = async (query: string) => (await list(`?order_by=name&${query}`)).map(({ name }) => name);
  expect(await names("state=alive&state=draining")).toEqual(["big", "leaving", "pod"]);
  expect(await names("queue=gpu")).toEqual(["big", "leaving"]);
  expect(await names("name=pod&name=late")).toEqual(["late", "pod"]);
  expect((await tw.call("GET", "/workers?state=lost")).statusCode).toBe(422);
});

it("shows slots and the current attempts of a worker", async () => {
  const id = await worker("busy");
  const attempt = await claimed(id, "load");
  expect((await tw.call("GET", `/workers/${id}`)).json()).toMatchObject({
    ...{ id, name: "busy", hostname: "host-1", pid: 4711, version: "0.1.0", state: "alive" },
    ...{ queues: ["default"], labels: { zone: "a" }, slots: 4, free_slots: 3, running: 1, end_date: null },
    heartbeat_age: expect.any(Number),
    attempts: [
      {
        ...{ id: attempt, kind: "attempt", dag_id: "sales", dag_run_id: "monday", task_id: "load" },
        ...{ map_index: -1, try_number: 2, executor: "queue", queue: "default", is_stopping: false },
      },
    ],
  });
  expect((await tw.call("GET", "/workers/999999")).json()).toMatchObject({ code: "NOT_FOUND" });
});

it("drains a worker and undoes it, notifies the API servers, and records both", async () => {
  const id = await worker("node");
  tw.changes.splice(0);
  expect((await drain(id, true)).json()).toMatchObject({ state: "draining" });
  expect((await drain(id, false)).json()).toMatchObject({ state: "alive" });
  const change = { kind: "worker_changed", workerId: id };
  expect(tw.changes).toEqual([change, change]);
  const events = await tw.sql("SELECT action FROM audit_event WHERE details->>'name' = 'node' ORDER BY id");
  expect(events).toEqual([{ action: "drain_worker" }, { action: "undrain_worker" }]);
});

it("removes a worker: what it had is reported as lost, and it must not register again", async () => {
  const id = await worker("broken");
  const attempt = await claimed(id, "sum");
  expect((await tw.call("DELETE", `/workers/${id}`)).statusCode).toBe(204);
  expect(await tw.sql("SELECT content FROM report WHERE assignment_id = $1", [attempt])).toEqual([
    { content: { lost: "its worker broken on host-1 was removed" } },
  ]);
  expect((await tw.call("GET", `/workers/${id}`)).json()).toMatchObject({
    state: "dead",
    running: 0,
    attempts: [],
  });
});

it("rejects changes of a worker that has ended", async () => {
  const id = await worker("gone");
  await tw.call("DELETE", `/workers/${id}`);
  for (const answer of [await drain(id, true), await tw.call("DELETE", `/workers/${id}`)]) {
    expect(answer.statusCode).toBe(409);
    expect(answer.json()).toMatchObject({
      code: "CONFLICT",
      detail: expect.stringContaining("has ended (dead)"),
    });
  }
  expect((await drain(999_999, true)).statusCode).toBe(404);
});
