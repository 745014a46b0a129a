/** Durable workflows in one process: a chain is one workflow of steps; independent tasks are workflows. */
import { load, type OpenPeer } from "./peer.ts";

interface Step {
  run(config: { name: string }, work: () => Promise<void>): Promise<void>;
}

interface Handle {
  result(options: { timeoutMs: number }): Promise<unknown>;
}

interface OpenWorkflowClient {
  defineWorkflow(
    spec: { name: string },
    work: (context: { input: number; step: Step }) => Promise<void>,
  ): { run(input: number): Promise<Handle> };
  newWorker(options: { concurrency: number }): { start(): Promise<void>; stop(): Promise<void> };
}

/** It rejects larger workflows. */
const MOST_STEPS = 1_000;

export const open: OpenPeer = async (url) => {
  const { OpenWorkflow } = await load<{ OpenWorkflow: new (options: object) => OpenWorkflowClient }>(
    "openworkflow",
  );
  const { BackendPostgres } = await load<{
    BackendPostgres: { connect(url: string): Promise<{ stop(): Promise<void> }> };
  }>("openworkflow/postgres");
  const backend = await BackendPostgres.connect(url);
  const client = new OpenWorkflow({ backend });
  const nothing = async () => {};
  let onSingle = nothing as () => void;
  const chain = client.defineWorkflow({ name: "chain" }, async ({ input, step }) => {
    for (let n = 0; n < input; n++) await step.run({ name: `s${n}` }, nothing);
    onSingle();
  });
  const fan = client.defineWorkflow({ name: "fan" }, async ({ input, step }) => {
    await step.run({ name: "first" }, nothing);
    await Promise.all(Array.from({ length: input }, (_, n) => step.run({ name: `w${n}` }, nothing)));
    await step.run({ name: "last" }, nothing);
    onSingle();
  });
  const worker = client.newWorker({ concurrency: 50 });
  await worker.start();
  /** Its handles poll for the result; the end is observed here instead, which excludes that in its favour. */
  const ended = (count: number) => {
    let left = count;
    return new Promise<void>((resolve) => {
      onSingle = () => {
        if (--left === 0) resolve();
      };
    });
  };
  const once = async (workflow: typeof chain, input: number) => {
    const over = ended(1);
    await workflow.run(input);
    await over;
  };
  return {
    note: "worker concurrency 50; steps of one workflow (chain, fan), one workflow of one step each (independent); its limit of 1,000 steps makes the fan 998 wide; the end seen in the handler, before its commit",
    independentTasks: 500,
    chain: (tasks) => once(chain, tasks),
    fan: (width) => once(fan, Math.min(width, MOST_STEPS - 2)),
    async independent(tasks) {
      const over = ended(tasks);
      for (let at = 0; at < tasks; at += 50)
        await Promise.all(Array.from({ length: Math.min(50, tasks - at) }, () => chain.run(1)));
      await over;
    },
    async close() {
      await worker.stop();
      await backend.stop();
    },
  };
};
