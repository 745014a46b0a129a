/** Races of signal-driven runs, each provoked: edits, bursts, dead owners, delayed signals. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { Stage } from "../../test/fault/stage.ts";
import { EMPTY_BATCH } from "../../test/support/empty-batch.ts";
import { clearRun } from "../../test/support/run-edits.ts";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import type { StoredDrive } from "../model/index.ts";
import { setPaused } from "../store/dag/dag-settings.ts";
import { adhoc, type Connection, type Database } from "../store/database/database.ts";
import { submitManualCommand } from "../store/drive/manual-commands.ts";
import { loadStarts } from "../store/drive/run-starts.ts";
import { cancelRun, deleteRun } from "../store/edit/end-run.ts";
import { markTasks } from "../store/edit/mark-tasks.ts";
import { createPool } from "../store/pool/pools.ts";
import { sendSignals } from "../store/signal/signals.ts";
import { deleteSignals } from "../store/signal/signals-retention.ts";
import { batchCalls, FENCED } from "../store/task/run-batch.ts";

/** DAGs that record what they do, and wait for files at the points where a test acts. */
const dags = (root: string) => `
  import { conf, dag, Operator, restart, signal, start, stop } from "tradewind";
  import { appendFileSync, existsSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  const root = ${JSON.stringify(root)};
  const note = (text: string) => appendFileSync(root + "/notes", text + "\\n");
  const file = async (name: string) => { while (!existsSync(root + "/" + name)) await sleep(10); };
  const aborted = (abort: AbortSignal) =>
    new Promise<void>((resolve) => abort.aborted ? resolve() : abort.addEventListener("abort", () => resolve()));
  /** The first try ends only when a file exists after its stop; later tries fail or end, by the name of the run. */
  const linger = async (ctx: any) => {
    note(ctx.run.id + " try " + ctx.tryNumber);
    if (ctx.tryNumber > 1 && ctx.run.id.startsWith("fails")) throw new Error("as it should");
    if (ctx.tryNumber > 1 && ctx.run.id.startsWith("ends")) return;
    await aborted(ctx.abort);
    note(ctx.run.id + " asked " + ctx.tryNumber);
    await file(ctx.run.id);
    throw new Error("in the middle of it");
  };

  export const lingering = dag("lingering", { stop: signal("end") }, (d) => {
    d.task("batch", { grace: "60s", on: [start(signal("go")), stop(signal("halt")), restart(signal("again"))] }, (_, ctx) => linger(ctx));
    d.task("stream", { lifetime: "streaming", retries: 0, grace: "60s", on: [start(signal("flow")), stop(signal("dry"))] },
      (_, ctx) => linger(ctx));
  });
  export const counting = dag("counting", { stop: signal("end") }, (d) => {
    const gate = d.task("gate", (_, ctx) => file(ctx.run.id));
    d.task("count", { after: [gate], on: [start(signal("count"))] }, (_, ctx) => { note(ctx.run.id + " count"); });
  });
  export const pooled = dag("pooled", { stop: signal("end") }, (d) => {
    d.task("work", { pool: "single", on: [start(signal("work"))] }, (_, ctx) => { note(ctx.run.id + " work"); });
  });
  export const holding = dag("holding", {}, (d) => { d.task("hold", { pool: "single" }, (_, ctx) => file(ctx.run.id)); });
  export const orders = dag("orders", { stop: signal("end") }, (d) => {
    d.task("pay", { on: [start(signal("paid").where({ order: conf("order") }))] }, (_, ctx) => { note(ctx.run.id + " pay"); });
  });
  class Judge extends Operator<{ of: string }, null> {
    constructor(args: { of: string }) { super(args); this.setSignal(signal<any>(args.of)); }
    execute(ctx: any) { note(ctx.run.id + " judged"); return null; }
    async onSignal({ value }: { value: any }) {
      note("asked " + value);
      if (value === "bad") throw new Error("not a score");
      if (typeof value === "string") await file(value);
      return value === 0 ? "NONE" : "START";
    }
  }
  export const judging = dag("judging", { stop: signal("end") }, (d) => {
    d.operator("judge", new Judge({ of: "score" }));
    const gate = d.task("gate", (_, ctx) => file(ctx.run.id));
    d.task("count", { after: [gate], on: [start(signal("behind"))] }, (_, ctx) => { note(ctx.run.id + " count"); });
  });
  export const timed = dag("timed", { stop: signal("end") }, (d) => {
    d.operator("judge", new Judge({ of: "late" }), { onSignalTimeout: "300ms" });
  });
  export const grading = dag("grading", { stop: signal("end") }, (d) => { d.operator("judge", new Judge({ of: "grade" })); });
  export const plain = dag("plain", {}, (d) => { d.task("only", () => 1); });
`;

