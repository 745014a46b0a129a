/**
 * The error classes of the SDK. A `DagDefinitionError` is a mistake in a definition, a `TaskError` occurs while an
 * attempt runs, and a `TriggerError` concerns a trigger where it is used or while it runs. docs/errors.md lists every
 * code.
 */

/**
 * Codes of {@link DagDefinitionError}, as listed in docs/errors.md.
 * @example const isBadId = (error: DagDefinitionError) => error.code === ("TW_BAD_ID" satisfies DefinitionErrorCode);
 */
export type DefinitionErrorCode =
  | "TW_ASYNC_BUILD"
  | "TW_BAD_ASSET"
  | "TW_BAD_DURATION"
  | "TW_BAD_HANDLE"
  | "TW_BAD_ID"
  | "TW_BAD_OPTION"
  | "TW_BAD_SCHEDULE"
  | "TW_BAD_SIGNAL"
  | "TW_BUILD_CLOSED"
  | "TW_DUPLICATE_ID"
  | "TW_EMPTY_DAG"
  | "TW_EMPTY_GROUP"
  | "TW_FOREIGN_HANDLE"
  | "TW_MAP_HANDLE"
  | "TW_UNKNOWN_OPTION";

/**
 * Codes of {@link TaskError}, as listed in docs/errors.md.
 * @example const isMissing = (error: TaskError) => error.code === ("TW_VARIABLE_MISSING" satisfies TaskErrorCode);
 */
export type TaskErrorCode =
  | "TW_APPROVAL_INVALID"
  | "TW_ASSET_INVALID"
  | "TW_BAD_ASSET"
  | "TW_BAD_SIGNAL"
  | "TW_BRANCH_TARGET"
  | "TW_CONF_MISSING"
  | "TW_CONNECTION_INCOMPLETE"
  | "TW_CONNECTION_MISSING"
  | "TW_DAG_RUN_FAILED"
  | "TW_FOREIGN_HANDLE"
  | "TW_INPUT_MISSING"
  | "TW_MAP_OPERATOR"
  | "TW_OUTPUT_NOT_JSON"
  | "TW_OUTPUT_TOO_LARGE"
  | "TW_PARAMS_INVALID"
  | "TW_SENSOR_TIMEOUT"
  | "TW_SIGNAL_ACTION"
  | "TW_SIGNAL_INVALID"
  | "TW_SIGNAL_LOST"
  | "TW_STEP_CONCURRENT"
  | "TW_STEP_KIND"
  | "TW_STEP_NAME"
  | "TW_STEP_NESTED"
  | "TW_STEP_NOT_JSON"
  | "TW_STEP_TOO_LARGE"
  | "TW_STEP_UNKNOWN"
  | "TW_STEP_UNSTABLE"
  | "TW_TASK_UNKNOWN"
  | "TW_TIMETABLE_ANSWER"
  | "TW_VARIABLE_MISSING"
  | "TW_WORK_LEFT_OPEN";

/**
 * An invalid DAG definition; the message names the DAG, the task and the remedy.
 *
 * @example
 * ```ts
 * try { dag("two words", (d) => { d.task("x", () => 1); }); }
 * catch (error) { if (error instanceof DagDefinitionError) console.log(error.code); } // "TW_BAD_ID"
 * ```
 */
export class DagDefinitionError extends Error {
  override readonly name = "DagDefinitionError";
  readonly code: DefinitionErrorCode;
  /** The errors of a DAG with several mistakes, in the order in which they were found. */
  readonly errors: readonly Error[] | undefined;

  constructor(
    code: DefinitionErrorCode,
    message: string,
    options?: ErrorOptions & { readonly errors?: readonly Error[] },
  ) {
    super(message, options);
    this.code = code;
    this.errors = options?.errors;
  }
}

/**
 * A failure of an attempt with a code, e.g. a variable that is not set.
 *
 * @example
 * ```ts
 * await ctx.variable("api_url").catch((error) => {
 *   if (error instanceof TaskError && error.code === "TW_VARIABLE_MISSING") return "http://localhost";
 *   throw error;
 * });
 * ```
 */
export class TaskError extends Error {
  override readonly name = "TaskError";
  readonly code: TaskErrorCode;

  constructor(code: TaskErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Codes of {@link TriggerError}, as listed in docs/errors.md.
 * @example const isBadArgs = (error: TriggerError) => error.code === ("TW_TRIGGER_ARGS" satisfies TriggerErrorCode);
 */
export type TriggerErrorCode =
  | "TW_BAD_TRIGGER"
  | "TW_EVENT_NOT_JSON"
  | "TW_EVENT_TOO_LARGE"
  | "TW_POLL_FAILED"
  | "TW_TRIGGER_ARGS";

/**
 * An invalid or failed trigger; the message names the trigger and the remedy.
 *
 * @example
 * ```ts
 * try { new HttpTrigger({ url: "orders" }); }
 * catch (error) { if (error instanceof TriggerError) console.log(error.code); } // "TW_TRIGGER_ARGS"
 * ```
 */
export class TriggerError extends Error {
  override readonly name = "TriggerError";
  readonly code: TriggerErrorCode;

  constructor(code: TriggerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Runs `work` and adds the task to the message of an error. */
export function naming<T>(where: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const message = () => `${where}: ${(error as Error).message}`;
    if (error instanceof TriggerError) throw new TriggerError(error.code, message(), { cause: error });
    if (error instanceof DagDefinitionError)
      throw new DagDefinitionError(error.code, message(), { cause: error });
    throw error;
  }
}

/** Any of these errors. */
export type CodedError = Error & { readonly code: string };

/** Formats a rejected value for an error message. */
export function show(value: unknown): string {
  if (typeof value === "string")
    return JSON.stringify(value.length > 80 ? `${value.slice(0, 77)}...` : value);
  if (typeof value === "function") return "a function";
  if (typeof value === "bigint") return `${value}n`;
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object" && value !== null) return withArticle(nameOfClass(value));
  return String(value);
}

/** Calls a plain object an "object", not an "Object". */
function nameOfClass(value: object): string {
  const name: unknown = value.constructor?.name;
  if (typeof name === "string" && name !== "" && name !== "Object") return name;
  return Object.keys(value).length === 0 ? "empty object" : "object";
}

function withArticle(noun: string): string {
  return `${/^[aeiou]/i.test(noun) ? "an" : "a"} ${noun}`;
}
