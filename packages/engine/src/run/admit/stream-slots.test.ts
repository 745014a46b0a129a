/** The slots of streaming tasks. */
import { beforeEach, expect, it } from "vitest";
import { SchedulerRig } from "../../../test/support/scheduler-rig.ts";
import { adhoc } from "../../store/database/database.ts";

let rig: SchedulerRig;

beforeEach(async () => {
  rig = await SchedulerRig.open();
  await rig.publish({
    "streams.ts": `
      import { setTimeout as sleep } from "node:timers/promises";
      import { dag } from "tradewind";
      export const stream = dag("stream", { maxActiveRuns: 9 }, (d) => {
        d.task("s", { lifetime: "streaming" }, async (_, ctx) => { while (!ctx.abort.aborted) await sleep(20); });
      });
      export const quick = dag("quick", (d) => { d.task("q", () => 1); });`,
  });
  return () => rig.close();
});

const streams = async () => {
  const sql = "SELECT state FROM task_instance WHERE task_id = 's' ORDER BY dag_run_id";
  return (await rig.db.rows<{ state: string }>(adhoc(sql))).map(({ state }) => state);
};
const facts = async () => {
  const row = await rig.db.one<{ facts: Record<string, unknown> | null }>(adhoc("SELECT facts FROM job"));
  const { slots, streaming_slots, streaming_tasks } = row?.facts ?? {};
  return { slots, streaming_slots, streaming_tasks };
};

it("leaves ordinary slots to other tasks while streaming tasks have slots of their own", async () => {
  await rig.scheduler({ parallelism: 1, settings: { TRADEWIND_STREAMING_SLOTS: "2" } });
  for (let n = 0; n < 2; n++) await rig.trigger("stream");
  await rig.until(async () => (await streams()).join() === "running,running", "two streams");
  expect(await rig.ended(await rig.trigger("quick"))).toBe("success");
  // One more stream takes the ordinary slot; the next has none.
  for (let n = 0; n < 2; n++) await rig.trigger("stream");
  const isFull = async () => (await streams()).join() === "running,running,running,scheduled";
  await rig.until(isFull, "a third stream");
  const quick = await rig.trigger("quick");
  const counted = { slots: 1, streaming_slots: 2, streaming_tasks: 3 };
  await rig.until(async () => JSON.stringify(await facts()) === JSON.stringify(counted), "the job's facts");
  await rig.until(async () => (await rig.states(quick)).q === "scheduled", "a task that waits");
  expect(await isFull()).toBe(true);
});

it("lets streaming tasks use ordinary slots when they have none of their own", async () => {
  await rig.scheduler({ parallelism: 1 });
  await rig.trigger("stream");
  await rig.until(async () => (await streams()).join() === "running", "the stream");
  const quick = await rig.trigger("quick");
  await rig.until(async () => (await rig.states(quick)).q === "scheduled", "a task that waits");
});
