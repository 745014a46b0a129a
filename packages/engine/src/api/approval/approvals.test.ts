/** Approvals from the definition to the answer, with real tasks, a scheduler and the API on one database. */
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { beforeAll, describe, expect, it } from "vitest";
import { Installation } from "../../../test/api/installation.ts";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { createToken } from "../../store/access/tokens.ts";
import { adhoc } from "../../store/database/database.ts";
import type { ApprovalDocument } from "./approval-document.ts";

let rig: SchedulerRig;
let api: Installation;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "asks.ts": `
      import { dag, on, signal, TimeDeltaTrigger } from "tradewind";
      import { z } from ${JSON.stringify(createRequire(import.meta.url).resolve("zod"))};
      const Target = z.object({
        region: z.enum(["eu", "us"]),
        rows: z.number().int().min(1).default(10),
        note: z.string().transform((text) => text.trim()).optional(),
      });
      export const plain = dag("plain", { defaults: { timeout: "50ms", retries: 2, retryDelay: 0 } }, (d) => {
        const ok = d.approval("ok", { title: "Publish?", message: "**now**", onReject: "skip" });
        d.task("publish", { inputs: { ok } }, ({ ok }) => ok.by + " " + ok.comment);
        const must = d.approval("must", { onReject: "fail" });
        d.task("after", { after: must }, () => 1);
      });
      export const form = dag("form", (d) => {
        const size = d.task("size", () => 7);
        const target = d.approval("target", {
          inputs: { size },
          title: ({ size }) => "Where do " + size + " rows go?",
          message: (_, ctx) => "run " + ctx.run.id,
          form: Target,
          assignees: ["ann", "bo"],
        });
        d.task("copy", { inputs: { target } }, ({ target }) => target);
      });
      const Range = z.object({ from: z.number(), to: z.number() }).refine(({ from, to }) => from < to, "from must be less than to");
      export const range = dag("range", (d) => {
        d.approval("range", { form: Range });
      });
      export const late = dag("late", { defaults: { retries: 3, retryDelay: 0 } }, (d) => {
        d.approval("fails", { timeout: "300ms" });
        d.approval("skips", { timeout: "300ms", onTimeout: "skip" });
        d.approval("approves", { timeout: "300ms", onTimeout: "approve" });
        d.approval("answers", { timeout: "300ms", form: Target, onTimeout: { answer: { region: "us" } } });
      });
      const states = signal<{ approval: { waitsFor: string } }>("quiet/*", undefined, { namespace: "task" });
      export const asks = dag("asks", { schedule: on(states.where({ state: "deferred", approval: {} })) }, (d) => {
        d.task("text", (_, ctx) => ctx.params.signal.key + " waits for " + ctx.params.signal.value.approval.waitsFor);
      });
      export const quiet = dag("quiet", (d) => {
        const first = d.trigger("first", new TimeDeltaTrigger({ delta: "1ms" }));
        d.approval("ok", { after: first, title: "Publish?" });
      });
      export const regions = dag("regions", (d) => {
        d.mapGroup("each", { over: ["eu", "us"], label: (region) => region }, (g, region) => {
          g.approval("ok", { inputs: { region }, title: ({ region }) => "Publish " + region + "?" });
        });
      });
    `,
  });
  api = await Installation.open({ beside: rig });
  for (const name of ["ann", "bo", "cy"]) {
    tokens[name] = `tw_${randomBytes(32).toString("base64url")}`;
    await createToken(rig.db, { name, token: tokens[name], role: "admin", expiresAt: null });
  }
  await rig.triggerer();
  await rig.scheduler();
});

const as = (name: string) => ({ authorization: `Bearer ${tokens[name]}` });

async function open(dagId: string, run: number, count: number): Promise<Record<string, ApprovalDocument>> {
  const { run_id } = await rig.run(run);
  const query = `/approvals?dag_id=${dagId}&run_id=${run_id}&state=open`;
  const read = async () => (await api.call("GET", query)).json<{ approvals: ApprovalDocument[] }>().approvals;
  await rig.until(async () => (await read()).length === count, `${count} open approvals of ${dagId}`);
  return Object.fromEntries((await read()).map((each) => [each.rendered_map_index ?? each.task_id, each]));
}

const answer = (id: number, body: object, headers: Record<string, string> = {}) =>
  api.call("POST", `/approvals/${id}/answer`, body, headers);
const read = async (id: number) => (await api.call("GET", `/approvals/${id}`)).json<ApprovalDocument>();
const task = async (run: number, id: string) => (await rig.tasks(run))[id]!;

