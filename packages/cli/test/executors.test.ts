/** Several executors at once, with a real standalone, two Redis servers, and worker processes. */
import { hostname } from "node:os";
import { afterAll, beforeAll, expect, it } from "vitest";
import { redisServer, type TestRedis } from "../../engine/test/support/redis-server.ts";
import type { Executor } from "../src/client/executors.ts";
import type { TaskInstance } from "../src/client/resources.ts";
import { RemoteInstallation } from "./support/remote-installation.ts";

const DAGS = {
  "places.ts": `
    import { dag } from "tradewind";
    export default dag("places", { defaults: { executor: "far" } }, (d) => {
      d.task("inherits", () => 1);
      d.task("names", { executor: "queue" }, () => 2);
      d.task("near", { executor: "local" }, () => 3);
    });
  `,
  "gpu.ts": `
    import { dag } from "tradewind";
    export default dag("gpu", (d) => {
      d.task("train", { queue: "gpu" }, () => 1);
    });
  `,
};

let tw: RemoteInstallation;
let far: TestRedis;

beforeAll(async () => {
  far = await redisServer();
  tw = await RemoteInstallation.start(DAGS, {
    TRADEWIND_EXECUTORS: JSON.stringify({
      far: { type: "queue", redisUrl: `redis://127.0.0.1:${far.port}`, parallelism: 7 },
    }),
  });
});
afterAll(async () => {
  await tw.close();
  await far.close();
});

const executor = (name: string) => tw.json<Executor>("executors", "show", name);
const trigger = async (dagId: string) =>
  (await tw.json<{ dag_run_id: string }>("dags", "trigger", dagId)).dag_run_id;

it("runs each task on the executor that it or its DAG names", async () => {
  await tw.worker("here-1");
  await tw.worker("far-1", "--redis-url", `redis://127.0.0.1:${far.port}`);
  const run = await trigger("places");
  expect((await tw.tw("runs", "wait", "places", run)).code).toBe(0);
  const tasks = await tw.json<TaskInstance[]>("tasks", "list", "places", run);
  expect(Object.fromEntries(tasks.map(({ executor_job: job, task_id }) => [task_id, job]))).toMatchObject({
    inherits: { job_type: "worker", name: "far-1" },
    names: { job_type: "worker", name: "here-1" },
    near: { job_type: "SchedulerJob", name: null },
  });
  expect(new Set(tasks.map((task) => task.hostname))).toEqual(new Set([hostname()]));
});

it("lists the executors with their slots, the default first", async () => {
  expect(await tw.json<Executor[]>("executors", "list")).toMatchObject([
    { name: "queue", type: "queue", is_default: true, schedulers: 1, slots: 10_000, health: "healthy" },
    { name: "local", type: "local", is_default: false, slots: 4 },
    { name: "far", type: "queue", is_default: false, slots: 7 },
  ]);
  const { stdout } = await tw.tw("executors", "list");
  expect(stdout).toMatch(
    /NAME +TYPE +SLOTS +RUNNING +WAITING +HEALTH[\s\S]*queue \(default\) +queue +10000 +0 +0 +healthy/,
  );
  expect((await tw.tw("executors", "show", "near")).stderr).toContain(
    "no live scheduler has the executor near",
  );
});

it("names a queue without a worker by why, doctor and executors, until a worker serves it", async () => {
  const run = await trigger("gpu");
  const why = async () => (await tw.tw("tasks", "why", "gpu", run, "train")).stdout;
  await tw.until(async () => (await why()).includes('queue "gpu"'), "the task in its queue");
  expect((await why()).replace(/\s+/g, " ")).toContain(
    'train is queued because it waits in queue "gpu" of executor "queue", which no live worker serves. Start one: tradewind worker --queues gpu',
  );
  expect(await tw.json("doctor")).toContainEqual({
    name: "executor queue",
    result: "warn",
    says: '1 task waits in queue "gpu", which no live worker serves',
    remedy: "start a worker: tradewind worker --queues gpu",
  });
  expect(await executor("queue")).toMatchObject({
    health: "unhealthy",
    waiting: 1,
    queues: [
      { queue: "default", workers: 2, waiting: 0 },
      { queue: "gpu", workers: 0, waiting: 1, slots: 0 },
    ],
  });
  await tw.worker("gpu-1", "--queues", "gpu");
  expect((await tw.tw("runs", "wait", "gpu", run)).code).toBe(0);
  expect(await executor("queue")).toMatchObject({ health: "healthy", problems: [] });
});

it("shows that Redis does not answer, and that it does again", async () => {
  await tw.redis.down();
  const run = await trigger("gpu");
  const problems = async () => (await executor("queue")).problems.map(({ message }) => message).join();
  await tw.until(
    async () => /^the scheduler on .* cannot send to Redis: /.test(await problems()),
    "the outage",
  );
  expect((await tw.tw("tasks", "why", "gpu", run, "train")).stdout).toContain("cannot send to Redis");
  expect((await executor("far")).health).toBe("healthy");
  await tw.redis.up();
  expect((await tw.tw("runs", "wait", "gpu", run)).code).toBe(0);
  await tw.until(async () => (await executor("queue")).health === "healthy", "the recovery");
});
