/** Task outputs in a batch: small ones by value, large ones by reference (output-objects.ts). */
import type { Json } from "@tradewind/sdk/manifest";
import { LargeValue, type OutputReference } from "../../model/index.ts";
import { type Call, call } from "../database/database.ts";
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

const OUTPUTS = statement(
  "batch-upsert-outputs",
  `INSERT INTO xcom (dag_run_id, task_id, map_index, key, value)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::json[])
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
  if (small.length > 0)
    calls.push(
      call(
        OUTPUTS,
        small.map(({ runId }) => runId),
        small.map(({ taskId }) => taskId),
        small.map(({ mapIndex }) => mapIndex),
        small.map(({ key }) => key),
        small.map(({ value }) => JSON.stringify(value)),
      ),
    );
  if (large.length > 0) calls.push(referCall(large));
  return calls;
}
