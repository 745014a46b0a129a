import { EXIT, type ExitCode } from "./exit-code.ts";

/** An error in one field of the request, e.g. `conf.region`. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** An error for the user: what failed, which field, and what to do. Any other error is a bug and is shown as one. */
export class CliError extends Error {
  readonly code: string;
  readonly exit: ExitCode;
  readonly remedy: string | undefined;
  readonly fields: readonly FieldProblem[];

  constructor(
    code: string,
    message: string,
    options: {
      exit: ExitCode;
      remedy?: string | undefined;
      fields?: readonly FieldProblem[];
      cause?: unknown;
    },
  ) {
    super(message, { cause: options.cause });
    this.name = "CliError";
    this.code = code;
    this.exit = options.exit;
    this.remedy = options.remedy;
    this.fields = options.fields ?? [];
  }
}

/** The user left a confirmation with Ctrl-C: nothing was changed. */
export class Interrupted extends Error {}

export const USAGE = "TW_CLI_USAGE";

/** Wrong arguments: nothing was sent or changed. */
export function usageError(message: string, remedy?: string): CliError {
  return new CliError(USAGE, message, { exit: EXIT.usage, remedy });
}