describe("without a form", () => {
  it("approves without any process, and passes who did it", async () => {
    const run = await rig.trigger("plain");
    const { must, ok } = await open("plain", run, 2);
    expect(ok).toMatchObject({
      ...{ title: "Publish?", message: "**now**", assignees: [], may_answer: true, state: "open" },
      ...{ has_form: false, form: null, on_reject: "skip", on_timeout: "fail", expires_at: null },
      ...{ answered_by: null, decision: null, problem: null, try_number: 1, map_index: -1 },
    });
    expect(must).toMatchObject({ title: "must", message: null, on_reject: "fail" });
    const approved = await answer(ok!.id, { decision: "approve", comment: "looks good" }, as("ann"));
    expect(approved.json()).toMatchObject({
      ...{
        state: "answered",
        decision: "approve",
        answered_by: "ann",
        comment: "looks good",
        may_answer: false,
      },
    });
    await rig.until(async () => (await task(run, "publish")).state === "success", "the task after it");
    expect(await rig.output(run, "ok")).toEqual({ by: "ann", comment: "looks good" });
    expect(await rig.output(run, "publish")).toBe("ann looks good");
    expect(await task(run, "ok")).toMatchObject({ state: "success", pid: null });

    expect((await answer(must!.id, { decision: "reject", comment: "too early" })).statusCode).toBe(200);
    expect(await rig.ended(run)).toBe("failed");
    expect(await task(run, "must")).toMatchObject({ state: "failed", try_number: 1, pid: null });
    expect((await task(run, "must")).reason).toContain("rejected by admin: too early");
    expect((await task(run, "after")).state).toBe("upstream_failed");
    expect(await read(must!.id)).toMatchObject({
      decision: "reject",
      comment: "too early",
      answered_by: "admin",
    });
  });

  it("skips what comes after a rejection, and records both in the audit log", async () => {
    const run = await rig.trigger("plain");
    const { must, ok } = await open("plain", run, 2);
    await answer(ok!.id, { decision: "reject" }, as("bo"));
    await answer(must!.id, { decision: "approve" });
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.states(run)).toEqual({
      ok: "skipped",
      publish: "skipped",
      must: "success",
      after: "success",
    });
    const { run_id } = await rig.run(run);
    const log = (
      await api.call("GET", `/eventLogs?run_id=${run_id}&event=answer_approval&order_by=id`)
    ).json();
    expect(log.event_logs).toHaveLength(2);
    expect(log.event_logs[0]).toMatchObject({ owner: "bo", task_id: "ok" });
    expect(log.event_logs[0].extra).toContain('"decision":"reject"');
  });

  it("accepts neither an answer nor an unknown decision", async () => {
    const run = await rig.trigger("plain");
    const { ok } = await open("plain", run, 2);
    const refused = await answer(ok!.id, { decision: "approve", answer: 1 });
    expect(refused.json()).toMatchObject({ status: 422, detail: [{ loc: ["body", "answer"] }] });
    expect((await answer(ok!.id, { decision: "maybe" })).statusCode).toBe(422);
    expect((await answer(2 ** 40, { decision: "approve" })).statusCode).toBe(404);
    expect((await read(ok!.id)).state).toBe("open");
    await rig.cancel(run);
  });
});

describe("with a form", () => {
  it("computes its texts, validates the answer and passes what the validator returns", async () => {
    const run = await rig.trigger("form");
    const { run_id } = await rig.run(run);
    const { target } = await open("form", run, 1);
    expect(target).toMatchObject({
      ...{ title: "Where do 7 rows go?", message: `run ${run_id}`, assignees: ["ann", "bo"], has_form: true },
      form: { type: "object", properties: { region: { enum: ["eu", "us"] }, rows: { default: 10 } } },
    });
    const missing = await answer(target!.id, { decision: "approve" }, as("ann"));
    expect(missing.json()).toMatchObject({
      status: 422,
      detail: [{ loc: ["body", "answer"], type: "missing" }],
    });
    const wrong = await answer(
      target!.id,
      { decision: "approve", answer: { region: "asia", rows: 0, nite: "x" } },
      as("ann"),
    );
    expect(wrong.json().detail.map(({ loc }: { loc: string[] }) => loc)).toEqual([
      ["body", "answer", "nite"],
      ["body", "answer", "rows"],
      ["body", "answer", "region"],
    ]);
    expect(wrong.json().errors[2]).toEqual({ pointer: "/answer/region", message: "must be one of: eu, us" });
    const right = { decision: "approve", answer: { region: "eu", note: "  ok " } };
    expect((await answer(target!.id, right, as("bo"))).json()).toMatchObject({ answer: right.answer });
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.output(run, "copy")).toEqual({ region: "eu", rows: 10, note: "ok" });
    expect(await read(target!.id)).toMatchObject({
      answered_by: "bo",
      answer: right.answer,
      may_answer: false,
    });
  });

  it("allows only assignees and the administrator, and names them", async () => {
    const run = await rig.trigger("form");
    const { target } = await open("form", run, 1);
    const body = { decision: "approve", answer: { region: "eu" } };
    const refused = await answer(target!.id, body, as("cy"));
    expect(refused.json()).toMatchObject({ status: 403, code: "APPROVAL_NOT_ASSIGNED" });
    expect(refused.json().detail).toMatch(/"cy" may not answer .* "ann", "bo"/);
    const seen = await api.call("GET", `/approvals/${target!.id}`, undefined, as("cy"));
    expect(seen.json()).toMatchObject({ may_answer: false, state: "open" });
    expect((await answer(target!.id, body)).json()).toMatchObject({ answered_by: "admin" });
    expect(await rig.ended(run)).toBe("success");
  });

  it("opens again if only the author's validator rejects the answer", async () => {
    const run = await rig.trigger("range");
    const first = (await open("range", run, 1)).range!;
    await answer(first.id, { decision: "approve", answer: { from: 2, to: 1 } }, as("ann"));
    await rig.until(async () => (await read(first.id)).state === "answered", "the first answer");
    const second = (await open("range", run, 1)).range!;
    expect(second.id).not.toBe(first.id);
    expect(second).toMatchObject({ problem: "from must be less than to", try_number: 1 });
    await answer(second.id, { decision: "approve", answer: { from: 1, to: 2 } });
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.output(run, "range")).toEqual({ from: 1, to: 2 });
    expect((await task(run, "range")).try_number).toBe(1);
  });
});

