import { beforeAll, describe, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addDeadline, addDelivery } from "../../../test/api/missed.ts";

let tw: Installation;
const id = { missed: 0, met: 0, dead: 0, done: 0, mail: 0 };

beforeAll(async () => {
  tw = await Installation.open();
  await tw.addDag(manifestOf("etl", [{ taskId: "load" }]));
  await tw.addDag(manifestOf("other", [{ taskId: "load" }]));
  const run = await tw.addRun("etl", { runId: "r1", state: "running" });
  const second = await tw.addRun("other", { runId: "r2", state: "success" });
  id.missed = await addDeadline(tw, { dagRunId: run, taskId: "load" });
  id.met = await addDeadline(tw, {
    dagRunId: run,
    ordinal: 1,
    state: "met",
    dueAt: new Date("2026-01-02T00:00:00Z"),
  });
  await addDeadline(tw, { dagRunId: second, state: "pending", dueAt: new Date("2026-01-03T00:00:00Z") });
  const secret = { kind: "webhook", to: "https://hooks.example.com/services/T0/hunter2" } as const;
  id.dead = await addDelivery(tw, id.missed, secret, { error: "answered 500" });
  id.done = await addDelivery(tw, id.missed, { kind: "function" }, { state: "done", attempts: 1 });
  id.mail = await addDelivery(
    tw,
    id.missed,
    { kind: "email", to: ["a@example.com", "b@example.com"], connection: "mail" },
    { state: "pending", attempts: 2 },
  );
});

describe("deadlines", () => {
  test("are listed latest first and by filter", async () => {
    const all = (await tw.call("GET", "/deadlines")).json();
    expect(all.total_entries).toBe(3);
    expect(all.deadlines.map((each: { dag_id: string; state: string }) => [each.dag_id, each.state])).toEqual(
      [
        ["other", "pending"],
        ["etl", "met"],
        ["etl", "missed"],
      ],
    );
    expect(all.deadlines[2]).toMatchObject({
      id: id.missed,
      dag_run_id: "r1",
      task_id: "load",
      ordinal: 0,
      after: "queued",
      due_at: "2026-01-01T10:00:00.000Z",
      dag_run_state: "running",
      deliveries: 3,
      done_deliveries: 1,
      dead_deliveries: 1,
    });
    expect(all.deadlines[1]).toMatchObject({ task_id: null, ordinal: 1 });
    const ids = async (query: string) =>
      (await tw.call("GET", `/deadlines?${query}`)).json().deadlines.map((each: { id: number }) => each.id);
    expect(await ids("state=missed")).toEqual([id.missed]);
    expect(await ids("dag_id=etl&order_by=due_at")).toEqual([id.missed, id.met]);
    expect(await ids("dag_run_id=r1&task_id=load")).toEqual([id.missed]);
    expect((await tw.call("GET", "/deadlines?state=late")).statusCode).toBe(422);
  });

  test("have deliveries that show their receivers without secrets", async () => {
    const answer = await tw.call("GET", `/deliveries?deadline_id=${id.missed}&order_by=id`);
    expect(answer.body).not.toContain("hunter2");
    expect(answer.json().deliveries).toMatchObject([
      {
        id: id.dead,
        kind: "webhook",
        receiver: "https://hooks.example.com",
        state: "dead",
        error: "answered 500",
        next_try_at: null,
      },
      { id: id.done, kind: "function", receiver: null, state: "done", attempts: 1 },
      { id: id.mail, kind: "email", receiver: "a@example.com, b@example.com", state: "pending", attempts: 2 },
    ]);
    const dead = (await tw.call("GET", "/deliveries?state=dead")).json();
    expect(dead).toMatchObject({ total_entries: 1, deliveries: [{ id: id.dead }] });
  });

  test("have dead deliveries that can be retried once, with an audit record", async () => {
    const retry = (delivery: number) => tw.call("POST", `/deliveries/${delivery}/retry`);
    expect((await retry(id.dead)).json()).toMatchObject({ id: id.dead, state: "pending", attempts: 0 });
    const again = await retry(id.dead);
    expect(again.statusCode).toBe(409);
    expect(again.json().detail).toContain("is pending: only dead deliveries");
    expect((await retry(999_999)).statusCode).toBe(404);
    const [deed] = await tw.sql<{ dag_id: string }>(
      "SELECT dag_id FROM audit_event WHERE action = 'retry_delivery'",
    );
    expect(deed).toEqual({ dag_id: "etl" });
  });
});
