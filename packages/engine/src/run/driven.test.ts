/** Signal-driven runs with real tasks: rules, streaming tasks, ticks, onSignal, manual commands, take-over. */
import { readFileSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { submitManualCommand } from "../store/drive/manual-commands.ts";
import { sendSignals } from "../store/signal/signals.ts";

let rig: SchedulerRig;

const notes = (): string[] => {
  try {
    return readFileSync(`${rig.root}/notes`, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
};
const noted = (text: string) => notes().filter((line) => line === text).length;

async function send(key: string, value: Json = null, namespace = "default"): Promise<void> {
  await sendSignals(rig.db, [{ namespace, key, value, sender: "test" }]);
  rig.wakeUps.send("signals");
}

async function order(id: number, taskId: string | null, action: "start" | "restart" | "stop"): Promise<void> {
  const { run_id: runId } = await rig.run(id);
  const { dag_id: dagId } = (await rig.db.one<{ dag_id: string }>(
    adhoc("SELECT dag_id FROM dag_run WHERE id = $1"),
    [id],
  ))!;
  const wish = { dagId, runId, user: "Ann" };
  await rig.db.transaction((tx) =>
    submitManualCommand(
      tx,
      taskId === null ? { ...wish, taskId, action: "stop" } : { ...wish, taskId, action },
    ),
  );
  rig.wakeUps.send(`run:${id}`);
}

const inState = (id: number, wanted: Record<string, string>) =>
  rig.until(async () => {
    const states = await rig.states(id);
    return Object.entries(wanted).every(([task, state]) => states[task] === state);
  }, JSON.stringify(wanted));

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "driven.ts": `
      import { all, cron, dag, Operator, restart, signal, SignalAction, start, stop } from "tradewind";
      import { appendFileSync } from "node:fs";
      import { setTimeout as sleep } from "node:timers/promises";
      const note = (text: string) => appendFileSync(${JSON.stringify(`${rig.root}/notes`)}, text + "\\n");
      const aborted = (abort: AbortSignal) => new Promise<void>((resolve) => abort.aborted ? resolve() : abort.addEventListener("abort", () => resolve()));
      const [a, b, over] = [signal<number>("a"), signal<number>("b"), signal("over")];

      export const counted = dag("counted", { stop: over }, (d) => {
        const train = d.task("train", { on: [start(a)] }, async () => { note("train"); });
        const check = d.task("check", { after: [train] }, () => { note("check"); });
        d.task("both", { on: [start(all(a, b), { once: true })] }, () => { note("both"); });
        d.task("after", { on: [start(check)] }, () => { note("after check"); });
        d.task("plain", () => "plain");
      });
      export const serving = dag("serving", { stop: signal("shut") }, (d) => {
        d.task("serve", { lifetime: "streaming", grace: "20s", on: [restart(signal("model")), stop(signal("halt")), start(signal("go"))] },
          async (_, ctx) => { note("serve " + ctx.tryNumber); await aborted(ctx.abort); note("served " + ctx.tryNumber); return "ended by itself " + ctx.tryNumber; });
      });
      export const flaky = dag("flaky", { stop: signal("enough") }, (d) => {
        d.task("stream", { lifetime: "streaming", retryDelay: 50, maxRetryDelay: 50 }, async (_, ctx) => {
          note("stream " + ctx.tryNumber);
          if (ctx.tryNumber < 4) throw new Error("no");
          await aborted(ctx.abort);
        });
      });
      export const batch = dag("batch", { endWhen: "batchDone" }, (d) => {
        const source = d.task("source", { lifetime: "streaming" }, async (_, ctx) => { await aborted(ctx.abort); });
        const one = d.task("one", async () => { await sleep(200); });
        d.task("two", { after: [one] }, () => 2);
        d.task("last", { after: [source], lifetime: "streaming" }, () => "cleaned");
      });
      export const stubborn = dag("stubborn", { stop: signal("end.stubborn") }, (d) => {
        d.task("slow", { on: [start(signal("slow.start")), stop(signal("slow.stop"))], grace: 300 }, async () => { note("slow"); await sleep(600_000); });
      });
      export const ticking = dag("ticking", { stop: signal("end.ticking") }, (d) => {
        d.task("tick", { every: 300 }, () => { note("tick"); });
      });
      class Judge extends Operator<{ limit: number }, number> {
        constructor(args: { limit: number }) { super(args); this.setSignal(signal<number>("score")); }
        execute() { note("judged"); return 1; }
        onSignal(heard: { value: unknown }) {
          const score = heard.value as number;
          note("asked " + score);
          if (score < 0) throw new Error("negative");
          return score > this.args.limit ? SignalAction.START : SignalAction.NONE;
        }
      }
      export const reacting = dag("reacting", { stop: signal("end.reacting") }, (d) => {
        d.operator("judge", new Judge({ limit: 5 }));
      });
      export const ordinary = dag("ordinary", {}, (d) => {
        const first = d.task("first", () => { note("first"); });
        d.task("second", { after: [first] }, () => { note("second"); });
        d.task("long", async (_, ctx) => { note("long " + ctx.tryNumber); if (ctx.tryNumber === 1) await aborted(ctx.abort); });
      });
      export const repeated = dag("repeated", { stop: signal("end.repeated") }, (d) => {
        d.task("work", { on: [start(signal("go.repeated"))] }, (_, ctx) => {
          if (ctx.tryNumber === 3 || ctx.tryNumber === 5) throw new Error("no");
          return ctx.tryNumber;
        });
      });
      export const timed = dag("timed", { runTimeout: 500 }, (d) => {
        d.task("never", { on: [start(signal("never"))] }, () => 1);
      });
    `,
  });
  await rig.scheduler();
});

