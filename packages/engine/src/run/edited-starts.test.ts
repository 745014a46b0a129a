/** Edits of runs with signal-driven tasks: no start is lost or counted twice, and stopped tasks stay stopped. */
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { submitManualCommand } from "../store/drive/manual-commands.ts";
import { sendSignals } from "../store/signal/signals.ts";

let rig: SchedulerRig;

/** "load" waits for a file, and fails while another file exists; every task records its start and its cause. */
const DAGS = `
  import { dag, signal, start, stop } from "tradewind";
  import { appendFileSync, existsSync } from "node:fs";
  const ROOT = "@ROOT@";
  const order = signal("order");
  const record = (ctx) => {
    const orders = ctx.startSignals.map(({ value }) => value);
    appendFileSync(ROOT + "/" + ctx.run.id, [ctx.taskId, ...orders].join(" ") + "\\n");
  };
  const load = async (_, ctx) => {
    record(ctx);
    while (!existsSync(ROOT + "/open_" + ctx.run.id)) await new Promise((go) => setTimeout(go, 10));
    if (existsSync(ROOT + "/broken_" + ctx.run.id)) throw new Error("broken");
  };
  const work = (_, ctx) => record(ctx);
  export const orders = dag("orders", {}, (d) => {
    const loaded = d.task("load", load);
    d.task("ship", { after: loaded, on: [start(order)] }, work);
  });
  export const cluster = dag("cluster", {}, (d) => {
    const made = d.setup("make", work);
    const loaded = d.task("load", { after: made }, load);
    const shipped = d.task("ship", { after: loaded, on: [start(order)] }, work);
    d.teardown("drop", { of: made, after: shipped }, (_made, _, ctx) => record(ctx));
  });
  export const retried = dag("retried", { runRetries: 1, runRetryDelay: 0 }, (d) => {
    const loaded = d.task("load", async (_, ctx) => {
      await load(_, ctx);
      if (ctx.tryNumber === 1) throw new Error("broken");
    });
    d.task("ship", { after: loaded, on: [start(order, { once: true })] }, work);
  });
  export const stoppable = dag("stoppable", {}, (d) => {
    d.task("load", load);
    d.task("ship", { pool: "narrow", on: [stop(signal("halt"))] }, work);
  });
  export const stream = dag("stream", { stop: signal("never") }, (d) => {
    d.task("load", load);
    d.task("serve", { lifetime: "streaming" }, async (_, ctx) => {
      record(ctx);
      await new Promise((go) => ctx.abort.aborted ? go() : ctx.abort.addEventListener("abort", go));
    });
  });
`;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 0)"));
  await rig.publish({ "edited.ts": DAGS.replaceAll("@ROOT@", rig.root) });
  await rig.scheduler();
});

const order = async (id: number, taskId: string | null, action: "stop" | "start") => {
  const run = await rig.db.one<{ dag_id: string; run_id: string }>(
    adhoc("SELECT dag_id, run_id FROM dag_run WHERE id = $1"),
    [id],
  );
  const who = { dagId: run!.dag_id, runId: run!.run_id, user: "ada" };
  await rig.edit(id, (tx) =>
    submitManualCommand(
      tx,
      taskId === null ? { ...who, taskId, action: "stop" } : { ...who, taskId, action },
    ),
  );
};
const send = async (value: string) => {
  await sendSignals(rig.db, [{ namespace: "default", key: "order", value, sender: "test" }]);
  rig.wakeUps.send("signals");
};
const set = (file: string) => writeFileSync(`${rig.root}/${file}`, "");
const unset = (file: string) => rmSync(`${rig.root}/${file}`);
const recorded = (name: string) =>
  existsSync(`${rig.root}/${name}`) ? readFileSync(`${rig.root}/${name}`, "utf8").trim().split("\n") : [];
const inState = (id: number, taskId: string, state: string) =>
  rig.until(async () => (await rig.states(id))[taskId] === state, `${taskId} to be ${state}`);
const waiting = (id: number, count: number) =>
  rig.until(async () => {
    const rows = await rig.db.rows(adhoc("SELECT 1 FROM run_start WHERE dag_run_id = $1"), [id]);
    return rows.length === count;
  }, `${count} pending starts`);
/** A run whose task "load" runs; its task "ship" has `starts` pending starts. */
const loading = async (name: string, dagId: string, starts = 0) => {
  const id = await rig.trigger(dagId, { runId: name });
  await inState(id, "load", "running");
  for (let n = 1; n <= starts; n++) await send(`${name}-${n}`);
  if (starts > 0) await waiting(id, starts);
  return id;
};
/** A run whose task "load" has failed, so that the started task "ship" is upstream_failed. */
const broken = async (name: string, dagId = "orders") => {
  set(`broken_${name}`);
  const id = await loading(name, dagId, 1);
  set(`open_${name}`);
  await inState(id, "ship", "upstream_failed");
  return id;
};
const closed = async (id: number) => {
  await order(id, null, "stop");
  return await rig.ended(id);
};

