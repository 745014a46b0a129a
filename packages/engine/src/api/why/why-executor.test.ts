import { beforeEach, expect, it } from "vitest";
import { Installation, manifestOf } from "../../../test/api/installation.ts";
import { addAttempt, addSchedulerWith, addWorker } from "../../../test/api/remote.ts";

let tw: Installation;
let dagRunId: number;

beforeEach(async () => {
  tw = await Installation.open();
  await tw.addDag(
    manifestOf("sales", [{ taskId: "load" }, { taskId: "sum" }, { taskId: "near", executor: "local" }]),
  );
  dagRunId = await tw.addRun("sales", { runId: "monday" });
});

const QUEUE = { name: "queue", type: "queue", slots: 100 };
const GPU = { taskId: "load", queue: "gpu" };
const why = async (task = "load") =>
  (await tw.call("GET", `/dags/sales/dagRuns/monday/taskInstances/${task}/why`)).json().reasons;

it("names a queue that no live worker serves, and the command that serves it", async () => {
  await addSchedulerWith(tw, [QUEUE]);
  await addAttempt(tw, { dagRunId, ...GPU });
  expect(await why()).toEqual([
    {
      code: "QUEUE_UNSERVED",
      message:
        'It waits in queue "gpu" of executor "queue", which no live worker serves. Start one: tradewind worker --queues gpu',
      until: null,
    },
  ]);
});

it("counts the tasks before it and the free slots of the workers of its queue", async () => {
  await addSchedulerWith(tw, [QUEUE]);
  await addWorker(tw, { queues: ["gpu"] });
  await addAttempt(tw, { dagRunId, taskId: "sum", queue: "gpu" });
  await addAttempt(tw, { dagRunId, ...GPU });
  expect(await why()).toMatchObject([
    {
      code: "WORKERS_BUSY",
      message: expect.stringContaining(
        'queue "gpu" of executor "queue" behind 1 other: 4 of 4 slots of the worker that serves it are free.',
      ),
    },
  ]);
});

it("names the worker that has received it, and then the one that runs it", async () => {
  await addSchedulerWith(tw, [QUEUE]);
  const worker = await addWorker(tw, { name: "gpu-1", queues: ["gpu"] });
  await addAttempt(tw, { dagRunId, ...GPU, worker, state: "queued" });
  expect(await why()).toMatchObject([
    {
      code: "WORKER_STARTS",
      message: expect.stringMatching(/^Worker "gpu-1" on host-1 \(worker \d+\) has received it/),
    },
  ]);
  await tw.sql("UPDATE task_instance SET state = 'running', executor_job = $1, hostname = 'host-1'", [
    worker,
  ]);
  expect(await why()).toMatchObject([
    { code: "RUNNING", message: 'It is running on worker "gpu-1" on host-1.' },
  ]);
});

it("names what keeps its executor from starting it", async () => {
  const job = await addSchedulerWith(tw, [{ ...QUEUE, problem: "cannot send to Redis: no route" }]);
  await addAttempt(tw, { dagRunId, ...GPU });
  expect(await why()).toMatchObject([
    {
      code: "EXECUTOR_FAILING",
      message: `Executor "queue" cannot start it: the scheduler on host-1 (job ${job}) cannot send to Redis: no route.`,
    },
  ]);
});

it("names an executor that no live scheduler has", async () => {
  await addSchedulerWith(tw, [QUEUE]);
  await addAttempt(tw, { dagRunId, ...GPU, executor: "acme" });
  expect(await why()).toMatchObject([
    { code: "EXECUTOR_MISSING", message: expect.stringContaining('"acme"') },
  ]);
});

it("waits for the worker that an executor of another type starts", async () => {
  await addSchedulerWith(tw, [{ name: "pods", type: "module" }]);
  await addAttempt(tw, { dagRunId, ...GPU, executor: "pods" });
  expect(await why()).toMatchObject([{ code: "EXECUTOR_STARTS" }]);
});

it("does not count tasks on workers as users of the scheduler's own slots", async () => {
  const job = await addSchedulerWith(tw, [{ ...QUEUE, active: 2, slots: 3 }, { slots: 1 }]);
  await tw.sql("UPDATE job SET slots = 1; UPDATE dag_run SET owner_job = (SELECT max(id) FROM job)");
  await addAttempt(tw, { dagRunId, ...GPU });
  await tw.addInstance(dagRunId, "near", { state: "scheduled" });
  await tw.sql("UPDATE task_instance SET executor = 'local' WHERE task_id = 'near'");
  expect(await why("near")).toMatchObject([{ code: "READY" }]);
  await tw.sql("UPDATE task_instance SET executor = 'local' WHERE task_id = 'load'");
  expect(await why("near")).toMatchObject([
    {
      code: "EXECUTOR_FULL",
      message: expect.stringContaining(`(job ${job}) is in use: sales.load (1).`),
    },
  ]);
});

it("explains that a scheduler has as many tasks in an executor as it may", async () => {
  const job = await addSchedulerWith(tw, [{ ...QUEUE, active: 3, slots: 3 }]);
  await tw.sql("UPDATE dag_run SET owner_job = $1", [job]);
  await tw.addInstance(dagRunId, "sum", { state: "scheduled" });
  expect(await why("sum")).toMatchObject([
    {
      code: "EXECUTOR_FULL",
      message: `Executor "queue" has 3 of at most 3 tasks of the scheduler on host-1 (job ${job}). Raise TRADEWIND_QUEUE_PARALLELISM, or its parallelism in TRADEWIND_EXECUTORS.`,
    },
  ]);
});