describe("rules", () => {
  it("starts a task and its downstream once per signal, and ends when it is closed", async () => {
    const id = await rig.trigger("counted");
    await inState(id, { plain: "success" });
    expect((await rig.states(id)).train).toBe("pending");
    for (const value of [1, 2, 3]) await send("a", value);
    await rig.until(async () => noted("train") === 3, "three trainings");
    await inState(id, { train: "success", check: "success", after: "success" });
    await rig.until(async () => noted("after check") >= 1, "the start by check's success");
    expect((await rig.states(id)).both).toBe("pending");
    await send("b", 1);
    await inState(id, { both: "success" });
    expect(noted("both")).toBe(1);
    expect((await rig.run(id)).state).toBe("running");
    await send("over");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.db.rows(adhoc("SELECT * FROM run_drive WHERE dag_run_id = $1"), [id])).toEqual([]);
    const { run_id: runId } = await rig.run(id);
    const told = adhoc(
      "SELECT value FROM signal WHERE namespace = 'run' AND key = $1 ORDER BY id DESC LIMIT 1",
    );
    expect(await rig.db.one(told, [`counted/${runId}`])).toEqual({
      value: { state: "success", closedBy: "over" },
    });
    const tries = await rig.db.rows<{ try_number: number; state: string }>(
      adhoc(
        "SELECT try_number, state FROM task_attempt WHERE dag_run_id = $1 AND task_id = 'train' ORDER BY 1",
      ),
      [id],
    );
    expect(tries.map(({ try_number }) => try_number)).toEqual([1, 2]);
    expect((await rig.tasks(id)).train?.try_number).toBe(3);
  });

  it("stores the end of a task without downstream tasks and its next start in one transaction", async () => {
    const id = await rig.trigger("repeated");
    await inState(id, { work: "pending" });
    const go = { namespace: "default", key: "go.repeated", value: null, sender: "test" };
    await sendSignals(rig.db, [go, go, go, go, go]);
    rig.wakeUps.send("signals");
    const tries = adhoc("SELECT state, try_number FROM task_instance WHERE dag_run_id = $1");
    await rig.until(async () => {
      const row = await rig.db.one<{ state: string; try_number: number }>(tries, [id]);
      return row?.state === "failed" && row.try_number === 5;
    }, "five tries");
    const { run_id: runId } = await rig.run(id);
    const told = await rig.db.rows<{ state: string; try: number; xmin: string }>(
      adhoc(`SELECT value->>'state' AS state, (value->>'tryNumber')::int AS try, xmin::text FROM signal
             WHERE namespace = 'task' AND key = $1 AND value->>'state' IN ('success', 'failed') ORDER BY id`),
      [`repeated/${runId}/work`],
    );
    // Each end is published once, in order.
    expect(told.map(({ state, try: number }) => `${number} ${state}`)).toEqual([
      "1 success",
      "2 success",
      "3 failed",
      "4 success",
      "5 failed",
    ]);
    const past = await rig.db.rows<{ state: string; try: number; xmin: string }>(
      adhoc(
        `SELECT state, try_number AS try, xmin::text FROM task_attempt WHERE dag_run_id = $1 ORDER BY try_number`,
      ),
      [id],
    );
    // The next start moves the attempt into the history.
    expect(past).toEqual(told.slice(0, 4));
    // The output of the fourth try was deleted with the start of the fifth.
    const outputs = adhoc("SELECT value FROM xcom WHERE dag_run_id = $1");
    expect(await rig.db.rows(outputs, [id])).toEqual([]);
    await send("end.repeated");
    await rig.ended(id);
  });

  it("skips tasks that were never started", async () => {
    const id = await rig.trigger("counted");
    await inState(id, { plain: "success" });
    await send("over");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toMatchObject({ train: "skipped", check: "skipped", both: "skipped" });
  });

  it("reads signals from its creation on, and none from before", async () => {
    await send("a", 0);
    const before = noted("train");
    const id = await rig.trigger("counted");
    await send("a", 1);
    await rig.until(async () => noted("train") === before + 1, "one training");
    await inState(id, { train: "success", check: "success" });
    await send("over");
    await rig.ended(id);
    expect(noted("train")).toBe(before + 1);
  });

  it("times out although its tasks could still be started", async () => {
    const id = await rig.trigger("timed");
    expect(await rig.ended(id)).toBe("failed");
    expect((await rig.run(id)).end_reason).toBe("timed_out");
  });
});

