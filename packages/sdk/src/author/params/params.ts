/** Validates the conf of a run into `ctx.params` with the Standard Schema of the DAG. */
import { TaskError } from "../../check/errors.ts";
import { describeIssue, type StandardSchemaV1 } from "../../check/standard-schema.ts";
import type { Json } from "../../manifest.ts";
import { withPropertyOrder } from "./property-order.ts";

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

/**
 * The JSON Schema of what the validator accepts: forms are made from it, and the engine validates by it before the
 * validator does. Null if the validator cannot provide one.
 */
export function jsonSchemaOf(schema: StandardSchemaV1 | null): Json | null {
  if (schema === null) return null;
  const { jsonSchema, vendor } = schema["~standard"];
  if (jsonSchema === undefined) return null;
  const converted = (options: { readonly libraryOptions?: Record<string, unknown> }): Json | null => {
    try {
      const schema = jsonSchema.input({ target: "draft-2020-12", ...options });
      return withPropertyOrder(JSON.parse(JSON.stringify(schema)) as Json);
    } catch {
      // The standard allows a validator to throw for types that JSON Schema cannot express, e.g. a Date.
      return null;
    }
  };
  return converted({}) ?? (vendor === "zod" ? converted({ libraryOptions: ZOD }) : null);
}

/** One date or custom type must not hide all other params: it accepts anything here, a date with a hint for forms. */
const ZOD = {
  unrepresentable: "any",
  override: ({ jsonSchema, zodSchema }: ZodOverride): void => {
    if (zodSchema._zod?.def?.type === "date") jsonSchema["format"] = "date-time";
  },
};

interface ZodOverride {
  readonly zodSchema: { readonly _zod?: { readonly def?: { readonly type?: string } } };
  readonly jsonSchema: Record<string, unknown>;
}

function invalid(problems: string): TaskError {
  return new TaskError(
    "TW_PARAMS_INVALID",
    `the run's conf does not satisfy the DAG's params: ${problems}; trigger a new run with a valid conf`,
  );
}
