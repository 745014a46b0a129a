/** `/executors`: slots, queue depth and health of the executors of the live schedulers. Airflow has no such resource. */
import { z } from "zod";
import {
  type QueueDepth,
  type QueueWorkers,
  queueDepths,
  queueWorkers,
  type SchedulerExecutor,
  schedulerExecutors,
} from "../../store/execute/executors.ts";
import type { Resource } from "../server/context.ts";

const queueDocument = z.object({
  queue: z.string(),
  /** Tasks and callbacks that no worker has received. */
  waiting: z.number(),
  running: z.number(),
  /** Seconds; 0 if none waits. */
  oldest_wait: z.number(),
  /** Live workers that serve the queue and do not drain; null: the executor starts its own. */
  workers: z.number().nullable(),
  /** Of these workers, which may serve other queues, too. */
  slots: z.number().nullable(),
  free_slots: z.number().nullable(),
});

const executorDocument = z
  .object({
    name: z.string(),
    /** "local", "queue", "module"; null: no live scheduler has it. */
    type: z.string().nullable(),
    /** Tasks that name none run on it. */
    is_default: z.boolean(),
    /** Schedulers that have it and do not drain. */
    schedulers: z.number(),
    /** Tasks at once, of all schedulers together; null: no limit. */
    slots: z.number().nullable(),
    /** Of the local executor, also tasks that wait for a process. */
    running: z.number(),
    waiting: z.number(),
    health: z.enum(["healthy", "unhealthy"]),
    /** Why it is unhealthy, and what to do, if that is known. */
    problems: z.array(z.object({ message: z.string(), remedy: z.string().nullable() })),
    queues: z.array(queueDocument),
  })
  .meta({ id: "ExecutorResponse" });
type ExecutorDocument = z.output<typeof executorDocument>;
type Problem = ExecutorDocument["problems"][number];

export const executors: Resource = (app, { database }) => {
  app.get(
    "/api/v2/executors",
    {
      schema: {
        response: { 200: z.object({ executors: z.array(executorDocument), total_entries: z.number() }) },
        tags: ["Executor"],
      },
    },
    async () => {
      const [found, depths, workers] = await Promise.all([
        schedulerExecutors(database),
        queueDepths(database),
        queueWorkers(database),
      ]);
      const names = new Set([...found.map(({ name }) => name), ...depths.map(({ executor }) => executor)]);
      const shown = [...names].map((name) =>
        show(name, {
          found: found.filter((each) => each.name === name),
          depths: depths.filter(({ executor }) => executor === name),
          workers,
        }),
      );
      shown.sort((a, b) => Number(b.is_default) - Number(a.is_default));
      return { executors: shown, total_entries: shown.length };
    },
  );
};

interface Facts {
  readonly found: readonly SchedulerExecutor[];
  readonly depths: readonly QueueDepth[];
  readonly workers: readonly QueueWorkers[];
}

function show(name: string, { depths, found, workers }: Facts): ExecutorDocument {
  const type = found[0]?.type ?? null;
  const queues = type === "queue" ? servedQueues(depths, workers) : depths.map((depth) => ownQueue(depth));
  const sum = (of: (each: SchedulerExecutor) => number) => found.reduce((total, each) => total + of(each), 0);
  const waiting = queues.reduce((total, queue) => total + queue.waiting, 0);
  const inQueues = queues.reduce((total, queue) => total + queue.running, 0);
  const problems = [
    ...found.flatMap(({ hostname, job_id, problem }) =>
      problem === null
        ? []
        : [{ message: `the scheduler on ${hostname} (job ${job_id}) ${problem}`, remedy: null }],
    ),
    ...queues.flatMap(({ queue, waiting: tasks, workers: serving }) =>
      tasks > 0 && serving === 0 ? [unserved(queue, tasks)] : [],
    ),
    ...(found.length > 0 ? [] : [noScheduler(waiting)]),
  ];
  return {
    name,
    type,
    is_default: found.some(({ is_default }) => is_default),
    schedulers: found.length,
    slots: found.some(({ slots }) => slots === null) ? null : sum(({ slots }) => slots ?? 0),
    running: type === "local" ? sum(({ active }) => active) : inQueues,
    waiting,
    health: problems.length === 0 ? "healthy" : "unhealthy",
    problems,
    queues,
  };
}

function unserved(queue: string, tasks: number): Problem {
  const message = `${counted(tasks)} in queue "${queue}", which no live worker serves`;
  return { message, remedy: `start a worker: tradewind worker --queues ${queue}` };
}

function noScheduler(waiting: number): Problem {
  const message = `no live scheduler has this executor: ${counted(waiting)} for it`;
  return { message, remedy: "add it to TRADEWIND_EXECUTORS of a scheduler" };
}

function counted(tasks: number): string {
  return tasks === 1 ? "1 task waits" : `${tasks} tasks wait`;
}

/** Also the queues in which nothing waits. */
function servedQueues(depths: readonly QueueDepth[], workers: readonly QueueWorkers[]) {
  const names = [...new Set([...depths.map(({ queue }) => queue), ...workers.map(({ queue }) => queue)])];
  const none = { workers: 0, slots: 0, free_slots: 0 };
  return names.sort().map((queue) => {
    const depth = depths.find((each) => each.queue === queue);
    const served = workers.find((each) => each.queue === queue) ?? none;
    const { free_slots, slots, workers: count } = served;
    return { ...depthOf(queue, depth), workers: count, slots, free_slots };
  });
}

function ownQueue(depth: QueueDepth) {
  return { ...depthOf(depth.queue, depth), workers: null, slots: null, free_slots: null };
}

function depthOf(queue: string, depth: QueueDepth | undefined) {
  const { oldest_wait_seconds: oldest = 0, running = 0, waiting = 0 } = depth ?? {};
  return { queue, waiting, running, oldest_wait: oldest };
}
