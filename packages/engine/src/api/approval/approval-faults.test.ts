/** Answers under faults: lost commits, a process that dies, edits and timeouts at the same moment, no scheduler. */
import { beforeAll, expect, it } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { type PgProxy, pgProxy } from "../../../test/support/pg-proxy.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import type { SchedulerJob } from "../../run/job/scheduler-job.ts";
import { Database } from "../../store/database/database.ts";
import { findApproval } from "../../store/list/approvals.ts";
import { answerApproval, lockApproval } from "../../store/trigger/approval-answer.ts";

let rig: SchedulerRig;
let proxy: PgProxy;
/** Its connections pass through the proxy. */
let api: Installation;
let scheduler: SchedulerJob;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "asks.ts": `import { dag } from "tradewind";
      export const ask = dag("ask", (d) => { d.approval("ok"); });
      export const brief = dag("brief", (d) => { d.approval("ok", { timeout: "1s" }); });`,
  });
  proxy = await pgProxy(rig.url);
  const db = Database.connect(proxy.url);
  api = await Installation.open({ beside: { db, wakeUps: rig.wakeUps } });
  scheduler = await rig.scheduler();
  return async () => {
    await db.close();
    await proxy.close();
  };
});

async function opened(dagId: string): Promise<{ run: number; id: number }> {
  const run = await rig.trigger(dagId);
  return { run, id: await idOf(run) };
}

async function idOf(run: number, not = 0): Promise<number> {
  const { dag_id, run_id } = (await rig.run(run)) as unknown as { dag_id: string; run_id: string };
  let id = 0;
  await rig.until(async () => {
    const list = await api.call("GET", `/approvals?state=open&dag_id=${dag_id}&run_id=${run_id}`);
    id = list.json().approvals.at(-1)?.id ?? 0;
    return id > not;
  }, `an open approval of ${dag_id}`);
  return id;
}

const approve = (id: number, headers: Record<string, string> = {}) =>
  api.call("POST", `/approvals/${id}/answer`, { decision: "approve" }, headers);
const stateOf = async (id: number) => (await findApproval(rig.db, id))?.state;
const outcome = { kind: "ending", ending: { kind: "success", output: { by: "x", comment: null } } } as const;

it("stores an answer whose commit is not confirmed, and returns it to a repeated request", async () => {
  const { id, run } = await opened("ask");
  proxy.set({ kind: "drop-commit-answer" });
  const lost = await approve(id, { "idempotency-key": "lost-1" });
  proxy.set({ kind: "pass" });
  expect(lost.json()).toMatchObject({ status: 503, code: "OUTCOME_UNKNOWN" });
  const again = await approve(id, { "idempotency-key": "lost-1" });
  expect(again.json()).toMatchObject({ state: "answered", answered_by: "admin" });
  expect(again.headers["idempotency-replayed"]).toBe("true");
  expect((await approve(id)).json().detail).toContain('was answered by "admin"');
  // No wake-up was sent: the sweep of the scheduler finds the answer.
  expect(await rig.ended(run)).toBe("success");
  const log = await api.call("GET", `/eventLogs?run_id=${(await rig.run(run)).run_id}&event=answer_approval`);
  expect(log.json().total_entries).toBe(1);
});

it("changes nothing if the process dies before the commit", async () => {
  const { id, run } = await opened("ask");
  const dying = rig.db.transaction(async (tx) => {
    expect(await lockApproval(tx, id)).toBe(true);
    expect(await answerApproval(tx, { id, by: "x", comment: null, outcome })).toBe(true);
    throw new Error("dies");
  });
  await expect(dying).rejects.toThrow("dies");
  expect(await stateOf(id)).toBe("open");
  expect((await approve(id)).statusCode).toBe(200);
  expect(await rig.ended(run)).toBe("success");
});

it("stores nothing if an edit ends the wait after the trigger was locked", async () => {
  const { id, run } = await opened("ask");
  await rig.db.transaction(async (tx) => {
    expect(await lockApproval(tx, id)).toBe(true);
    await rig.cancel(run);
    expect(await answerApproval(tx, { id, by: "x", comment: null, outcome })).toBe(false);
  });
  expect(await stateOf(id)).toBe("cancelled");
  expect(await rig.output(run, "ok")).toBeUndefined();
});

it("counts an answer that is stored before the timeout is applied", async () => {
  const { id, run } = await opened("brief");
  await scheduler.stop(0);
  const approval = (await api.call("GET", `/approvals/${id}`)).json();
  await rig.until(async () => Date.parse(approval.expires_at) < Date.now() - 100, "the timeout to pass");
  expect((await approve(id)).statusCode).toBe(200);
  scheduler = await rig.scheduler();
  expect(await rig.ended(run)).toBe("success");
  expect(await rig.output(run, "ok")).toEqual({ by: "admin", comment: null });
});

it("drops an answer with its wait if the task is cleared before the answer is applied", async () => {
  const { id, run } = await opened("ask");
  await scheduler.stop(0);
  expect((await approve(id)).statusCode).toBe(200);
  await rig.clear(run);
  scheduler = await rig.scheduler();
  const next = await idOf(run, id);
  expect(await stateOf(id)).toBe("answered");
  expect((await approve(id)).statusCode).toBe(409);
  expect((await approve(next)).statusCode).toBe(200);
  expect(await rig.ended(run)).toBe("success");
});
