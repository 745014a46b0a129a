import { writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";
import { recountPools } from "../store/pool/pool-occupancy.ts";

describe("slots stay exact", () => {
  let rig: SchedulerRig;
  const source = (tasks: string, options = "{}") => `
    import { dag } from "tradewind";
    import { existsSync } from "node:fs";
    const gate = (name) => async (_, ctx) => {
      while (!existsSync(${JSON.stringify(rig.root)} + "/" + name) && !ctx.abort.aborted)
        await new Promise((go) => setTimeout(go, 10));
    };
    export default dag("moving", ${options}, (d) => { ${tasks} });
  `;
  const open = (name: string) => writeFileSync(`${rig.root}/${name}`, "");
  const clearToLatest = (id: number, tasks: string[]) => rig.clear(id, { tasks, latestVersion: true });

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('left', 2), ('right', 2), ('brief', 1)"));
    await rig.scheduler();
  });

  it("when a new version changes the pool of a running task, and adds and removes tasks", async () => {
    await rig.publish({
      "moving.ts": source(`
        d.task("done", { pool: "left" }, () => 1);
        d.task("held", { pool: "left" }, gate("held"));
        d.task("going", { pool: "left" }, gate("never"));
      `),
    });
    const id = await rig.trigger("moving");
    await rig.until(async () => {
      const states = await rig.states(id);
      return states.held === "running" && states.going === "running" && states.done === "success";
    }, "both to run");
    await rig.publish({
      "moving.ts": source(`
        d.task("done", { pool: "right" }, () => 2);
        d.task("held", { pool: "right" }, gate("held"));
        d.task("coming", { pool: "right" }, () => 3);
      `),
    });
    await clearToLatest(id, ["done"]);
    await rig.until(async () => (await rig.states(id)).coming === "success", "the new task to have run");
    expect((await rig.states(id)).going).toBe("removed");
    expect(await rig.poolsAreExact()).toBe(true);
    open("held");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.states(id)).toEqual({
      done: "success",
      held: "success",
      going: "removed",
      coming: "success",
    });
    expect(await rig.output(id, "done")).toBe(2);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("when a pool is deleted without a wake-up", async () => {
    await rig.publish({
      "brief.ts": source(`d.task("only", { pool: "brief" }, () => 1);`).replace("moving", "brief"),
    });
    // The scheduler still has the pool in memory when it queues the task.
    await rig.db.rows(adhoc("DELETE FROM pool WHERE name = 'brief'"));
    const id = await rig.trigger("brief");
    await rig.until(async () => (await rig.states(id)).only === "scheduled", "the task to wait for its pool");
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('brief', 1)"));
    rig.wakeUps.send("pools");
    expect(await rig.ended(id)).toBe("success");
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("when a run times out while another waits for the same task", async () => {
    const limited = source(`d.task("alone", { maxActivePerDag: 1 }, gate("alone"));`, `{ runTimeout: "1s" }`);
    await rig.publish({ "timeout.ts": limited.replace("moving", "timeout") });
    const first = await rig.trigger("timeout");
    await rig.until(async () => (await rig.states(first)).alone === "running", "the first to run");
    const second = await rig.trigger("timeout");
    expect(await rig.ended(first)).toBe("failed");
    await rig.until(async () => (await rig.states(second)).alone !== "scheduled", "the second to start");
    open("alone");
    await rig.ended(second);
    expect(await rig.poolsAreExact()).toBe(true);
  });

  it("by a recount when the stored numbers are wrong", async () => {
    await rig.publish({
      "wrong.ts": source(`d.task("held", { pool: "left" }, gate("wrong"));`).replace("moving", "wrong"),
    });
    const id = await rig.trigger("wrong");
    await rig.until(async () => (await rig.states(id)).held === "running", "the task to run");
    await rig.db.rows(adhoc("UPDATE pool SET occupied = 0 WHERE name = 'left'"));
    expect(await rig.poolsAreExact()).toBe(false);
    open("wrong");
    expect(await rig.ended(id)).toBe("success");
    await rig.db.rows(adhoc("UPDATE pool SET occupied = 7 WHERE name = 'right'"));
    await recountPools(rig.db);
    expect(await rig.poolsAreExact()).toBe(true);
  });
});