describe("a start whose task ended as upstream_failed", () => {
  it("runs when the failed tasks of the ended run are cleared", async () => {
    const id = await broken("ended");
    expect(await closed(id)).toBe("failed");
    unset("broken_ended");
    expect(await rig.clear(id, { only: "failed" })).toEqual(["load", "ship"]);
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("ended")).toEqual(["load", "load", "ship"]);
  });

  it("runs, with its signals, when the failed task is cleared in a running run", async () => {
    const id = await broken("open");
    unset("broken_open");
    expect(await rig.clear(id, { tasks: ["load"] })).toEqual(["load", "ship"]);
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("open")).toEqual(["load", "load", "ship open-1"]);
  });

  it("runs when the failed task is marked as success", async () => {
    const id = await broken("marked");
    await rig.mark(id, "load", "success");
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("marked")).toEqual(["load", "ship marked-1"]);
  });

  it("runs in the next try of the run", async () => {
    const id = await loading("retried", "retried", 1);
    set("open_retried");
    await rig.until(async () => recorded("retried").length === 3, "the next try of the run");
    expect(recorded("retried")).toEqual(["load", "load", "ship"]);
    expect(await closed(id)).toBe("success");
  });
});

describe("a start that is pending until the upstream of its task has ended", () => {
  it("runs when the run is cancelled and its failed tasks are cleared", async () => {
    const id = await loading("cancelled", "orders", 1);
    await rig.cancel(id);
    expect(await rig.states(id)).toEqual({ load: "failed", ship: "skipped" });
    expect(await rig.clear(id, { only: "failed" })).toEqual(["load", "ship"]);
    set("open_cancelled");
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("cancelled")).toEqual(["load", "load", "ship"]);
  });

  it("runs when the run is cancelled, its teardowns run, and its failed tasks are cleared", async () => {
    const id = await loading("torn_down", "cluster", 1);
    await rig.cancel(id);
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toMatchObject({ load: "failed", ship: "skipped", drop: "success" });
    expect(await rig.clear(id, { only: "failed" })).toEqual(["drop", "load", "make", "ship"]);
    set("open_torn_down");
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
  });

  it("is removed when its task is marked", async () => {
    const id = await loading("done", "orders", 1);
    await rig.mark(id, "ship", "success");
    await waiting(id, 0);
    set("open_done");
    await inState(id, "load", "success");
    expect(await closed(id)).toBe("success");
    expect(await rig.states(id)).toEqual({ load: "success", ship: "success" });
    expect(recorded("done")).toEqual(["load"]);
  });

  it("runs, with its signals, when its task was marked and is cleared", async () => {
    const id = await loading("marked_and_cleared", "orders", 1);
    await rig.mark(id, "ship", "failed");
    await rig.clear(id, { only: "failed" });
    set("open_marked_and_cleared");
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("marked_and_cleared")).toEqual(["load", "ship marked_and_cleared-1"]);
  });

  it("does not remove later starts when its task is marked", async () => {
    const id = await loading("two", "orders", 2);
    await rig.mark(id, "ship", "success");
    set("open_two");
    await rig.until(async () => recorded("two").length === 2, "the second start");
    await inState(id, "ship", "success");
    expect(await closed(id)).toBe("success");
    expect(recorded("two")).toEqual(["load", "ship two-2"]);
  });
});

describe("a task that was stopped", () => {
  it("stays skipped when another task is cleared, although it had no slot yet", async () => {
    set("broken_stopped");
    set("open_stopped");
    const id = await rig.trigger("stoppable", { runId: "stopped" });
    await inState(id, "ship", "scheduled");
    await inState(id, "load", "failed");
    await order(id, "ship", "stop");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({ load: "failed", ship: "skipped" });
    unset("broken_stopped");
    expect(await rig.clear(id, { only: "failed" })).toEqual(["load"]);
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({ load: "success", ship: "skipped" });
    // The stopped task begins again when it is cleared itself.
    expect(await rig.clear(id, { tasks: ["ship"] })).toEqual(["ship"]);
    await inState(id, "ship", "scheduled");
  });

  it("stays a success, if streaming, when failed tasks are cleared, and runs again when the whole run is", async () => {
    set("broken_stream");
    set("open_stream");
    const id = await rig.trigger("stream", { runId: "stream" });
    await inState(id, "serve", "running");
    await inState(id, "load", "failed");
    await order(id, "serve", "stop");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({ load: "failed", serve: "success" });
    unset("broken_stream");
    expect(await rig.clear(id, { only: "failed" })).toEqual(["load"]);
    expect(await rig.ended(id)).toBe("success");
    expect(recorded("stream").filter((line) => line === "serve")).toHaveLength(1);
    expect(await rig.clear(id)).toEqual(["load", "serve"]);
    await rig.until(
      async () => recorded("stream").filter((line) => line === "serve").length === 2,
      "the stream",
    );
    await inState(id, "serve", "running");
    await order(id, "serve", "stop");
    expect(await rig.ended(id)).toBe("success");
  });
});
