import { EXIT, type ExitCode } from "./exit-code.ts";

/** A mistake in one field of what was sent, e.g. `conf.region`. */
export interface FieldProblem {
  readonly field: string;
  readonly message: string;
}

/** An error meant for the user: what failed, which field, and what to do. Anything else is a bug and says so. */
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

/** A question was left with Ctrl-C: nothing was done, and nothing is wrong. */
export class Interrupted extends Error {}

export const USAGE = "TW_CLI_USAGE";

/** Wrong arguments: nothing was sent, nothing was done. */
export function usageError(message: string, remedy?: string): CliError {
  return new CliError(USAGE, message, { exit: EXIT.usage, remedy });
}