describe("streaming tasks", () => {
  it("is restarted while it runs, stopped and started by signals", async () => {
    const id = await rig.trigger("serving");
    await send("go");
    await rig.until(async () => noted("serve 1") === 1, "it serves");
    await inState(id, { serve: "running" });
    await send("model");
    await rig.until(async () => noted("serve 2") === 1, "the restart");
    expect(noted("served 1")).toBe(1);
    await send("halt");
    await inState(id, { serve: "success" });
    expect(await rig.output(id, "serve")).toBe("ended by itself 2");
    await send("go");
    await rig.until(async () => noted("serve 3") === 1, "the third try");
    await inState(id, { serve: "running" });
    await send("shut");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.output(id, "serve")).toBe("ended by itself 3");
  });

  it("is retried without a limit when it fails", async () => {
    const id = await rig.trigger("flaky");
    await rig.until(async () => noted("stream 4") === 1, "the fourth try");
    await inState(id, { stream: "running" });
    await send("enough");
    expect(await rig.ended(id)).toBe("success");
  });

  it("ends with the batch tasks if the DAG is configured so", async () => {
    const id = await rig.trigger("batch");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toMatchObject({ source: "success", one: "success", two: "success" });
  });

  it("is killed after its grace period, and a stopped batch task is skipped", async () => {
    const id = await rig.trigger("stubborn");
    await send("slow.start");
    await rig.until(async () => noted("slow") === 1, "the task to run");
    await inState(id, { slow: "running" });
    await send("slow.stop");
    await inState(id, { slow: "skipped" });
    expect((await rig.tasks(id)).slow?.reason).toBe("stopped by slow.stop");
    await send("end.stubborn");
    expect(await rig.ended(id)).toBe("success");
  });
});

describe("ticks and onSignal", () => {
  it("start a task at its times while the run is open", async () => {
    const id = await rig.trigger("ticking");
    await rig.until(async () => noted("tick") >= 3, "three ticks");
    await send("end.ticking");
    expect(await rig.ended(id)).toBe("success");
  });

  it("call onSignal for each signal in order, and start the task on START", async () => {
    const id = await rig.trigger("reacting");
    for (const score of [3, 9, 4, 8]) await send("score", score);
    await rig.until(async () => noted("judged") === 2, "two starts");
    expect(notes().filter((line) => line.startsWith("asked"))).toEqual([
      "asked 3",
      "asked 9",
      "asked 4",
      "asked 8",
    ]);
    await inState(id, { judge: "success" });
    await send("end.reacting");
    expect(await rig.ended(id)).toBe("success");
  });
});

describe("manual commands", () => {
  it("start, restart and stop tasks of an ordinary run", async () => {
    const id = await rig.trigger("ordinary");
    await rig.until(async () => noted("long 1") === 1 && noted("second") === 1, "the first tries");
    await inState(id, { first: "success", second: "success", long: "running" });
    await order(id, "first", "start");
    await rig.until(async () => noted("first") === 2 && noted("second") === 2, "both ran again");
    await inState(id, { first: "success", second: "success" });
    await order(id, "long", "restart");
    await rig.until(async () => noted("long 2") === 1, "the restart");
    expect(await rig.ended(id)).toBe("success");
  });

  it("close a run", async () => {
    const id = await rig.trigger("serving");
    await send("go");
    await inState(id, { serve: "running" });
    await order(id, null, "stop");
    expect(await rig.ended(id)).toBe("success");
  });
});
