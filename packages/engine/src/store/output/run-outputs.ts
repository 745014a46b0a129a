/** Task outputs in a batch: small ones by value, large ones by reference (output-objects.ts). */
import type { Json } from "@tradewind/sdk/manifest";
import { LargeValue, type OutputReference } from "../../model/index.ts";
import { type Call, call } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { statement } from "../database/statement.ts";
import type { OUTPUT_KEY, SKIP_KEY } from "../run/run-load.ts";
import { referCall } from "./output-objects.ts";

export interface OutputWrite {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly key: typeof OUTPUT_KEY | typeof SKIP_KEY;
  readonly value: Json | LargeValue;
}

/** The output of a success; the object of a large one is already stored. */
export function outputOf({
  output,
  stored,
}: {
  readonly output: Json | undefined;
  readonly stored?: OutputReference;
}): OutputWrite["value"] | undefined {
  return stored ? new LargeValue(stored) : output;
}

const OUTPUTS = new RowArrays<OutputWrite>({
  dag_run_id: ["bigint", ({ runId }) => runId],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  key: ["text", ({ key }) => key],
  value: ["json", ({ value }) => value],
});

const UPSERT = statement(
  "batch-upsert-outputs",
  `INSERT INTO xcom (${OUTPUTS.names}) SELECT * FROM ${OUTPUTS.source} AS u
   ON CONFLICT (dag_run_id, task_id, map_index, key)
     DO UPDATE SET value = EXCLUDED.value, object_id = NULL, created_at = now()`,
);

export function outputCalls(outputs: readonly OutputWrite[]): Call[] {
  const small: OutputWrite[] = [];
  const large: Parameters<typeof referCall>[0][number][] = [];
  for (const output of outputs) {
    if (!(output.value instanceof LargeValue)) small.push(output);
    else large.push({ ...output, objectId: output.value.reference.id });
  }
  const calls: Call[] = [];
  if (small.length > 0) calls.push(call(UPSERT, ...OUTPUTS.values(small)));
  if (large.length > 0) calls.push(referCall(large));
  return calls;
}
