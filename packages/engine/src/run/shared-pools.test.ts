import { readFileSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database/database.ts";

it("a freed slot goes to the task with the highest priority of all schedulers", async () => {
  const rig = await SchedulerRig.open();
  const ledger = `${rig.root}/ledger`;
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 1)"));
  await rig.publish({
    "shared.ts": `
      import { dag } from "tradewind";
      import { appendFileSync, existsSync } from "node:fs";
      const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const work = async (_, ctx) => {
        appendFileSync(${JSON.stringify(ledger)}, ctx.taskId + "\\n");
        await pause(60);
      };
      export const low = dag("low", { maxActiveTasks: 100 }, (d) => {
        for (let i = 0; i < 80; i++) d.task("low" + i, { pool: "narrow", priority: 1 }, work);
      });
      export const high = dag("high", {}, (d) => {
        const gate = d.task("gate", async (_, ctx) => {
          while (!existsSync(${JSON.stringify(`${rig.root}/open`)}) && !ctx.abort.aborted) await pause(10);
        });
        for (let i = 0; i < 6; i++) d.task("high" + i, { pool: "narrow", priority: 50, after: [gate] }, work);
      });
    `,
  });
  await rig.scheduler({ shared: false });
  const low = await rig.trigger("low");
  await rig.until(async () => Object.values(await rig.states(low)).includes("running"), "the first low task");
  await rig.scheduler({ shared: false });
  const high = await rig.trigger("high");
  await rig.until(async () => (await rig.states(high)).gate === "running", "the gate to run");

  // The second scheduler becomes the owner of the second run.
  const hand = `UPDATE dag_run SET owner_job = (SELECT max(id) FROM job WHERE kind = 'scheduler'),
                       generation = generation + 1 WHERE id = $1`;
  await rig.db.rows(adhoc(hand), [high]);
  rig.wakeUps.send("dags");
  const owners = "SELECT count(DISTINCT executor_job) AS n FROM task_instance WHERE state = 'running'";
  await rig.until(
    async () => (await rig.db.one<{ n: number }>(adhoc(owners)))?.n === 2,
    "both schedulers to run a task",
  );
  writeFileSync(`${rig.root}/open`, "");
  for (const id of [low, high]) expect(await rig.ended(id, 60_000)).toBe("success");

  const starts = readFileSync(ledger, "utf8").trim().split("\n");
  const isHigh = (task: string) => task.startsWith("high");
  const first = starts.findIndex(isHigh);
  const last = starts.findLastIndex(isHigh);
  // A low task may already be queued for the slot when a high task arrives, but not each time a slot is freed.
  expect(starts.slice(first, last).filter((task) => !isHigh(task)).length).toBeLessThanOrEqual(6);
  expect(first).toBeGreaterThan(0);
  expect(last).toBeLessThan(starts.length - 1);
  expect(await rig.poolsAreExact()).toBe(true);
});
