/** A run that a user ended and an edit resumes: it succeeds only when every task that its rules demand has run. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { markRun } from "../store/edit/end-run.ts";

let rig: SchedulerRig;

/** Each task records its run and name; "hold" waits for a file of its run. */
const DAGS = `
  import { dag } from "tradewind";
  import { appendFileSync, existsSync } from "node:fs";
  const ROOT = "@ROOT@";
  const record = (ctx) => appendFileSync(ROOT + "/" + ctx.run.id, ctx.taskId + "\\n");
  const hold = async (_, ctx) => {
    record(ctx);
    while (!existsSync(ROOT + "/open_" + ctx.run.id)) await new Promise((go) => setTimeout(go, 10));
    return [1, 2];
  };
  const work = (_, ctx) => { record(ctx); return 1; };
  export const chain = dag("chain", (d) => {
    const first = d.task("hold", hold);
    const next = d.task("next", { after: first }, work);
    d.task("last", { after: next }, work);
  });
  export const wide = dag("wide", (d) => {
    const first = d.task("hold", hold);
    d.task("next", { after: first }, work);
    d.task("beside", { pool: "narrow" }, work);
  });
  export const map = dag("map", (d) => {
    const list = d.task("hold", hold);
    const each = d.map("each", { over: list }, (_, __, ctx) => work(null, ctx));
    d.task("sum", { after: each }, work);
  });
  export const cluster = dag("cluster", (d) => {
    const made = d.setup("create", work);
    const first = d.task("first", { after: made }, work);
    d.task("hold", { after: first }, hold);
    d.teardown("delete", { of: made }, (_, __, ctx) => record(ctx));
  });
  export const grouped = dag("grouped", (d) => {
    const group = d.group("g", { retries: 1, retryDelay: 0 }, (g) => {
      const first = g.task("first", work);
      g.task("hold", { after: first }, hold);
    });
    d.task("after", { after: group }, work);
  });
`;

beforeAll(async () => {
  rig = await SchedulerRig.open();
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 0)"));
  await rig.publish({ "resumed.ts": DAGS.replaceAll("@ROOT@", rig.root) });
  await rig.scheduler();
});

const open = (name: string) => writeFileSync(`${rig.root}/open_${name}`, "");
const recorded = (name: string) =>
  existsSync(`${rig.root}/${name}`) ? readFileSync(`${rig.root}/${name}`, "utf8").trim().split("\n") : [];
/** A run whose task "hold" has begun. */
const holding = async (name: string, dagId: string, taskId = "hold") => {
  const id = await rig.trigger(dagId, { runId: name });
  await rig.until(async () => (await rig.states(id))[taskId] === "running", `${name}: ${taskId} to run`);
  return id;
};
/** The end state of a run after its tasks "hold" are released. */
const endedAfter = async (id: number, name: string) => {
  open(name);
  return await rig.ended(id);
};

describe("a cancelled run whose failed tasks are cleared", () => {
  it("runs the tasks that the cancellation skipped, also those that never had a slot", async () => {
    const id = await holding("wide", "wide");
    await rig.cancel(id);
    expect(await rig.states(id)).toEqual({ hold: "failed", next: "skipped", beside: "skipped" });
    expect(await rig.clear(id, { only: "failed" })).toEqual(["beside", "hold", "next"]);
    await rig.db.rows(adhoc("UPDATE pool SET slots = 1 WHERE name = 'narrow'"));
    rig.wakeUps.send("pools");
    expect(await endedAfter(id, "wide")).toBe("success");
    expect(recorded("wide").sort()).toEqual(["beside", "hold", "hold", "next"]);
  });

  it("runs from the start if it was cancelled before it began", async () => {
    const pause = async (isPaused: boolean) => {
      await rig.db.rows(adhoc("UPDATE dag SET is_paused = $1 WHERE dag_id = 'chain'"), [isPaused]);
      rig.wakeUps.send("dags");
    };
    await pause(true);
    const id = await rig.trigger("chain", { runId: "unbegun" });
    await rig.cancel(id);
    expect([(await rig.run(id)).state, await rig.states(id)]).toEqual(["failed", {}]);
    expect(await rig.clear(id, { only: "failed" })).toEqual([]);
    await pause(false);
    expect(await endedAfter(id, "unbegun")).toBe("success");
    expect(recorded("unbegun")).toEqual(["hold", "next", "last"]);
  });

  it("keeps a task that a user marked as skipped, and the skips that follow from it", async () => {
    const id = await holding("marked", "chain");
    await rig.cancel(id);
    await rig.mark(id, "next", "skipped");
    await rig.clear(id, { only: "failed" });
    expect(await endedAfter(id, "marked")).toBe("success");
    expect(await rig.states(id)).toMatchObject({ hold: "success", next: "skipped", last: "skipped" });
  });

  it("expands a map whose list was not computed before", async () => {
    const id = await holding("map", "map");
    await rig.cancel(id);
    await rig.clear(id, { only: "failed" });
    expect(await endedAfter(id, "map")).toBe("success");
    expect(recorded("map")).toEqual(["hold", "hold", "each", "each", "sum"]);
  });

  it("runs the setup and the teardown again with a task of their scope", async () => {
    const id = await holding("cluster", "cluster");
    await rig.cancel(id);
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.clear(id, { only: "failed" })).toEqual(["create", "delete", "hold"]);
    expect(await endedAfter(id, "cluster")).toBe("success");
    expect(recorded("cluster")).toEqual([
      ...["create", "first", "hold", "delete"],
      ...["create", "hold", "delete"],
    ]);
  });

  it("runs a group with retries again as a whole", async () => {
    const id = await holding("grouped", "grouped", "g.hold");
    await rig.cancel(id);
    expect(await rig.clear(id, { only: "failed" })).toEqual(["after", "g.first", "g.hold"]);
    expect(await endedAfter(id, "grouped")).toBe("success");
    expect(recorded("grouped")).toEqual(["g.first", "g.hold", "g.first", "g.hold", "after"]);
  });
});

describe("a run that another edit resumes", () => {
  it("runs the downstream of a task that is marked as success", async () => {
    const id = await holding("let-through", "chain");
    await rig.mark(id, "hold", "failed");
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toMatchObject({ next: "upstream_failed", last: "upstream_failed" });
    await rig.mark(id, "hold", "success");
    expect(await rig.ended(id)).toBe("success");
    expect(recorded("let-through")).toEqual(["hold", "next", "last"]);
  });

  it("evaluates the tasks that its cancellation skipped when it is queued again", async () => {
    const id = await holding("queued", "chain");
    await rig.cancel(id);
    await rig.edit(id, (tx) => markRun(tx, id, "queued"));
    // The stopped task was not cleared: it stays failed, and its downstream tasks cannot run.
    expect(await rig.ended(id)).toBe("failed");
    expect(await rig.states(id)).toEqual({
      hold: "failed",
      next: "upstream_failed",
      last: "upstream_failed",
    });
    await rig.mark(id, "hold", "success");
    expect(await rig.ended(id)).toBe("success");
    expect(recorded("queued")).toEqual(["hold", "next", "last"]);
  });

  it("does not run tasks that had not begun when the run was marked as success", async () => {
    const id = await holding("vouched", "chain");
    await rig.edit(id, (tx) => markRun(tx, id, "success"));
    expect(await rig.clear(id, { tasks: ["hold"] })).toEqual(["hold"]);
    expect(await endedAfter(id, "vouched")).toBe("success");
    expect(recorded("vouched")).toEqual(["hold", "hold"]);
  });
});
