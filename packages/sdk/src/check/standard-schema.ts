/**
 * The interface that zod, valibot, arktype and others share (https://standardschema.dev): the SDK depends on no
 * validator.
 */

/** Any validator that follows Standard Schema version 1. */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": StandardProps<Input, Output>;
}

interface StandardProps<Input, Output> {
  readonly version: 1;
  readonly vendor: string;
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  /** Present where the validator also follows Standard JSON Schema. May throw for what JSON Schema cannot say. */
  readonly jsonSchema?: {
    readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown>;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What the validator accepts. */
export type SchemaInput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["input"];

/** What the validator hands on. */
export type SchemaOutput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["output"];

/** One sentence about a problem that a validator found, with its place. */
export function describeIssue(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`;
}

/** Whether a value is a validator; some are functions. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject && typeof (value as StandardSchemaV1)["~standard"]?.validate === "function";
}
