/** Notices of tasks, groups and runs: stored with their event, delivered without the code of the DAG. */
import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { NoticeFixture, type PostReceiver } from "../../test/support/notice-fixture.ts";
import type { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { SmtpTestServer } from "../../test/support/smtp-server.ts";
import { adhoc } from "../store/database/database.ts";
import { cancelRun } from "../store/edit/end-run.ts";

describe("notices of tasks, groups and runs", () => {
  let rig: SchedulerRig;
  let desk: NoticeFixture;
  let gate: string;
  let receiver: PostReceiver;
  const smtp = new SmtpTestServer();

  beforeAll(async () => {
    ({ desk, receiver, rig } = await NoticeFixture.open());
    await smtp.open();
    gate = `${rig.root}/gate`;
    await desk.connection("mail", {
      connType: "smtp",
      host: "127.0.0.1",
      port: smtp.port,
      extra: JSON.stringify({ from: "tradewind@example.com", tls: "none" }),
    });
    const [root, url] = [JSON.stringify(rig.root), JSON.stringify(receiver.url)];
    await rig.publish({
      "alerts.ts": `
        import { dag, email, sendSignal, signal, webhook } from "tradewind";
        import { appendFileSync, existsSync } from "node:fs";
        import { setTimeout as sleep } from "node:timers/promises";
        const hook = webhook(${url});
        const called = (name) => () => appendFileSync(${root} + "/called", name + "\\n");
        const fail = (why) => () => { throw new Error(why); };
        export const task = dag("task", { onFailure: [hook, called("run")] }, (d) => {
          d.task("fine", { onSuccess: sendSignal(signal("fine"), { is: "fine" }), onFailure: hook }, () => 1);
          const broken = d.task("broken", { retries: 1, retryDelay: 1, onRetry: hook, onFailure: [called("task"), hook, sendSignal(signal("broken"))] }, fail("no disk"));
          d.task("after", { after: broken, onFailure: hook }, () => 1);
        });
        export const mailed = dag("mailed", { onFailure: email({ to: "ops@example.com", connection: "mail" }) }, (d) => {
          d.task("broken", fail("no disk"));
        });
        export const groups = dag("groups", (d) => {
          d.group("once", { retries: 1, retryDelay: 1, onRetry: hook, onFailure: hook, onSuccess: hook }, (g) => {
            const a = g.task("a", fail("a broke"));
            g.task("b", { after: a }, () => 1);
          });
          d.mapGroup("each", { over: ["ok", "bad"], retries: 1, retryDelay: 1, onFailure: hook }, (g, item) => {
            g.task("t", { inputs: { item } }, ({ item }) => { if (item === "bad") throw new Error("bad item"); });
          });
        });
        export const mapped = dag("mapped", (d) => {
          d.map("each", { over: [1, 2, 3], onFailure: hook }, (item) => { if (item === 2) throw new Error("two"); });
        });
        export const plain = dag("plain", (d) => { d.task("broken", fail("no disk")); });
        export const good = dag("good", (d) => { d.task("fine", () => 1); });
        export const around = dag("around", (d) => { d.dag("inner", plain, { retries: 1, retryDelay: 1 }); });
        export const slow = dag("slow", { runTimeout: "500ms", onFailure: hook }, (d) => {
          d.task("hangs", { onFailure: hook }, () => sleep(60_000));
        });
        export const waits = dag("waits", { onFailure: hook }, (d) => {
          const made = d.setup("made", () => 1);
          d.task("waits", { after: made, onFailure: hook }, async () => {
            while (!existsSync(${JSON.stringify(gate)})) await sleep(20);
            throw new Error("late");
          });
          d.teardown("gone", { of: made }, () => 1);
        });
      `,
    });
    await rig.scheduler({ settings: { TRADEWIND_ON_FAILURE: "signal:installation.failed" } });
  });
  beforeEach(() => {
    receiver.received.length = 0;
  });
  afterAll(async () => {
    await receiver.close();
    await smtp.close();
  });

  const said = () =>
    receiver.received
      .map(({ text }) => JSON.parse(text) as Record<string, unknown>)
      .sort((a, b) => Number(a["delivery"]) - Number(b["delivery"]));
  const signals = async (key: string, dagId: string) =>
    (
      await rig.db.rows<{ value: { dagId?: string } }>(
        adhoc("SELECT value FROM signal WHERE namespace = 'default' AND key = $1 ORDER BY id"),
        [key],
      )
    )
      .map(({ value }) => value)
      .filter((value) => value.dagId === undefined || value.dagId === dagId);

  it("contain the failed object, the reason, the try, and the cause of the run's failure", async () => {
    await desk.host({ publicUrl: "https://flows.example.com/tw" });
    const logicalDate = new Date("2026-01-31T01:00:00Z");
    const id = await rig.trigger("task", { runId: "r/1", logicalDate });
    expect(await rig.ended(id)).toBe("failed");
    const rows = await desk.settled(id);
    expect(new Set(rows.map(({ state }) => state))).toEqual(new Set(["done"]));
    const of = {
      dag_id: "task",
      dag_run_id: "r/1",
      group_id: null,
      map_index: -1,
      logical_date: logicalDate.toISOString(),
      started_at: expect.stringMatching(/Z$/),
      ended_at: expect.stringMatching(/Z$/),
      run_url: "https://flows.example.com/tw/api/v2/dags/task/dagRuns/r%2F1",
      attempt: 1,
    };
    const task = { ...of, task_id: "broken", reason: "Error: no disk", cause: null };
    const cause = { task_id: "broken", map_index: -1, try_number: 2, reason: "Error: no disk" };
    expect(said()).toEqual([
      expect.objectContaining({
        ...task,
        event: "task.retrying",
        state: "up_for_retry",
        try_number: 1,
        next_try_at: expect.stringMatching(/Z$/),
      }),
      expect.objectContaining({
        ...task,
        event: "task.failed",
        state: "failed",
        try_number: 2,
        next_try_at: null,
      }),
      expect.objectContaining({
        ...of,
        event: "run.failed",
        task_id: null,
        state: "failed",
        try_number: 1,
        reason: "task_failure",
        cause,
        run_state: "failed",
      }),
    ]);
    expect(await signals("fine", "task")).toEqual([{ is: "fine" }]);
    expect(await signals("broken", "task")).toMatchObject([
      {
        event: "task.failed",
        dagId: "task",
        runId: "r/1",
        taskId: "broken",
        tryNumber: 2,
        reason: "Error: no disk",
      },
    ]);
    expect(await signals("installation.failed", "task")).toMatchObject([
      {
        event: "run.failed",
        dagId: "task",
        runId: "r/1",
        cause: { taskId: "broken", reason: "Error: no disk" },
      },
    ]);
    await rig.until(async () => existsSync(`${rig.root}/called`), "the functions");
  });

  it("are sent by mail", async () => {
    await desk.host();
    const id = await rig.trigger("mailed", { runId: "m1" });
    await rig.ended(id);
    expect((await desk.settled(id)).map(({ state }) => state)).toEqual(["done", "done"]);
    const body = smtp.mails[0]?.text.split(/\r?\n\r?\n/)[1] ?? "";
    const text = Buffer.from(body, "base64").toString();
    expect(text).toContain('Run "m1" of DAG "mailed" has failed.');
    expect(text).toContain("First failure: broken, try 1\r\nIts reason: Error: no disk\r\n");
  });

  it("of groups are sent for each try and each item, with the first failure in it", async () => {
    await desk.host();
    const id = await rig.trigger("groups");
    await rig.ended(id);
    await desk.settled(id);
    const events = said().map((each) => [
      each["event"],
      each["group_id"],
      each["map_index"],
      each["try_number"],
    ]);
    expect(events).toHaveLength(3);
    expect(new Set(events.map(String))).toEqual(
      new Set(["group.retrying,once,-1,1", "group.failed,once,-1,2", "group.failed,each,1,2"]),
    );
    const item = said().find((each) => each["group_id"] === "each");
    expect(item?.["cause"]).toEqual({
      task_id: "each.t",
      map_index: 1,
      try_number: 2,
      reason: "Error: bad item",
    });
    const once = said().filter((each) => each["group_id"] === "once");
    expect(once.map((each) => (each["cause"] as { task_id: string }).task_id)).toEqual(["once.a", "once.a"]);
  });

  it("of a mapped task name the item", async () => {
    await desk.host();
    const id = await rig.trigger("mapped");
    await rig.ended(id);
    await desk.settled(id);
    expect(said()).toMatchObject([
      { event: "task.failed", task_id: "each", map_index: 1, reason: "Error: two" },
    ]);
  });

  it("are sent again when a cleared run fails again", async () => {
    await desk.host();
    const id = await rig.trigger("mapped");
    await rig.ended(id);
    await desk.settled(id);
    await rig.clear(id, { only: "failed" });
    await rig.until(async () => (await desk.deliveries(id)).length === 4, "the second failure");
    await desk.settled(id);
    expect(said().map((each) => each["try_number"])).toEqual([1, 2]);
    const keys = receiver.received.map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(2);
  });

  it("of the installation are sent for failed runs only, and not for sub-DAG runs", async () => {
    await desk.host();
    const good = await rig.trigger("good");
    const around = await rig.trigger("around", { runId: "outer" });
    const alone = await rig.trigger("plain", { runId: "alone" });
    expect(await rig.ended(good)).toBe("success");
    expect(await desk.deliveries(good)).toEqual([]);
    await rig.ended(alone);
    await desk.settled(alone);
    expect(await signals("installation.failed", "plain")).toMatchObject([{ runId: "alone" }]);
    const inner = async () =>
      await rig.db.one<{ id: number; state: string }>(
        adhoc("SELECT id, state FROM dag_run WHERE parent_run_id = $1"),
        [around],
      );
    await rig.until(async () => (await inner())?.state === "failed", "the run inside");
    expect(await desk.deliveries((await inner())?.id ?? 0)).toEqual([]);
    await rig.db.transaction((tx) => cancelRun(tx, around, "cancelled"));
    rig.wakeUps.send(`run:${around}`);
  });

  it("are sent for a run that timed out, and for the tasks that ended with it", async () => {
    await desk.host();
    const id = await rig.trigger("slow");
    await rig.ended(id);
    await desk.settled(id);
    expect(said()).toMatchObject([
      { event: "task.failed", task_id: "hangs", reason: "TASK_RUN_TIMED_OUT: the run timed out" },
      { event: "run.failed", reason: "timed_out", cause: { task_id: "hangs" } },
    ]);
  });

  it("are not sent for tasks and runs that a user ends", async () => {
    await rm(gate, { force: true });
    const id = await rig.trigger("waits");
    await rig.until(async () => (await rig.states(id))["waits"] === "running", "the task");
    await rig.db.transaction((tx) => cancelRun(tx, id, "cancelled"));
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("failed");
    await writeFile(gate, "");
    expect(await desk.deliveries(id)).toEqual([]);
  });
});
