import type { InstanceColumns } from "../../src/store/run/run-claim.ts";

/** For a DAG version whose tasks do not matter: its runs start without instances. */
export const NO_TASKS: InstanceColumns = {
  taskIds: [],
  maxTries: [],
  pools: [],
  poolSlots: [],
  limitKeys: [],
  queues: [],
  weights: [],
  executors: [],
  operators: [],
};
