/**
 * What signals cause, as written with each effect: in the batch of the run's owner, or with the run that a schedule creates.
 * Reading: signal-chain.ts.
 */
import type { Call } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { call, statement } from "../database/statement.ts";

/** create, close: of a run. resume: the end of a wait. */
export type EffectKind = "create" | "close" | "start" | "restart" | "stop" | "resume";

export interface EffectWrite {
  readonly signalId: number;
  readonly runId: number;
  readonly kind: EffectKind;
  /** '': the run itself. */
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  /** The attempt that waited; null: the effect is not the end of a wait. */
  readonly attempt: string | null;
}

const EFFECTS = new RowArrays<EffectWrite>({
  signal_id: ["bigint", ({ signalId }) => signalId],
  dag_run_id: ["bigint", ({ runId }) => runId],
  kind: ["text", ({ kind }) => kind],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  try_number: ["integer", ({ tryNumber }) => tryNumber],
  attempt: ["uuid", ({ attempt }) => attempt],
});

/** A later attempt of a try has the same cause: its row exists. */
const INSERT = statement(
  "effect-insert",
  `INSERT INTO signal_effect (${EFFECTS.names}) SELECT u.* FROM ${EFFECTS.source} AS u ON CONFLICT DO NOTHING`,
);

export function effectCall(effects: readonly EffectWrite[]): Call {
  return call(INSERT, ...EFFECTS.values(effects));
}
