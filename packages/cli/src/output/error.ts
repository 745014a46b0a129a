/** The error output of a failed command on stderr: text, or with --json one object on one line. */
import { CommanderError } from "commander";
import { CliError, type FieldProblem, USAGE } from "../errors.ts";
import { EXIT, type ExitCode } from "../exit-code.ts";
import type { Terminal } from "../terminal.ts";

/** An error from any source in the form that is printed. */
interface ShownError {
  /** null: an unexpected error. */
  readonly code: string | null;
  readonly message: string;
  readonly fields: readonly FieldProblem[];
  readonly remedy: string | undefined;
  readonly exit: ExitCode;
  readonly error: unknown;
}

/** Exit codes of engine errors other than 1. */
const ENGINE_EXITS: Readonly<Record<string, ExitCode>> = {
  API_ADDRESS: EXIT.conflict,
  CONFIG_INVALID: EXIT.usage,
  DATABASE_REFUSED: EXIT.server,
  DATABASE_RIGHTS: EXIT.server,
  DATABASE_UNREACHABLE: EXIT.server,
  DATABASE_TOO_OLD: EXIT.server,
  HOME_IN_USE: EXIT.conflict,
};

export function describeError(error: unknown): ShownError {
  if (error instanceof CliError) {
    const { code, message, fields, remedy, exit } = error;
    return { code, message, fields, remedy, exit, error };
  }
  const bare = { fields: [], remedy: undefined, error };
  if (error instanceof CommanderError) {
    // A group without a command prints only its help; add a message.
    const message =
      error.code === "commander.help" ? "a command is missing." : error.message.replace(/^error: /, "");
    return { ...bare, code: USAGE, message, remedy: "see --help", exit: EXIT.usage };
  }
  const message = error instanceof Error ? error.message : String(error);
  const code = error instanceof Error ? (error as { code?: unknown }).code : undefined;
  if (typeof code === "string") return { ...bare, code, message, exit: ENGINE_EXITS[code] ?? EXIT.failed };
  return {
    ...bare,
    code: null,
    message,
    remedy: "run it again with -v to see the stack",
    exit: EXIT.failed,
  };
}

export function printError(
  terminal: Terminal,
  { code, message, fields, remedy, exit, error }: ShownError,
  { json, verbose }: { readonly json: boolean; readonly verbose: boolean },
): void {
  if (json) {
    const more = {
      ...(fields.length > 0 && { fields }),
      ...(remedy !== undefined && { remedy }),
      ...(verbose && { stack: stacks(error) }),
    };
    terminal.note(JSON.stringify({ code, message, exit_code: exit, ...more }));
    return;
  }
  terminal.note(
    `${terminal.paintNote("red", "error:")} ${code === null ? message : withCode(message, code)}`,
  );
  for (const { field, message: problem } of fields)
    terminal.note(`  ${terminal.paintNote("bold", field)}: ${problem}`);
  if (remedy !== undefined && !(verbose && code === null))
    terminal.note(`  ${terminal.paintNote("dim", "→")} ${remedy}`);
  if (verbose) for (const stack of stacks(error)) terminal.note(terminal.paintNote("dim", stack));
}

/** Puts the code after the message; of several lines, after the first. */
export function withCode(message: string, code: string): string {
  return message.replace(/$/m, ` [${code}]`);
}

function stacks(error: unknown): string[] {
  const found: string[] = [];
  for (let current = error; current instanceof Error; current = current.cause)
    found.push(current.stack ?? current.message);
  return found;
}
