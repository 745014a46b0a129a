/** Validates the conf of a run into `ctx.params` with the Standard Schema of the DAG. */
import { TaskError } from "../../check/errors.ts";
import { describeIssue, type StandardSchemaV1 } from "../../check/standard-schema.ts";
import type { Json } from "../../manifest.ts";

/** Returns the params, or throws a TaskError that lists every problem. A conf of null counts as {}. */
export async function validateParams(schema: StandardSchemaV1 | null, conf: Json): Promise<unknown> {
  const given = conf ?? {};
  if (schema === null) {
    if (typeof given === "object" && !Array.isArray(given)) return given;
    throw invalid("conf must be an object");
  }
  const result = await schema["~standard"].validate(given);
  if (result.issues) throw invalid(result.issues.map(describeIssue).join("; "));
  return result.value;
}

/** The JSON Schema of what the validator accepts; null if the validator cannot provide one. */
export function jsonSchemaOf(schema: StandardSchemaV1 | null): Json | null {
  const convert = schema?.["~standard"].jsonSchema?.input;
  if (convert === undefined) return null;
  try {
    return JSON.parse(JSON.stringify(convert({ target: "draft-2020-12" }))) as Json;
  } catch {
    // The standard allows a validator to throw for types that JSON Schema cannot express, e.g. a Date. Runs are still
    // validated.
    return null;
  }
}

function invalid(problems: string): TaskError {
  return new TaskError(
    "TW_PARAMS_INVALID",
    `the run's conf does not satisfy the DAG's params: ${problems}; trigger a new run with a valid conf`,
  );
}
