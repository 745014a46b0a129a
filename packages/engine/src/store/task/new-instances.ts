/** Inserts task instances that have no row yet: items of a map, and tasks that the first version of the run did not have. */
import type { TaskState } from "../../model/index.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { type Call, call, statement } from "../database/statement.ts";

export interface InstanceBirth {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly maxTries: number;
  readonly pool: string;
  readonly poolSlots: number;
  readonly limitKey: string | null;
  readonly queue: string;
  readonly weight: number;
  readonly executor: string | null;
  readonly operator: string;
  readonly state: TaskState;
  readonly tryNumber: number;
  readonly scheduledAt: number | null;
  readonly endedAt: number | null;
  readonly reason: string | null;
}

const BIRTHS = new RowArrays<InstanceBirth>({
  dag_run_id: ["bigint", ({ runId }) => runId],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  max_tries: ["integer", ({ maxTries }) => maxTries],
  pool: ["text", ({ pool }) => pool],
  pool_slots: ["integer", ({ poolSlots }) => poolSlots],
  limit_key: ["text", ({ limitKey }) => limitKey],
  queue: ["text", ({ queue }) => queue],
  priority_weight: ["integer", ({ weight }) => weight],
  executor: ["text", ({ executor }) => executor],
  operator: ["text", ({ operator }) => operator],
  state: ["text", ({ state }) => state],
  try_number: ["integer", ({ tryNumber }) => tryNumber],
  scheduled_at: ["instant", ({ scheduledAt }) => scheduledAt],
  ended_at: ["instant", ({ endedAt }) => endedAt],
  reason: ["message", ({ reason }) => reason],
});

const INSERT = statement(
  "batch-insert-instances",
  `INSERT INTO task_instance (${BIRTHS.names}) SELECT * FROM ${BIRTHS.source} AS u ON CONFLICT DO NOTHING`,
);

export function birthCall(births: readonly InstanceBirth[]): Call {
  return call(INSERT, ...BIRTHS.values(births));
}