let rig: SchedulerRig;
/** For tests without edits: no batch is rejected, so no `onSignal` is called again for that. */
let quiet: SchedulerRig;
let buried: number;
let readAgain: Promise<void>;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({ "driven.ts": dags(rig.root) });
  await createPool(rig.db, "single", { slots: 1, description: null, includeDeferred: false });
  await rig.scheduler();
  // Takes 15 s: the other tests need not wait for it.
  quiet = await SchedulerRig.open();
  await quiet.publish({ "driven.ts": dags(quiet.root) });
  await quiet.scheduler();
  buried = await quiet.trigger("grading", { runId: "buried" });
  await sendSignals(quiet.db, drafts("grade", ["bad", 7]));
  quiet.wakeUps.send("signals");
  readAgain = readAgainAfterTwo();
  readAgain.catch(() => {});
});

/** Counts from the start: a later reader may find that all five have ended. */
async function readAgainAfterTwo(): Promise<void> {
  const failed = async () => (await drive(buried, quiet.db))?.tasks?.judge?.failedOnSignal?.attempts ?? 0;
  await quiet.until(async () => (await failed()) >= 2, "two failures");
  quiet.wakeUps.send(`run:${buried}`);
}

const EVERYTHING = { olderThanMs: 0, staleMs: 0, batch: 100_000 };

function notes(root = rig.root): string[] {
  const path = `${root}/notes`;
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
}
const noted = (text: string, root?: string) => notes(root).filter((line) => line === text).length;
const allow = (name: string, root = rig.root) => writeFileSync(`${root}/${name}`, "");

const drafts = (key: string, values: readonly Json[]) =>
  values.map((value) => ({ namespace: "default", key, value, sender: "test" }));

async function send(key: string, ...values: Json[]): Promise<void> {
  await sendSignals(rig.db, drafts(key, values.length > 0 ? values : [null]));
  rig.wakeUps.send("signals");
}

const inState = (id: number, task: string, state: string) =>
  rig.until(async () => (await rig.states(id))[task] === state, `${task} to be ${state}`);

async function drive(id: number, db: Database = rig.db): Promise<StoredDrive | null> {
  const row = await db.one<{ state: StoredDrive }>(
    adhoc("SELECT state FROM run_drive WHERE dag_run_id = $1"),
    [id],
  );
  return row?.state ?? null;
}
const starts = async (id: number, task: string, db: Database = rig.db) =>
  ((await loadStarts(db, [id])).get(id) ?? []).filter(({ taskId }) => taskId === task).length;

async function close(id: number, at = rig): Promise<string> {
  await giveClose(id, at);
  const end = await at.ended(id);
  expect(await drive(id, at.db)).toBeNull();
  return end;
}

async function giveClose(id: number, at = rig): Promise<void> {
  const run = await at.db.one<{ dag_id: string; run_id: string }>(
    adhoc("SELECT dag_id, run_id FROM dag_run WHERE id = $1"),
    [id],
  );
  const wish = { dagId: run!.dag_id, runId: run!.run_id, user: "Ann", taskId: null, action: "stop" } as const;
  await at.db.transaction((tx) => submitManualCommand(tx, wish));
  at.wakeUps.send(`run:${id}`);
}

const named = (taskId: string) => [{ taskId, mapIndex: null }];

/** @param also Runs in the transaction of the clear, after it. */
async function clear(id: number, taskId: string, also?: (tx: Connection) => Promise<void>): Promise<void> {
  await rig.db.transaction(async (tx) => {
    await clearRun(tx, id, { tasks: [taskId] });
    await also?.(tx);
  });
  rig.wakeUps.send(`run:${id}`);
  rig.wakeUps.send("runs");
}

async function mark(id: number, taskId: string): Promise<void> {
  await rig.db.transaction((tx) =>
    markTasks(tx, {
      runs: [{ dagRunId: id, tasks: named(taskId) }],
      state: "success",
      dryRun: false,
    }),
  );
  rig.wakeUps.send(`run:${id}`);
}

