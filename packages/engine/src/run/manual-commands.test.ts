/** Manual commands of the API, carried out by a real scheduler: for runs that are queued, running or ended. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { passOn } from "../process/api.ts";
import { adhoc } from "../store/database/database.ts";
import { type ManualCommandResult, submitManualCommand } from "../store/drive/manual-commands.ts";
import { cancelRun } from "../store/edit/end-run.ts";

let rig: SchedulerRig;

const noted = (text: string): number => {
  try {
    return readFileSync(`${rig.root}/notes`, "utf8")
      .split("\n")
      .filter((line) => line === text).length;
  } catch {
    return 0;
  }
};

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "orders.ts": `
      import { dag, signal, start } from "tradewind";
      import { appendFileSync } from "node:fs";
      const note = (text: string) => appendFileSync(${JSON.stringify(`${rig.root}/notes`)}, text + "\\n");
      const aborted = (abort: AbortSignal) =>
        new Promise<void>((resolve) => abort.aborted ? resolve() : abort.addEventListener("abort", () => resolve()));

      export const plain = dag("plain", {}, (d) => {
        const first = d.task("first", (_, ctx) => { note(ctx.run.id + " first"); });
        d.task("second", { after: [first] }, (_, ctx) => { note(ctx.run.id + " second"); });
      });
      export const long = dag("long", {}, (d) => {
        const wait = d.task("wait", async (_, ctx) => { note(ctx.run.id + " wait"); await aborted(ctx.abort); throw new Error("no result"); });
        d.task("after", { after: [wait], rule: "allDone" }, () => "done");
      });
      export const online = dag("online", { stop: signal("shut") }, (d) => {
        d.task("train", { on: [start(signal("go"))] }, (_, ctx) => { note(ctx.run.id + " train"); });
        d.task("serve", { lifetime: "streaming" }, (_, ctx) => aborted(ctx.abort));
      });
    `,
  });
  await rig.scheduler();
});

async function order(
  id: number,
  taskId: string | null,
  action: "start" | "restart" | "stop",
): Promise<ManualCommandResult> {
  const run = await rig.db.one<{ dag_id: string; run_id: string }>(
    adhoc("SELECT dag_id, run_id FROM dag_run WHERE id = $1"),
    [id],
  );
  const wish = { dagId: run!.dag_id, runId: run!.run_id, user: "ada" };
  const result = await rig.db.transaction((tx) =>
    taskId === null
      ? submitManualCommand(tx, { ...wish, taskId, action: "stop" })
      : submitManualCommand(tx, { ...wish, taskId, action }),
  );
  passOn({ kind: "run_edited", dagRunIds: [id] }, rig.wakeUps);
  passOn({ kind: "signals_sent" }, rig.wakeUps);
  return result;
}

const inState = (id: number, task: string, state: string) =>
  rig.until(async () => (await rig.states(id))[task] === state, `${task} to be ${state}`);

describe("a manual command for an active run", () => {
  it("restarts a task, and stops it, which lets its downstream run", async () => {
    const id = await rig.trigger("long", { runId: "r1" });
    await rig.until(async () => noted("r1 wait") === 1, "the first try");
    expect(await order(id, "wait", "restart")).toMatchObject({ kind: "ordered" });
    await rig.until(async () => noted("r1 wait") === 2, "the second");
    expect(await order(id, "wait", "stop")).toMatchObject({ kind: "ordered" });
    expect(await rig.ended(id)).toBe("success");
    expect((await rig.tasks(id)).wait).toMatchObject({ state: "skipped", reason: "stopped by ada" });
    expect(await rig.output(id, "after")).toBe("done");
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("starts a task that waits for signals, and closes the run", async () => {
    const id = await rig.trigger("online", { runId: "r2" });
    await inState(id, "serve", "running");
    await order(id, "train", "start");
    await inState(id, "train", "success");
    expect(await order(id, null, "stop")).toMatchObject({ kind: "ordered" });
    expect(await rig.ended(id)).toBe("success");
    expect([noted("r2 train"), (await rig.states(id)).serve]).toEqual([1, "success"]);
  });
});

describe("a manual command for a queued run", () => {
  it.each(["plain", "online"])("is carried out at its start: %s", async (dagId) => {
    const id = await rig.trigger(dagId, { runId: "early", runAfter: new Date(Date.now() + 3_600_000) });
    const task = dagId === "plain" ? "first" : "train";
    expect(await order(id, task, "start")).toMatchObject({ kind: "ordered" });
    await rig.db.rows(adhoc("UPDATE dag_run SET run_after = now() WHERE id = $1"), [id]);
    rig.wakeUps.send("runs");
    await inState(id, task, "success");
    if (dagId === "online") await order(id, null, "stop");
    expect(await rig.ended(id)).toBe("success");
    expect(noted(`early ${task}`)).toBeGreaterThanOrEqual(1);
  });
});

describe("a manual command for an ended run", () => {
  it("runs the task and its downstream again", async () => {
    const id = await rig.trigger("plain", { runId: "r3" });
    expect(await rig.ended(id)).toBe("success");
    expect(await order(id, "first", "start")).toMatchObject({ kind: "cleared" });
    await rig.until(async () => noted("r3 second") === 2, "both again");
    expect(await rig.ended(id)).toBe("success");
    expect(noted("r3 first")).toBe(2);
    await rig.until(async () => (await rig.tasks(id)).second?.state === "success", "the end");
  });

  it("starts a task once that never ran", async () => {
    const id = await rig.trigger("online", { runId: "r4" });
    await inState(id, "serve", "running");
    await order(id, null, "stop");
    expect(await rig.ended(id)).toBe("success");
    expect((await rig.states(id)).train).toBe("skipped");
    expect(await order(id, "train", "start")).toMatchObject({
      kind: "cleared",
      version: expect.any(Number),
    });
    await inState(id, "train", "success");
    await order(id, null, "stop");
    expect(await rig.ended(id)).toBe("success");
    expect([noted("r4 train"), (await rig.tasks(id)).train?.try_number]).toEqual([1, 1]);
  });

  it("runs a finished task again, once", async () => {
    const id = await rig.trigger("online", { runId: "r5" });
    await order(id, "train", "start");
    await inState(id, "train", "success");
    await inState(id, "serve", "running");
    await rig.db.transaction((tx) => cancelRun(tx, id, "enough"));
    rig.wakeUps.send(`run:${id}`);
    expect(await rig.ended(id)).toBe("failed");
    expect(await order(id, "train", "restart")).toMatchObject({ kind: "cleared", version: null });
    await rig.until(async () => noted("r5 train") === 2, "the second time");
    await inState(id, "train", "success");
    await order(id, null, "stop");
    expect((await rig.ended(id)) && noted("r5 train")).toBe(2);
  });
});