describe("a timeout", () => {
  it("fails without a retry, skips, approves or answers", async () => {
    const run = await rig.trigger("late");
    expect(await rig.ended(run)).toBe("failed");
    expect(await rig.states(run)).toEqual({
      ...{ fails: "failed", skips: "skipped", approves: "success", answers: "success" },
    });
    expect((await task(run, "fails")).try_number).toBe(1);
    expect((await task(run, "fails")).reason).toContain('an answer to "fails"');
    expect(await rig.output(run, "approves")).toEqual({ by: null, comment: null });
    expect(await rig.output(run, "answers")).toEqual({ region: "us", rows: 10 });
    const { run_id } = await rig.run(run);
    const { approvals } = (await api.call("GET", `/approvals?run_id=${run_id}&state=timed_out`)).json();
    expect(approvals).toHaveLength(4);
    const answers = approvals.find((each: ApprovalDocument) => each.task_id === "answers");
    expect(answers).toMatchObject({ answered_by: null, answer: { region: "us" }, on_timeout: "answer" });
    const refused = await answer(answers.id, { decision: "reject" });
    expect(refused.json()).toMatchObject({ status: 409, code: "APPROVAL_CLOSED" });
    expect(refused.json().detail).toMatch(/timed out at 2/);
  });
});

describe("concurrency and crashes", () => {
  it("accepts exactly one of many answers, and tells the others whose it was", async () => {
    const run = await rig.trigger("range");
    const { range } = await open("range", run, 1);
    const names = ["ann", "bo", "cy", "ann", "bo", "cy"];
    const answers = await Promise.all(
      names.map((name, from) =>
        answer(range!.id, { decision: "approve", answer: { from, to: 9 } }, as(name)),
      ),
    );
    const won = answers.filter(({ statusCode }) => statusCode === 200);
    expect(won).toHaveLength(1);
    const { answer: stored, answered_by: by } = won[0]!.json<ApprovalDocument>();
    for (const lost of answers.filter((each) => each !== won[0])) {
      expect(lost.json()).toMatchObject({ status: 409, code: "APPROVAL_CLOSED" });
      expect(lost.json().detail).toContain(`was answered by "${by}"`);
    }
    expect(await rig.ended(run)).toBe("success");
    expect(await rig.output(run, "range")).toEqual(stored);
    const { run_id } = await rig.run(run);
    const log = await api.call("GET", `/eventLogs?run_id=${run_id}&event=answer_approval`);
    expect(log.json().total_entries).toBe(1);
  });

  it("repeats the response to the same Idempotency-Key", async () => {
    const run = await rig.trigger("range");
    const { range } = await open("range", run, 1);
    const body = { decision: "approve", answer: { from: 1, to: 2 } };
    const headers = { "idempotency-key": randomBytes(8).toString("hex") };
    const first = await answer(range!.id, body, headers);
    const again = await answer(range!.id, body, headers);
    expect(first.statusCode).toBe(200);
    expect(again.json()).toEqual(first.json());
    expect(again.headers["idempotency-replayed"]).toBe("true");
    expect((await answer(range!.id, body)).statusCode).toBe(409);
    expect(await rig.ended(run)).toBe("success");
  });

  it.each(["cancel", "clear", "mark"] as const)("rejects an answer after a %s", async (edit) => {
    const run = await rig.trigger("range");
    const { range } = await open("range", run, 1);
    if (edit === "cancel") await rig.cancel(run);
    else if (edit === "clear") await rig.clear(run);
    else await rig.mark(run, "range", "success");
    const late = await answer(range!.id, { decision: "approve", answer: { from: 1, to: 2 } });
    expect(late.json()).toMatchObject({ status: 409, code: "APPROVAL_CLOSED" });
    expect(late.json().detail).toContain("was cancelled at");
    expect((await read(range!.id)).state).toBe("cancelled");
    if (edit !== "clear") return;
    const again = (await open("range", run, 1)).range!;
    expect(again.id).not.toBe(range!.id);
    await rig.cancel(run);
  });

  it("applies an answer that was stored while no scheduler was alive and no wake-up was sent", async () => {
    const own = await SchedulerRig.open();
    await own.publish({
      "one.ts": `import { dag } from "tradewind";
        export default dag("one", (d) => { d.approval("ok"); });`,
    });
    const front = await Installation.open({ beside: { db: own.db, wakeUps: api.wakeUps } });
    const scheduler = await own.scheduler();
    const run = await own.trigger("one");
    const list = async () => (await front.call("GET", "/approvals?state=open")).json().approvals;
    await own.until(async () => (await list()).length === 1, "the approval");
    await scheduler.stop(0);
    const [{ id }] = await list();
    expect((await front.call("POST", `/approvals/${id}/answer`, { decision: "approve" })).statusCode).toBe(
      200,
    );
    expect((await own.run(run)).state).toBe("running");
    await own.scheduler();
    expect(await own.ended(run)).toBe("success");
    expect(await own.output(run, "ok")).toEqual({ by: "admin", comment: null });
  });
});

