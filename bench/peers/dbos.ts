/** Durable workflows in one process: a chain is one workflow of steps; independent tasks are workflows. */
import { load, type OpenPeer } from "./peer.ts";

interface Sdk {
  readonly DBOS: {
    setConfig(config: object): void;
    registerWorkflow<A extends unknown[]>(
      work: (...args: A) => Promise<void>,
      config: { name: string },
    ): (...args: A) => Promise<void>;
    runStep(step: () => Promise<void>, config: { name: string }): Promise<void>;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
  };
}

/** Concurrent workflows: beyond the pool's connections they would only wait. */
const AT_A_TIME = 50;

export const open: OpenPeer = async (url) => {
  const { DBOS } = await load<Sdk>("@dbos-inc/dbos-sdk");
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: url,
    systemDatabasePoolSize: 20,
    logLevel: "error",
    runAdminServer: false,
  });
  const step = (name: string) => DBOS.runStep(async () => {}, { name });
  const chain = DBOS.registerWorkflow(
    async (tasks: number) => {
      for (let n = 0; n < tasks; n++) await step(`s${n}`);
    },
    { name: "chain" },
  );
  const fan = DBOS.registerWorkflow(
    async (width: number) => {
      await step("first");
      await Promise.all(Array.from({ length: width }, (_, n) => step(`w${n}`)));
      await step("last");
    },
    { name: "fan" },
  );
  const single = DBOS.registerWorkflow(async () => step("only"), { name: "single" });
  await DBOS.launch();
  return {
    note: "pool of 20; steps of one workflow (chain, fan), one workflow of one step each (independent), 50 at a time",
    independentTasks: 2_000,
    // Called as methods, the object would be used as a workflow instance.
    chain: (tasks) => chain(tasks),
    fan: (width) => fan(width),
    async independent(tasks) {
      let left = tasks;
      const worker = async () => {
        while (left-- > 0) await single();
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, worker));
    },
    close: () => DBOS.shutdown(),
  };
};
