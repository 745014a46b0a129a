/** A job queue: chain and fan-in are implemented manually, the fan-in counted in memory (not durable, in its favour). */
import { Countdown, load, type OpenPeer } from "./peer.ts";

interface Boss {
  start(): Promise<unknown>;
  stop(options: object): Promise<void>;
  on(event: "error", listener: () => void): void;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: object): Promise<unknown>;
  insert(name: string, jobs: readonly object[]): Promise<unknown>;
  work(
    name: string,
    options: object,
    handler: (jobs: readonly { data: { left: number } }[]) => Promise<void>,
  ): Promise<unknown>;
}

export const open: OpenPeer = async (url) => {
  const { PgBoss } = await load<{ PgBoss: new (options: object) => Boss }>("pg-boss");
  const boss = new PgBoss({ connectionString: url, max: 20, useListenNotify: true, supervise: false });
  boss.on("error", () => {});
  await boss.start();
  for (const name of ["chain", "wide", "single"]) await boss.createQueue(name, { notify: true });
  let countdown = new Countdown(1);
  const idle = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 };
  const bulk = { ...idle, batchSize: 250, burstWhenBatchFull: true };
  await boss.work("chain", { ...idle, batchSize: 1 }, async ([job]) => {
    const left = job?.data.left ?? 0;
    if (left > 1) await boss.send("chain", { left: left - 1 });
    else countdown.done();
  });
  for (const name of ["wide", "single"]) {
    await boss.work(name, bulk, async (jobs) => {
      for (const _ of jobs) countdown.done();
    });
  }
  const insert = async (name: string, count: number) => {
    for (let at = 0; at < count; at += 1_000)
      await boss.insert(
        name,
        Array.from({ length: Math.min(1_000, count - at) }, () => ({ data: { left: 0 } })),
      );
  };
  const chain = async (tasks: number) => {
    countdown = new Countdown(1);
    await boss.send("chain", { left: tasks });
    await countdown.over;
  };
  const many = async (name: string, tasks: number) => {
    countdown = new Countdown(tasks);
    await insert(name, tasks);
    await countdown.over;
  };
  return {
    note: "LISTEN/NOTIFY on, batches of 250 (fetched and completed together) for fan and independent; chain and fan-in implemented manually, fan-in counted in memory; ends seen in the handler, before their commit",
    independentTasks: 10_000,
    chain,
    async fan(width) {
      await chain(1);
      await many("wide", width);
      await chain(1);
    },
    independent: (tasks) => many("single", tasks),
    close: () => boss.stop({ graceful: false }),
  };
};
