import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { markRun } from "../store/edit/end-run.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";
import type { SchedulerJob } from "./job/scheduler-job.ts";

let rig: SchedulerRig;
let scheduler: SchedulerJob;

/** Tasks wait for files named after their run, and record what they did in a file of the run. */
const DAGS = `
  import { dag } from "tradewind";
  import { appendFileSync, existsSync } from "node:fs";
  const ROOT = "@ROOT@";
  const tell = (ctx, what) => appendFileSync(ROOT + "/" + ctx.run.id, what + "\\n");
  const pause = (ms) => new Promise((go) => setTimeout(go, ms));
  /** Takes 400 ms to stop. */
  const stubborn = async (ctx) => {
    tell(ctx, "at work");
    if (!ctx.abort.aborted) await new Promise((end) => ctx.abort.addEventListener("abort", end));
    await pause(400);
    tell(ctx, "stopped");
  };
  const told = (ctx) => tell({ run: { id: "callbacks" } }, ctx.run.id);
  const build = (d) => {
    const cluster = d.setup("create", async (_, ctx) => { tell(ctx, "created"); return "c-1"; });
    d.group("all", { onFailure: told, onSuccess: told }, (d) => {
      const work = d.task("work", { after: cluster }, (_, ctx) => stubborn(ctx));
      d.task("next", { after: work }, () => 1);
    });
    d.teardown("delete", { of: cluster }, async (made, _, ctx) => {
      tell(ctx, "deletes");
      while (!existsSync(ROOT + "/" + ctx.run.id + ".open")) {
        ctx.abort.throwIfAborted();
        await pause(10);
      }
      tell(ctx, "deleted " + made);
    });
  };
  export const cluster = dag("cluster", { runRetries: 1, runRetryDelay: 0, onFailure: told, onSuccess: told }, build);
  export const brief = dag("brief", { runTimeout: "1s" }, build);
  export const mapped = dag("mapped", (d) => {
    const cluster = d.setup("create", (_, ctx) => { tell(ctx, "created"); return "c-1"; });
    d.mapGroup("each", { over: [1, 2, 3], limit: 1, after: cluster }, (g) => {
      g.task("work", { after: cluster }, (_, ctx) => stubborn(ctx));
    });
    d.teardown("delete", { of: cluster }, (made, _, ctx) => { tell(ctx, "deletes"); tell(ctx, "deleted " + made); });
  });
  export const around = dag("around", (d) => { d.dag("sub", cluster); });
  export const early = dag("early", (d) => {
    const cluster = d.setup("create", (_, ctx) => stubborn(ctx));
    d.task("work", { after: cluster }, () => 1);
    d.teardown("delete", { of: cluster }, () => 1);
  });
  export const retried = dag("retried", { runTimeout: "1s" }, (d) => {
    d.task("flaky", { retries: 1, retryDelay: "1h" }, () => { throw new Error("flaked"); });
  });
`;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({ "endings.ts": DAGS.replaceAll("@ROOT@", rig.root) });
  scheduler = await rig.scheduler();
});

const open = (name: string) => writeFileSync(`${rig.root}/${name}.open`, "");
const told = (name: string) =>
  existsSync(`${rig.root}/${name}`) ? readFileSync(`${rig.root}/${name}`, "utf8").trim().split("\n") : [];
const untilTold = (name: string, what: string) =>
  rig.until(async () => told(name).includes(what), `${name}: ${what}`);
const working = async (name: string, dagId = "cluster") => {
  const id = await rig.trigger(dagId, { runId: name });
  await untilTold(name, "at work");
  await rig.until(async () => (await rig.states(id))["all.work"] !== "queued", "the work to leave the queue");
  return id;
};
const ENDING = "SELECT ending FROM dag_run WHERE id = $1";
const ending = async (id: number) =>
  (await rig.db.one<{ ending: string | null }>(adhoc(ENDING), [id]))?.ending;

const IN_ORDER = ["created", "at work", "stopped", "deletes", "deleted c-1"];

