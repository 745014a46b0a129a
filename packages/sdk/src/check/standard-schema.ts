/**
 * The interface shared by zod, valibot, arktype and others (https://standardschema.dev). The SDK depends on no
 * validator.
 */

/**
 * A validator of any library that implements Standard Schema version 1.
 * @example const schema: StandardSchemaV1<{ region: string }> = z.object({ region: z.string() });
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": StandardProps<Input, Output>;
}

interface StandardProps<Input, Output> {
  readonly version: 1;
  readonly vendor: string;
  readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
  readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  /**
   * Present if the validator also implements Standard JSON Schema; throws for types that JSON Schema cannot express.
   */
  readonly jsonSchema?: {
    readonly input: (options: {
      readonly target: "draft-2020-12";
      readonly libraryOptions?: Record<string, unknown> | undefined;
    }) => Record<string, unknown>;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/**
 * The type that a validator accepts.
 * @example const conf = <S extends StandardSchemaV1>(_schema: S, value: SchemaInput<S>) => value;
 */
export type SchemaInput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["input"];

/**
 * The type that a validator returns.
 * @example const params = <S extends StandardSchemaV1>(_schema: S, value: SchemaOutput<S>) => value;
 */
export type SchemaOutput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["output"];

/** Describes a problem that a validator found, with its place. */
export function describeIssue(issue: StandardIssue): string {
  const path = (issue.path ?? []).map((part) => String(typeof part === "object" ? part.key : part));
  return path.length === 0 ? issue.message : `${path.join(".")}: ${issue.message}`;
}

/** Returns whether a value is a validator, which may be a function. */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject && typeof (value as StandardSchemaV1)["~standard"]?.validate === "function";
}