describe("the list", () => {
  it("filters, pages by cursor and labels mapped instances", async () => {
    const run = await rig.trigger("regions");
    const { eu, us } = await open("regions", run, 2);
    expect([eu!.title, us!.title]).toEqual(["Publish eu?", "Publish us?"]);
    const other = await rig.trigger("form");
    const { target } = await open("form", other, 1);
    const ids = async (query: string) => {
      const { approvals } = (await api.call("GET", `/approvals?state=open&${query}`)).json();
      return approvals.map(({ id }: { id: number }) => id);
    };
    expect(await ids("assignee=bo")).toEqual([target!.id]);
    expect(await ids("assignee=cy")).toEqual([]);
    expect(await ids("dag_id=regions")).toEqual([eu!.id, us!.id].sort((a, b) => a - b));
    expect(await ids("dag_id=regions&order_by=-id")).toEqual([eu!.id, us!.id].sort((a, b) => b - a));
    const first = (await api.call("GET", "/approvals?dag_id=regions&cursor=&limit=1")).json();
    expect(first).toMatchObject({ total_entries: null, previous_cursor: null });
    const next = await api.call("GET", `/approvals?dag_id=regions&limit=1&cursor=${first.next_cursor}`);
    expect([first, next.json()].flatMap(({ approvals }) => approvals)).toHaveLength(2);
    expect(await ids("state=cancelled&dag_id=regions")).toHaveLength(2);
    await rig.cancel(run);
    await rig.cancel(other);
    expect(await ids("dag_id=regions")).toEqual([]);
  });

  it("keeps a wait to one row besides its trigger, with no worker, slot or triggerer", async () => {
    const run = await rig.trigger("range");
    await open("range", run, 1);
    const sql = `SELECT d.kind, g.owner_job, g.wake_at = 'infinity' AS never FROM deferral d JOIN trigger g ON g.id = d.waits_on
                 WHERE d.dag_run_id = $1`;
    expect(await rig.db.rows(adhoc(sql), [run])).toEqual([
      { kind: "tradewind.approval", owner_job: null, never: true },
    ]);
    expect(await rig.poolsAreExact()).toBe(true);
    await rig.cancel(run);
    await rig.until(
      async () =>
        (await rig.db.rows(adhoc("SELECT 1 FROM trigger WHERE kind = 'tradewind.approval'"))).length === 0,
      "triggers without waits to be deleted",
    );
  });
});

it("starts a DAG that listens for approvals, and not for other waits", async () => {
  const run = await rig.trigger("quiet");
  const { ok } = await open("quiet", run, 1);
  const asks = () =>
    rig.db.rows<{ id: number }>(adhoc("SELECT id FROM dag_run WHERE dag_id = 'asks' AND state = 'success'"));
  await rig.until(async () => (await asks()).length > 0, "the run of the listening DAG");
  const { run_id } = await rig.run(run);
  await answer(ok!.id, { decision: "approve" });
  expect(await rig.ended(run)).toBe("success");
  const ids = await asks();
  expect(ids).toHaveLength(1);
  expect(await rig.output(ids[0]!.id, "text")).toBe(`quiet/${run_id}/ok waits for an answer to "Publish?"`);
});