describe("a run that is ended while a setup needs its teardown", () => {
  it("cancelled: stops its tasks, then runs teardowns, then fails with the reason", async () => {
    const id = await working("cancelled");
    expect(await rig.cancel(id)).toEqual({ found: true, changed: true });
    expect(await rig.run(id)).toMatchObject({ state: "running", end_reason: "cancelled by a test" });
    const left = { create: "success", "all.work": "failed", "all.next": "skipped" };
    expect(await rig.states(id)).toEqual({ ...left, delete: "pending" });
    await untilTold("cancelled", "deletes");
    expect((await rig.run(id)).state).toBe("running");
    open("cancelled");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.run(id)).toMatchObject({
      end_reason: "cancelled by a test",
      ending: null,
      try_number: 1,
    });
    expect(await rig.states(id)).toEqual({ ...left, delete: "success" });
    // The teardown did not start while the task was being stopped.
    expect(told("cancelled")).toEqual(IN_ORDER);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it.each(["success", "failed"] as const)(
    "marked %s: ends in this state with any states of its tasks",
    async (state) => {
      const id = await working(`marked_${state}`);
      await rig.edit(id, (tx) => markRun(tx, id, state));
      expect(await ending(id)).toBe(state);
      open(`marked_${state}`);
      expect(await rig.ended(id)).toBe(state);
      expect(await rig.run(id)).toMatchObject({ end_reason: `marked ${state} manually` });
      const left = { create: "success", "all.work": state, "all.next": "skipped", delete: "success" };
      expect(await rig.states(id)).toEqual(left);
      expect(told(`marked_${state}`)).toEqual(IN_ORDER);
    },
  );

  it("marked success: is a success, also if a task had failed before", async () => {
    const id = await working("pardoned");
    await rig.edit(id, (tx) => {
      const tasks = [{ taskId: "all.work", mapIndex: -1 }];
      return markTasks(tx, { runs: [{ dagRunId: id, tasks }], state: "failed", dryRun: false });
    });
    await untilTold("pardoned", "deletes");
    await rig.edit(id, (tx) => markRun(tx, id, "success"));
    open("pardoned");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toMatchObject({ "all.work": "failed", delete: "success" });
    expect(told("pardoned")).toEqual(IN_ORDER);
  });

  it("cancelled again: stops the teardown", async () => {
    const id = await working("twice");
    await rig.cancel(id);
    await rig.until(async () => (await rig.states(id)).delete === "running", "the teardown to run");
    await rig.cancel(id);
    expect(await rig.run(id)).toMatchObject({ state: "failed", ending: null });
    expect((await rig.states(id)).delete).toBe("failed");
    expect(await rig.poolsAreExact()).toBe(true);
    expect(await rig.cancel(id)).toEqual({ found: true, changed: false });
  });

  it("cleared after that: runs as any other", async () => {
    const id = await working("cleared");
    await rig.cancel(id);
    await untilTold("cleared", "deletes");
    await rig.clear(id);
    expect(await rig.run(id)).toMatchObject({ state: "running", ending: null, end_reason: null });
    await rig.until(async () => (await rig.states(id))["all.work"] === "running", "the work to run again");
    await rig.cancel(id);
    open("cleared");
    expect(await rig.ended(id)).toBe("failed");
  });

  it("starts no further item of a map", async () => {
    const id = await rig.trigger("mapped", { runId: "mapped" });
    await untilTold("mapped", "at work");
    await rig.until(async () => (await rig.states(id))["each.work"] === "running", "the item to run");
    await rig.cancel(id);
    expect(await rig.ended(id)).toBe("failed");
    expect(told("mapped")).toEqual(IN_ORDER);
    expect(await rig.states(id)).toEqual({ create: "success", "each.work": "failed", delete: "success" });
  });

  it("in the queue again: is started to run its teardowns", async () => {
    const id = await working("queued");
    await rig.edit(id, (tx) => markRun(tx, id, "success"));
    open("queued");
    await rig.ended(id);
    const pause = async (isPaused: boolean) => {
      await rig.db.rows(adhoc("UPDATE dag SET is_paused = $1 WHERE dag_id = 'cluster'"), [isPaused]);
      rig.wakeUps.send("dags");
    };
    await pause(true);
    await rig.clear(id, { tasks: ["delete"] });
    await rig.cancel(id);
    expect(await rig.run(id)).toMatchObject({ state: "queued", ending: "failed" });
    await pause(false);
    expect(await rig.ended(id)).toBe("failed");
    expect(told("queued")).toEqual([...IN_ORDER, ...IN_ORDER.slice(-2)]);
  });

  it("ends at once if the setup had not run", async () => {
    const id = await rig.trigger("cluster", { runId: "later", runAfter: new Date(Date.now() + 3_600_000) });
    await rig.cancel(id);
    expect((await rig.run(id)).state).toBe("failed");
  });

  it("applies the rule of the teardown if the setup was stopped before its end", async () => {
    const id = await rig.trigger("early", { runId: "early" });
    await untilTold("early", "at work");
    await rig.until(async () => (await rig.states(id)).create === "running", "the setup to run");
    await rig.cancel(id);
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({ create: "failed", work: "skipped", delete: "upstream_failed" });
  });

  it("also if it is a sub-DAG of a cancelled run", async () => {
    const id = await rig.trigger("around");
    const CHILD = "SELECT id, run_id FROM dag_run WHERE parent_run_id = $1";
    const child = async () => rig.db.one<{ id: number; run_id: string }>(adhoc(CHILD), [id]);
    await rig.until(async () => (await child()) !== undefined, "the inner run");
    const inner = (await child())!;
    await untilTold(inner.run_id, "at work");
    await rig.cancel(id);
    expect((await rig.run(id)).state).toBe("failed");
    await untilTold(inner.run_id, "deletes");
    // The search for abandoned runs skips it: that would cancel it twice.
    rig.wakeUps.send("ended");
    const other = await working("meanwhile");
    await rig.cancel(other);
    open("meanwhile");
    await rig.ended(other);
    expect((await rig.run(inner.id)).state).toBe("running");
    open(inner.run_id);
    expect(await rig.ended(inner.id)).toBe("failed");
    expect(told(inner.run_id)).toEqual(IN_ORDER);
    expect((await rig.run(inner.id)).end_reason).toContain("no longer waits for it");
  });
});

describe("a run that has timed out", () => {
  it("runs teardowns when its stopped tasks have ended", async () => {
    const id = await working("brief", "brief");
    open("brief");
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.run(id)).end_reason).toBe("timed_out");
    expect(told("brief")).toEqual(IN_ORDER);
  });

  it("fails tasks that wait for their next try", async () => {
    const id = await rig.trigger("retried");
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.tasks(id)).flaky).toMatchObject({ state: "failed", reason: "the run timed out" });
  });
});

it("does not run a setup again while its dependents are being stopped", async () => {
  const id = await working("again");
  await rig.clear(id);
  await rig.until(async () => told("again").length >= 5, "the second try");
  expect(told("again")).toEqual(["created", "at work", "stopped", "created", "at work"]);
  await rig.cancel(id);
  open("again");
  await rig.ended(id);
});

it("ends a run as requested after a take-over", async () => {
  const id = await working("taken");
  // A run that was ended manually runs no callbacks, with or without teardowns: these two failed before, or by themselves.
  expect(told("callbacks").filter((name) => !["pardoned", "brief"].includes(name))).toEqual([]);
  await rig.edit(id, (tx) => markRun(tx, id, "success"));
  await untilTold("taken", "deletes");
  await Promise.all([scheduler.stop(0), rig.scheduler({ shared: false })]);
  open("taken");
  expect(await rig.ended(id)).toBe("success");
  expect((await rig.run(id)).end_reason).toBe("marked success manually");
  expect(await rig.states(id)).toEqual({
    create: "success",
    "all.work": "success",
    "all.next": "skipped",
    delete: "success",
  });
});
