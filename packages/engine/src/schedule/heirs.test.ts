import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database.ts";
import { runEdits } from "../store/run-edit.ts";
import type { SchedulerJob } from "./scheduler-job.ts";

describe("tasks that stand behind others of a full pool", () => {
  let rig: SchedulerRig;
  let scheduler: SchedulerJob;
  const ledger = (dagId: string) => readFileSync(`${rig.root}/${dagId}.ledger`, "utf8");
  const source = (dagId: string, tasks: string) => `
    import { appendFileSync, existsSync } from "node:fs";
    import { dag } from "tradewind";
    const root = ${JSON.stringify(rig.root)};
    const work = (gate) => async (_, ctx) => {
      appendFileSync(root + "/${dagId}.ledger", "+");
      while (gate && !existsSync(root + "/" + gate) && !ctx.abort.aborted) await new Promise((go) => setTimeout(go, 10));
      appendFileSync(root + "/${dagId}.ledger", "-");
    };
    export default dag("${dagId}", { maxActiveTasks: 100, defaults: { pool: "narrow" } }, (d) => { ${tasks} });
  `;
  const behind = async (id: number) => {
    const sql =
      "SELECT task_id, state FROM task_instance WHERE dag_run_id = $1 AND is_behind ORDER BY task_id";
    return (await rig.db.rows<{ task_id: string }>(adhoc(sql), [id])).map((row) => row.task_id);
  };
  const occupied = async () => {
    const row = await rig.db.one<{ occupied: number }>(
      adhoc("SELECT occupied FROM pool WHERE name = 'narrow'"),
    );
    return row?.occupied;
  };
  /** The most that were at work at the same time. */
  const most = (dagId: string) => {
    let running = 0;
    return Math.max(...[...ledger(dagId)].map((sign) => (running += sign === "+" ? 1 : -1)));
  };
  /** The last ones go first, so that the order in which they stand is not that of their names. */
  const held = async (dagId: string, { gate = `"${dagId}"` } = {}) => {
    writeFileSync(`${rig.root}/${dagId}.ledger`, "");
    await rig.publish({
      [`${dagId}.ts`]: source(
        dagId,
        `for (let n = 0; n < 6; n++) d.task("t" + n, { priority: n }, work(${gate}));`,
      ),
    });
    const id = await rig.trigger(dagId);
    await rig.until(async () => (await behind(id)).length === 4 && (await occupied()) === 2, "a full line");
    return id;
  };

  beforeAll(async () => {
    rig = await SchedulerRig.open();
    await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 2)"));
    scheduler = await rig.scheduler({ parallelism: 6, ahead: 2 });
  });

  it("take over its slots, and there are never more at work than it has", async () => {
    await rig.db.rows(
      adhoc(`CREATE TABLE stood (task_id text);
        CREATE FUNCTION stood() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN INSERT INTO stood VALUES (NEW.task_id); RETURN NULL; END';
        CREATE TRIGGER stood AFTER UPDATE ON task_instance FOR EACH ROW WHEN (NEW.is_behind) EXECUTE FUNCTION stood()`),
    );
    await rig.publish({
      "many.ts": source("many", `for (let n = 0; n < 60; n++) d.task("t" + n, { retries: 1 }, work());`),
    });
    expect(await rig.ended(await rig.trigger("many"))).toBe("success");
    await rig.db.rows(adhoc("DROP TRIGGER stood ON task_instance"));
    const [row] = await rig.db.rows<{ count: number }>(adhoc("SELECT count(*)::int AS count FROM stood"));
    expect(row?.count).toBeGreaterThan(10);
    expect(ledger("many")).toHaveLength(120);
    expect(most("many")).toBeLessThanOrEqual(2);
    expect(await occupied()).toBe(0);
  });

  it("can be marked, cleared and cancelled like others that are queued, and the pool stays exact", async () => {
    const id = await held("edited");
    const [marked, cleared] = await behind(id);
    const tasks = (taskId = "") => [{ dagRunId: id, tasks: [{ taskId, mapIndex: -1 }] }];
    await rig.db.transaction((tx) =>
      runEdits.markTasks(tx, { runs: tasks(marked), state: "success", dryRun: false }),
    );
    await rig.db.transaction((tx) =>
      runEdits.clearTasks(tx, {
        runs: tasks(cleared),
        only: "any",
        resetRuns: true,
        latestVersion: false,
        refuseRunning: false,
        dryRun: false,
      }),
    );
    expect(await occupied()).toBe(2);
    rig.wakeUps.send(`run:${id}`);
    await rig.until(
      async () => (await rig.states(id))[cleared ?? ""] === "queued" && (await rig.poolsAreExact()),
      "the cleared one to be queued again",
    );
    writeFileSync(`${rig.root}/edited`, "");
    expect(await rig.ended(id)).toBe("success");
    expect(most("edited")).toBeLessThanOrEqual(2);
    expect(await occupied()).toBe(0);

    const other = await held("cancelled");
    await rig.db.transaction((tx) => runEdits.cancelRun(tx, other, "not wanted"));
    rig.wakeUps.send(`run:${other}`);
    expect(await rig.ended(other)).toBe("failed");
    expect(await occupied()).toBe(0);
    expect(await behind(other)).toEqual([]);
  });

  const markSuccessful = (id: number, taskId: string) =>
    rig.db.transaction((tx) =>
      runEdits.markTasks(tx, {
        runs: [{ dagRunId: id, tasks: [{ taskId, mapIndex: -1 }] }],
        state: "success",
        dryRun: false,
      }),
    );

  it("begin once, not twice, when one that is at work is marked: its slots are free by then", async () => {
    const id = await held("marked");
    await rig.until(async () => ledger("marked") === "++", "two at work");
    await markSuccessful(id, "t5");
    rig.wakeUps.send(`run:${id}`);
    await rig.until(async () => [...ledger("marked")].sort().join("") === "+++-", "another in its place");
    await rig.until(async () => (await occupied()) === 2, "its slots");
    expect(await behind(id)).toEqual(["t0", "t1", "t2"]);
    // What is reported by now has been dealt with when a task that came later has ended.
    await rig.publish({
      "plain.ts": `import { dag } from "tradewind"; export default dag("plain", {}, (d) => { d.task("only", () => 1); });`,
    });
    expect(await rig.ended(await rig.trigger("plain"))).toBe("success");
    expect(ledger("marked")).toHaveLength(4);
    writeFileSync(`${rig.root}/marked`, "");
    expect(await rig.ended(id)).toBe("success");
    expect(await occupied()).toBe(0);
  });

  it("that have begun are the first to get slots, when those of the one before had been given to others", async () => {
    const id = await held("unheard", { gate: '"unheard" + n' });
    await rig.until(async () => ledger("unheard") === "++", "two at work");
    // Nobody is told: its scheduler passes on what it no longer has.
    await markSuccessful(id, "t5");
    writeFileSync(`${rig.root}/unheard5`, "");
    await rig.until(async () => ledger("unheard") === "++-+" || ledger("unheard") === "+++-", "its heir");
    await rig.until(async () => (await occupied()) === 2, "its slots");
    expect(await behind(id)).toEqual(["t0", "t1", "t2"]);
    expect(await rig.poolsAreExact()).toBe(true);
    for (let n = 0; n < 5; n++) writeFileSync(`${rig.root}/unheard${n}`, "");
    expect(await rig.ended(id)).toBe("success");
    expect(most("unheard")).toBeLessThanOrEqual(2);
    expect(await occupied()).toBe(0);
  });

  it("wait for nobody when the pool grows", async () => {
    const id = await held("growing");
    await rig.db.rows(adhoc("UPDATE pool SET slots = 4 WHERE name = 'narrow'"));
    rig.wakeUps.send("pools");
    await rig.until(async () => (await occupied()) === 4, "two more at work");
    await rig.until(async () => ledger("growing") === "++++", "four to begin");
    writeFileSync(`${rig.root}/growing`, "");
    expect(await rig.ended(id)).toBe("success");
    expect(await occupied()).toBe(0);
    await rig.db.rows(adhoc("UPDATE pool SET slots = 2 WHERE name = 'narrow'"));
    rig.wakeUps.send("pools");
  });

  it("are queued again by the next scheduler, and cost no try, when theirs is gone", async () => {
    const id = await held("moved");
    await scheduler.stop(0);
    expect(await rig.poolsAreExact()).toBe(true);
    writeFileSync(`${rig.root}/moved`, "");
    await rig.scheduler({ parallelism: 6, ahead: 2 });
    expect(await rig.ended(id)).toBe("success");
    expect(await occupied()).toBe(0);
    const rows = await rig.db.rows<{ try_number: number }>(
      adhoc("SELECT try_number FROM task_instance WHERE dag_run_id = $1"),
      [id],
    );
    expect(rows.map((row) => row.try_number)).toEqual([1, 1, 1, 1, 1, 1]);
  });
});