/** A run whose task has received a stop request and has not ended. */
async function lingering(runId: string, task: "batch" | "stream"): Promise<number> {
  const id = await rig.trigger("lingering", { runId });
  await send(task === "batch" ? "go" : "flow");
  await inState(id, task, "running");
  await send(task === "batch" ? "halt" : "dry");
  await rig.until(async () => noted(`${runId} asked 1`) === 1, "the stop request");
  expect((await drive(id))?.tasks?.[task]?.stopping).toBeTruthy();
  return id;
}

describe("edits during a stop", () => {
  it("clear: the task starts again after it has stopped, and later signals count", async () => {
    const id = await lingering("ends_cleared", "batch");
    await send("go");
    await rig.until(async () => (await starts(id, "batch")) === 1, "a pending start");
    await clear(id, "batch");
    allow("ends_cleared");
    await rig.until(
      async () => noted("ends_cleared try 3") === 1,
      "one try for the clear, one for the signal",
    );
    await inState(id, "batch", "success");
    expect((await rig.tasks(id)).batch?.try_number).toBe(3);
    expect(await close(id)).toBe("success");
  });

  it("mark a streaming task as success: the stop is dropped", async () => {
    const id = await lingering("fails_marked", "stream");
    await mark(id, "stream");
    await inState(id, "stream", "success");
    allow("fails_marked");
    await send("flow");
    await inState(id, "stream", "failed");
    expect((await rig.tasks(id)).stream).toMatchObject({ try_number: 2, reason: "Error: as it should" });
    expect(await close(id)).toBe("failed");
  });

  it("another command: a restart replaces the stop, also after a reload of the run", async () => {
    const id = await lingering("ends_anew", "batch");
    await rig.db.transaction((tx) =>
      submitManualCommand(tx, {
        dagId: "lingering",
        runId: "ends_anew",
        user: "Ann",
        taskId: "batch",
        action: "restart",
      }),
    );
    rig.wakeUps.send(`run:${id}`);
    await inState(id, "batch", "restarting");
    allow("ends_anew");
    await inState(id, "batch", "success");
    expect((await rig.tasks(id)).batch?.try_number).toBe(2);
    expect(await close(id)).toBe("success");
  });
});

describe("many signals", () => {
  it("count once each if there are more than one read returns, from several writers", async () => {
    const id = await rig.trigger("counting", { runId: "burst" });
    await inState(id, "gate", "running");
    const burst = () =>
      sendSignals(
        rig.db,
        drafts(
          "count",
          Array.from({ length: 1_700 }, (_, n) => n),
        ),
      );
    await Promise.all([burst(), burst(), burst()]);
    rig.wakeUps.send("signals");
    await rig.until(async () => (await starts(id, "count")) === 5_100, "all starts to be pending");
    await giveClose(id);
    await rig.until(async () => (await starts(id, "count")) === 0, "no pending start in a closed run");
    allow("burst");
    expect(await rig.ended(id)).toBe("success");
    expect((await rig.tasks(id)).count).toMatchObject({ state: "skipped", try_number: 0 });
  });

  it("are not delayed by an onSignal that hangs, whose own signals wait and are kept", async () => {
    const id = await rig.trigger("judging", { runId: "held" });
    await inState(id, "gate", "running");
    await send("score", "held_answer", 1, 2);
    await rig.until(async () => noted("asked held_answer") === 1, "the call of onSignal");
    for (let n = 0; n < 3; n++) await send("behind", ...Array.from({ length: 1_500 }, (_, at) => at));
    await rig.until(async () => (await starts(id, "count")) === 4_500, "the starts by rules");
    await deleteSignals(rig.db, EVERYTHING);
    // The next owner counts no start twice, and calls onSignal again.
    rig.wakeUps.send(`run:${id}`);
    await rig.until(async () => noted("asked held_answer") === 2, "the second call");
    expect(await starts(id, "count")).toBe(4_500);
    expect(noted("asked 1")).toBe(0);
    allow("held_answer");
    await rig.until(async () => (await rig.tasks(id)).judge!.try_number === 3, "its later signals");
    await send("score", "never");
    await rig.until(async () => noted("asked never") === 1, "the next call that hangs");
    allow("held");
    await rig.until(async () => noted("held count") >= 3, "three starts");
    await send("end");
    expect(await rig.ended(id)).toBe("success");
  });
});

