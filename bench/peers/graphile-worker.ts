/** A job queue: chain and fan-in are implemented manually, the fan-in counted in memory (not durable, in its favour). */
import { Countdown, load, type OpenPeer } from "./peer.ts";

interface Payload {
  readonly left: number;
  readonly width: number;
}

interface Helpers {
  addJob(task: string, payload: Payload): Promise<unknown>;
  addJobs(jobs: readonly { identifier: string; payload: Payload }[]): Promise<unknown>;
}

interface GraphileWorker {
  run(options: object): Promise<Helpers & { stop(): Promise<void> }>;
  makeWorkerUtils(options: object): Promise<Helpers & { release(): Promise<void> }>;
}

export const open: OpenPeer = async (url) => {
  const { run, makeWorkerUtils } = await load<GraphileWorker>("graphile-worker");
  let countdown = new Countdown(1);
  const taskList = {
    chain: async ({ left }: Payload, helpers: Helpers) => {
      if (left > 1) await helpers.addJob("chain", { left: left - 1, width: 0 });
      else countdown.done();
    },
    first: async ({ width }: Payload, helpers: Helpers) => {
      await helpers.addJobs(Array.from({ length: width }, () => ({ identifier: "wide", payload: NOTHING })));
    },
    wide: async (_: Payload, helpers: Helpers) => {
      if (countdown.done()) await helpers.addJob("chain", { left: 1, width: 0 });
    },
    single: async () => {
      countdown.done();
    },
  };
  const logger = { error() {}, warn() {}, info() {}, debug() {}, scope: () => logger };
  const preset = { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } };
  const common = { connectionString: url, maxPoolSize: 20, logger };
  const utils = await makeWorkerUtils(common);
  const runner = await run({
    ...common,
    concurrency: 24,
    noHandleSignals: true,
    pollInterval: 1_000,
    taskList,
    preset,
  });
  return {
    note: "concurrency 24, local queue of 500, completions batched (no delay); chain and fan-in implemented manually, fan-in counted in memory; ends seen in the handler, before their commit",
    independentTasks: 10_000,
    async chain(tasks) {
      countdown = new Countdown(1);
      await utils.addJob("chain", { left: tasks, width: 0 });
      await countdown.over;
    },
    async fan(width) {
      const all = new Countdown(width);
      countdown = all;
      await utils.addJob("first", { left: 0, width });
      await all.over;
      // The last job of the fan counts down a new countdown.
      countdown = new Countdown(1);
      await countdown.over;
    },
    async independent(tasks) {
      countdown = new Countdown(tasks);
      for (let at = 0; at < tasks; at += 1_000)
        await utils.addJobs(
          Array.from({ length: Math.min(1_000, tasks - at) }, () => ({
            identifier: "single",
            payload: NOTHING,
          })),
        );
      await countdown.over;
    },
    async close() {
      await runner.stop();
      await utils.release();
    },
  };
};

const NOTHING: Payload = { left: 0, width: 0 };
