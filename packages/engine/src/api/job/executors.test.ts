import { beforeEach, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addAttempt, addSchedulerWith, addWorker } from "../../../test/api/remote.ts";

let tw: Installation;
let dagRunId: number;

beforeEach(async () => {
  tw = await Installation.open();
  const tasks = ["a", "b", "c", "d"].map((taskId) => ({ taskId }));
  await tw.addDag(manifestOf("sales", tasks));
  dagRunId = await tw.addRun("sales");
});

const QUEUE = { name: "queue", type: "queue", slots: 100 };
const list = async () => (await tw.call("GET", "/executors")).json().executors;
const health = async () => (await tw.app.inject("/api/v2/monitor/health")).json().scheduler;
const depth = () =>
  tw.sql("SELECT executor, queue, waiting, running FROM queue_depth ORDER BY executor, queue");

it("sums slots and running tasks over the live schedulers, the default executor first", async () => {
  await addSchedulerWith(tw, [{ ...QUEUE, slots: 100 }, { active: 3 }]);
  await addSchedulerWith(tw, [
    { ...QUEUE, slots: 50 },
    { active: 2, slots: null },
  ]);
  expect(await list()).toMatchObject([
    {
      name: "queue",
      type: "queue",
      is_default: true,
      schedulers: 2,
      slots: 150,
      running: 0,
      health: "healthy",
    },
    { name: "local", type: "local", is_default: false, schedulers: 2, slots: null, running: 5, waiting: 0 },
  ]);
});

it("shows the depth of each queue and the workers that serve it", async () => {
  await addSchedulerWith(tw, [QUEUE]);
  const worker = await addWorker(tw, { queues: ["default", "gpu"] });
  await addAttempt(tw, { dagRunId, taskId: "a", worker });
  await addAttempt(tw, { dagRunId, taskId: "b" });
  const [{ queues, running, waiting }] = await list();
  expect([running, waiting]).toEqual([1, 1]);
  const served = { workers: 1, slots: 4, free_slots: 3 };
  expect(queues).toEqual([
    { queue: "default", running: 1, waiting: 1, oldest_wait: expect.any(Number), ...served },
    { queue: "gpu", running: 0, waiting: 0, oldest_wait: 0, ...served },
  ]);
  expect(await depth()).toEqual([{ executor: "queue", queue: "default", waiting: 1, running: 1 }]);
});

it("names queues with waiting tasks that no live worker serves, also in the health check", async () => {
  await addSchedulerWith(tw, [QUEUE, { name: "pods", type: "module" }]);
  await addWorker(tw, { queues: ["gpu"], leaseMs: -1 });
  await tw.call("POST", `/workers/${await addWorker(tw, { queues: ["gpu"] })}/drain`, { is_draining: true });
  await addWorker(tw, { queues: ["default"] });
  expect(await health()).toMatchObject({ unserved_queues: [], failing_executors: [] });
  await addAttempt(tw, { dagRunId, taskId: "a", queue: "gpu" });
  await addAttempt(tw, { dagRunId, taskId: "b", queue: "gpu" });
  await addAttempt(tw, { dagRunId, taskId: "c", queue: "default" });
  // Its workers are started by the executor.
  await addAttempt(tw, { dagRunId, taskId: "d", queue: "big", executor: "pods" });
  expect(await health()).toMatchObject({ unserved_queues: [{ executor: "queue", queue: "gpu", tasks: 2 }] });
  expect(await list()).toMatchObject([
    {
      health: "unhealthy",
      problems: [
        {
          message: '2 tasks wait in queue "gpu", which no live worker serves',
          remedy: "start a worker: tradewind worker --queues gpu",
        },
      ],
    },
    { name: "pods", health: "healthy", waiting: 1, queues: [{ queue: "big", workers: null, slots: null }] },
  ]);
  await addWorker(tw, { queues: ["gpu"] });
  expect((await health()).unserved_queues).toEqual([]);
});

it("names an executor with which a scheduler cannot start tasks, and one that no scheduler has", async () => {
  const job = await addSchedulerWith(tw, [{ ...QUEUE, problem: "cannot send to Redis: no route" }]);
  await addAttempt(tw, { dagRunId, taskId: "a", executor: "acme" });
  expect(await health()).toMatchObject({ failing_executors: ["queue"] });
  expect(await list()).toMatchObject([
    {
      name: "queue",
      health: "unhealthy",
      problems: [
        { message: `the scheduler on host-1 (job ${job}) cannot send to Redis: no route`, remedy: null },
      ],
    },
    {
      ...{ name: "acme", type: null, schedulers: 0, slots: 0, waiting: 1, health: "unhealthy" },
      problems: [
        {
          message: "no live scheduler has this executor: 1 task waits for it",
          remedy: "add it to TRADEWIND_EXECUTORS of a scheduler",
        },
      ],
    },
  ]);
});