it("calls an onSignal again that has not answered within its timeout", async () => {
  const id = await rig.trigger("timed", { runId: "timed" });
  await send("late", "late_answer");
  const asking = async () => (await drive(id))?.tasks?.["judge"]?.failedOnSignal;
  await rig.until(async () => (await asking()) !== undefined, "its failure");
  expect(await asking()).toMatchObject({
    key: "late",
    attempts: 1,
    error: expect.stringContaining("300 ms"),
  });
  allow("late_answer");
  await inState(id, "judge", "success");
  expect(await close(id)).toBe("success");
});

describe("a delayed run", () => {
  it("reads signals while its DAG is paused, and starts nothing until it is unpaused", async () => {
    const id = await rig.trigger("pooled", { runId: "paused" });
    await inState(id, "work", "pending");
    const pause = async (isPaused: boolean) => {
      await rig.db.transaction((tx) => setPaused(tx, ["pooled"], isPaused));
      rig.wakeUps.send("dags");
    };
    await pause(true);
    // Only decisions after the scheduler has read the pause count.
    await rig.until(async () => (await rig.ended(await rig.trigger("plain"))) === "success", "it is at work");
    await send("work", 1, 2, 3);
    await rig.until(async () => (await starts(id, "work")) === 2, "two pending starts");
    await inState(id, "work", "scheduled");
    expect(await rig.ended(await rig.trigger("plain"))).toBe("success");
    expect(noted("paused work")).toBe(0);
    await pause(false);
    await rig.until(async () => noted("paused work") === 3, "three starts");
    expect(await close(id)).toBe("success");
  });

  it("keeps every start waiting for a slot of a full pool", async () => {
    const holder = await rig.trigger("holding", { runId: "holder" });
    await inState(holder, "hold", "running");
    const id = await rig.trigger("pooled", { runId: "poor" });
    await inState(id, "work", "pending");
    await send("work", 1, 2, 3);
    await rig.until(async () => (await starts(id, "work")) === 2, "two pending starts");
    expect((await rig.states(id)).work).toBe("scheduled");
    allow("holder");
    await rig.until(async () => noted("poor work") === 3, "three starts");
    expect(await close(id)).toBe("success");
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("reads signals behind an uncommitted signal when its transaction ends", async () => {
    const id = await rig.trigger("counting", { runId: "late" });
    allow("late");
    await inState(id, "gate", "success");
    await rig.db.transaction(async (tx) => {
      await sendSignals(tx, drafts("unheard", [0]));
      await send("count", 1, 2);
      expect(await rig.ended(await rig.trigger("plain"))).toBe("success");
      expect(noted("late count")).toBe(0);
    });
    await rig.until(async () => noted("late count") === 2, "two starts");
    expect(await close(id)).toBe("success");
  });
});

describe("runs", () => {
  it("of one DAG each read their own signals", async () => {
    const [one, two] = [
      await rig.trigger("orders", { runId: "one", conf: { order: 1 } }),
      await rig.trigger("orders", { runId: "two", conf: { order: 2 } }),
    ];
    await send("paid", { order: 2 }, { order: 1, by: "Ann" }, { order: 3 }, { order: 2 });
    await rig.until(async () => noted("two pay") === 2 && noted("one pay") === 1, "the payments");
    await Promise.all([close(one), close(two)]);
    expect([noted("one pay"), noted("two pay")]).toEqual([1, 2]);
  });

  it("that are cleared after their end are open again, and read signals from then on", async () => {
    const id = await rig.trigger("orders", { runId: "reopened", conf: { order: 4 } });
    await send("paid", { order: 4 });
    await inState(id, "pay", "success");
    expect(await close(id)).toBe("success");
    await send("paid", { order: 4 }, { order: 4 });
    await clear(id, "pay");
    await rig.until(async () => noted("reopened pay") === 2, "the try after the clear");
    await send("paid", { order: 4 });
    await rig.until(async () => noted("reopened pay") === 3, "the start by a new signal");
    await inState(id, "pay", "success");
    expect((await rig.run(id)).state).toBe("running");
    expect(await close(id)).toBe("success");
    expect((await rig.tasks(id)).pay?.try_number).toBe(3);
  });

  it("that are cleared ignore signals of the same millisecond before the clear", async () => {
    const id = await rig.trigger("orders", { runId: "same-ms", conf: { order: 5 } });
    await send("paid", { order: 5 });
    await inState(id, "pay", "success");
    expect(await close(id)).toBe("success");
    await clear(id, "pay", async (tx) => {
      const signals = await sendSignals(tx, drafts("paid", [{ order: 5 }, { order: 5 }]));
      const at = (micros: number) => `date_trunc('milliseconds', now()) + interval '${micros} microseconds'`;
      await tx.rows(adhoc(`UPDATE dag_run SET queued_at = ${at(500)} WHERE id = $1`), [id]);
      await tx.rows(adhoc(`UPDATE signal SET created_at = ${at(499)} WHERE id = $1`), [signals[0]!.id]);
      await tx.rows(adhoc(`UPDATE signal SET created_at = ${at(500)} WHERE id = $1`), [signals[1]!.id]);
    });
    await rig.until(async () => noted("same-ms pay") >= 3, "cleared once, started once");
    await inState(id, "pay", "success");
    expect(await close(id)).toBe("success");
    expect((await rig.tasks(id)).pay?.try_number).toBe(3);
  });

  it("that are cancelled and deleted leave no rows, and cause no error", async () => {
    const id = await rig.trigger("counting", { runId: "deleted" });
    await inState(id, "gate", "running");
    await send("count", 1, 2, 3);
    await rig.until(async () => (await starts(id, "count")) === 3, "three pending starts");
    await rig.db.transaction((tx) => cancelRun(tx, id, "enough"));
    expect(await drive(id)).toBeNull();
    expect(await rig.db.transaction((tx) => deleteRun(tx, id))).toBe("deleted");
    await send("count", 4);
    rig.wakeUps.send(`run:${id}`);
    const next = await rig.trigger("counting", { runId: "next" });
    allow("next");
    await inState(next, "gate", "success");
    await send("count", 5);
    await rig.until(async () => noted("next count") === 1, "a start of the next run");
    expect(await close(next)).toBe("success");
  });
});

it("rejects the signals of a former owner with its batch", async () => {
  const id = await rig.trigger("counting", { runId: "fenced" });
  await inState(id, "gate", "running");
  await send("count", 1, 2);
  await rig.until(async () => (await starts(id, "count")) === 2, "two pending starts");
  const row = async () =>
    (await rig.db.rows(adhoc("SELECT * FROM run_drive WHERE dag_run_id = $1"), [id]))[0];
  const sql = "SELECT owner_job, generation FROM dag_run WHERE id = $1";
  const owned = (await rig.db.one<{ owner_job: number; generation: number }>(adhoc(sql), [id]))!;
  const before = await row();
  const stale = [
    { jobId: owned.owner_job, generation: owned.generation - 1 },
    { jobId: owned.owner_job + 1, generation: owned.generation },
  ];
  for (const { generation, jobId } of stale) {
    const gone = { taskId: "count", from: 0, before: 2, added: [] };
    const drives = [{ runId: id, position: { tx: "1", id: 0 }, ahead: null, state: {}, starts: [gone] }];
    const batch = { ...EMPTY_BATCH, jobId, fences: [{ runId: id, generation }], drives };
    await expect(rig.db.pipeline(batchCalls(batch))).rejects.toMatchObject({ code: FENCED });
  }
  expect(await row()).toEqual(before);
  expect(await starts(id, "count")).toBe(2);
  await giveClose(id);
  allow("fenced");
  expect(await rig.ended(id)).toBe("success");
});

it("reads runs at many log positions at once after a take-over", async () => {
  const own = await SchedulerRig.open();
  await own.publish({ "driven.ts": dags(own.root) });
  const tell = async (order: number) => {
    await sendSignals(own.db, drafts("paid", [{ order }]));
    own.wakeUps.send("signals");
  };
  const paid = (times: number) =>
    own.until(async () => notes(own.root).length === times, `${times} payments`, 15_000);
  const first = await own.scheduler();
  const orders = Array.from({ length: 16 }, (_, order) => order);
  for (const order of orders) {
    await own.trigger("orders", { runId: `run_${order}`, conf: { order } });
    await tell(order);
    await paid(order + 1);
  }
  await first.stop();
  for (const order of orders) await tell(order);
  await own.scheduler();
  await paid(32);
});

/** Owners are processes, which the tests kill. */
describe("an owner that dies, or gets no answers", () => {
  const running = async (stage: Stage, runId: string, dagId: string, task: string) => {
    const { installation } = stage;
    await installation.publishFiles({ "driven.ts": dags(installation.root) });
    const first = await stage.start(stage.place("first", { databaseUrl: stage.proxy.url }));
    await installation.trigger(dagId, runId);
    const tell = async (key: string, value: Json = null) => {
      await installation.persist(() => sendSignals(installation.db, drafts(key, [value])));
      await installation.sql("SELECT pg_notify('tradewind', 'signals test')");
    };
    const isIn = (state: string) =>
      stage.until(`${task} is ${state}`, async () => (await stage.task(task)).state === state);
    return { first, tell, isIn, root: installation.root };
  };

  it("dies between the commit of a stop and the cancel: the task is stopped, and can be started again", async () => {
    const stage = await Stage.open();
    const { first, isIn, root, tell } = await running(stage, "ends_dead", "lingering", "stream");
    await tell("flow");
    await isIn("running");
    await stage.until("the first try", () => noted("ends_dead try 1", root) === 1);
    const [run] = await stage.installation.sql<{ id: number }>("SELECT id FROM dag_run");
    const isStored = async () =>
      (await drive(run!.id, stage.installation.db))?.tasks?.["stream"]?.stopping !== undefined;
    const reached = stage.pauseAtCommit(first, isStored);
    await tell("dry");
    await reached;
    await first.kill();
    expect(noted("ends_dead asked 1", root)).toBe(0);

    await stage.start(stage.place("second"));
    await isIn("success");
    expect((await stage.task("stream")).try_number).toBe(1);
    await tell("flow");
    await stage.until("the second try", () => noted("ends_dead try 2", root) === 1);
    await tell("end");
    expect(await stage.runEnds()).toBe("success");
    expect(noted("ends_dead try 1", root)).toBe(1);
    expect(await stage.installation.sql("SELECT * FROM run_drive")).toEqual([]);
    expect(await stage.leaks()).toEqual([]);
  });

  it("gets no answers to its commits: each signal counts once, stored or not", async () => {
    const stage = await Stage.open();
    const { isIn, root, tell } = await running(stage, "unanswered", "counting", "gate");
    await isIn("running");
    const [run] = await stage.installation.sql<{ id: number }>("SELECT id FROM dag_run");
    const counted = () => starts(run!.id, "count", stage.installation.db);
    stage.proxy.set({ kind: "drop-commit-answer", probability: 0.25 });
    let sent = 0;
    // One by one: each is stored by its own batch.
    while (sent < 12 || stage.proxy.faults.dropped < 3) {
      await tell("count");
      sent++;
      await stage.until(`${sent} pending starts`, async () => (await counted()) >= sent);
    }
    stage.proxy.set({ kind: "pass" });
    await tell("count");
    await stage.until("the last start", async () => (await counted()) > sent);
    expect(await counted()).toBe(sent + 1);
    await tell("end");
    await stage.until("the run to be closed", async () => (await stage.task("count")).state === "skipped");
    allow("unanswered", root);
    expect(await stage.runEnds()).toBe("success");
  });

  it("dies during an onSignal: the next owner calls it again, and the signal counts once", async () => {
    const stage = await Stage.open();
    const { first, isIn, root, tell } = await running(stage, "asked", "judging", "judge");
    allow("asked", root);
    await tell("score", "answer");
    await tell("behind");
    await stage.until("the first call", () => noted("asked answer", root) === 1);
    await first.kill();
    await stage.start(stage.place("second"));
    await stage.until("the second call", () => noted("asked answer", root) === 2);
    allow("answer", root);
    await isIn("success");
    await stage.until("the start by the next signal", () => noted("asked count", root) === 1);
    await tell("end");
    expect(await stage.runEnds()).toBe("success");
    expect(noted("asked judged", root)).toBe(1);
    expect((await stage.task("judge")).try_number).toBe(1);
  });
});

// Last: it has been running since the first test.
it("stores a dead letter after five failures of an onSignal, and handles later signals, also across a reload", async () => {
  await readAgain;
  await quiet.until(async () => (await quiet.states(buried)).judge === "success", "the next start");
  expect(noted("asked bad", quiet.root)).toBe(5);
  const sql = "SELECT listener, key, value, error, attempts FROM signal_dead_letter";
  expect(await quiet.db.rows(adhoc(sql))).toEqual([
    {
      listener: "task:grading/buried/judge",
      key: "grade",
      value: "bad",
      error: expect.stringContaining("not a score"),
      attempts: 5,
    },
  ]);
  expect(await close(buried, quiet)).toBe("success");
  // No run is left that needs it.
  await deleteSignals(quiet.db, EVERYTHING);
  expect(
    await quiet.db.rows(adhoc("SELECT key FROM signal WHERE key IN ('behind', 'grade', 'count')")),
  ).toEqual([]);
});
