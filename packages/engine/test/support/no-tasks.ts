import type { InstanceColumns } from "../../src/store/run/run-claim.ts";

/** Of a DAG version whose tasks are of no interest: its runs start without instances. */
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
