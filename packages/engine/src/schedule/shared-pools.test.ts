import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { SchedulerRig } from "../../test/support/scheduler-rig.ts";
import { adhoc } from "../store/database.ts";

it("a freed slot goes to the highest task of all schedulers", async () => {
  const rig = await SchedulerRig.open();
  const ledger = `${rig.root}/ledger`;
  await rig.db.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('narrow', 1)"));
  await rig.publish({
    "shared.ts": `
      import { dag } from "tradewind";
      import { appendFileSync } from "node:fs";
      const work = async (_, ctx) => {
        appendFileSync(${JSON.stringify(ledger)}, ctx.taskId + "\\n");
        await new Promise((resolve) => setTimeout(resolve, 60));
      };
      export const low = dag("low", { maxActiveTasks: 100, defaults: { pool: "narrow" } }, (d) => {
        for (let i = 0; i < 30; i++) d.task("low" + i, { priority: 1 }, work);
      });
      export const high = dag("high", { defaults: { pool: "narrow" } }, (d) => { d.task("high", { priority: 50 }, work); });
    `,
  });
  await rig.scheduler({ shared: false });
  const low = await rig.trigger("low");
  await rig.until(async () => Object.values(await rig.states(low)).includes("running"), "the first low task");
  await rig.scheduler({ shared: false });
  const high = [];
  for (let i = 0; i < 6; i++) high.push(await rig.trigger("high"));
  for (const id of [low, ...high]) expect(await rig.ended(id, 60_000)).toBe("success");

  const owners = await rig.db.rows(adhoc("SELECT DISTINCT executor_job FROM task_instance"));
  expect(owners.length).toBe(2);
  const starts = readFileSync(ledger, "utf8").trim().split("\n");
  const firstHigh = starts.indexOf("high");
  const lowsBetween = starts.slice(firstHigh, starts.lastIndexOf("high")).filter((task) => task !== "high");
  // One low task may hold the slot, or be on its way to it, when a high one arrives; not each time a slot is freed.
  expect(lowsBetween.length).toBeLessThanOrEqual(6);
  expect(starts.lastIndexOf("high")).toBeLessThan(starts.length - 5);
  expect(await rig.poolsAreExact()).toBe(true);
});
