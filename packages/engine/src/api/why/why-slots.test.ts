import { beforeAll, expect, test } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";

let tw: Installation;
let job: number;

beforeAll(async () => {
  tw = await Installation.open();
  const tasks = [
    { taskId: "wait" },
    { taskId: "work" },
    { taskId: "listen", lifetime: "streaming" as const },
  ];
  await tw.addDag(manifestOf("etl", tasks));
  await tw.addJob("scheduler");
  job = (await tw.sql<{ id: number }>("UPDATE job SET slots = 3 RETURNING id"))[0]!.id;
  const holding = await tw.addRun("etl", { runId: "holding" });
  await tw.addInstance(holding, "work", { state: "running" });
  await tw.addInstance(holding, "listen", { state: "running" });
  const waiting = await tw.addRun("etl", { runId: "waiting" });
  await tw.addInstance(waiting, "wait", { state: "scheduled" });
  await tw.addInstance(waiting, "listen", { state: "scheduled" });
  await tw.sql("UPDATE dag_run SET owner_job = $1", [job]);
});

const why = async (task = "wait") =>
  (await tw.call("GET", `/dags/etl/dagRuns/waiting/taskInstances/${task}/why`)).json().reasons;

test("has no reason while the scheduler has free slots", async () => {
  expect(await why()).toMatchObject([{ code: "READY" }]);
});

test("names the tasks that hold the slots, and which keep them permanently", async () => {
  await tw.sql("UPDATE job SET slots = 2");
  expect(await why()).toEqual([
    {
      code: "EXECUTOR_FULL",
      message: `All 2 slots of the scheduler on host-1 (job ${job}) are in use: etl.listen (1), etl.work (1). Streaming tasks keep their slots until they are stopped: etl.listen (1). Raise TRADEWIND_PARALLELISM or TRADEWIND_STREAMING_SLOTS, or start another scheduler.`,
      until: null,
    },
  ]);
});

test("distinguishes slots for streaming tasks from ordinary ones", async () => {
  const facts = { slots: 2, streaming_slots: 1, streaming_tasks: 1 };
  await tw.sql("UPDATE job SET slots = 2, facts = $1", [facts]);
  expect(await why()).toMatchObject([{ code: "READY" }]);
  await tw.sql("UPDATE job SET slots = 1");
  const taken = "are in use: etl.listen (1), etl.work (1).";
  expect(await why()).toMatchObject([
    {
      code: "EXECUTOR_FULL",
      message: expect.stringContaining(
        `All 1 ordinary slots of the scheduler on host-1 (job ${job}) ${taken}`,
      ),
    },
  ]);
  expect(await why("listen")).toMatchObject([
    {
      code: "EXECUTOR_FULL",
      message: expect.stringContaining("All 1 ordinary slots and 1 slots for streaming tasks of"),
    },
  ]);
  await tw.sql("UPDATE job SET facts = $1", [{ ...facts, streaming_slots: 2 }]);
  expect(await why("listen")).toMatchObject([{ code: "READY" }]);
});

test("has no reason without a slot limit", async () => {
  await tw.sql("UPDATE job SET slots = NULL");
  expect(await why()).toMatchObject([{ code: "READY" }]);
});

test("explains a wait for a draining scheduler", async () => {
  const facts = { draining: true, drain_until: "2026-01-01T00:00:30.000Z", runs: 1, attempts: 2 };
  await tw.sql("UPDATE job SET facts = $1", [facts]);
  expect(await why()).toEqual([
    {
      code: "SCHEDULER_DRAINING",
      message: `The scheduler on host-1 (job ${job}) drains and starts no more tasks. Another scheduler takes over the run when its running tasks have ended.`,
      until: "2026-01-01T00:00:30.000Z",
    },
  ]);
});
