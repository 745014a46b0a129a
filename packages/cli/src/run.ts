import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { CommanderError } from "commander";
import { CliError } from "./errors.ts";
import { EXIT } from "./exit-code.ts";
import { buildProgram } from "./program.ts";
import { type Host, Session } from "./session.ts";
import { Terminal } from "./terminal.ts";

/** Runs one command line (without node and script) and answers with its exit code. Never rejects. */
export async function run(argv: readonly string[], host: Host): Promise<number> {
  const terminal = new Terminal(host, host.env);
  let verbose = argv.includes("-v") || argv.includes("--verbose");
  try {
    const { program, session } = await buildProgram(argv, (options) => new Session(host, terminal, options));
    configure(program, host, terminal);
    program.hook("preAction", () => {
      verbose = session.options.verbose === true;
      terminal.chooseColour(session.options.color ?? "auto");
    });
    if (argv.length === 0) {
      program.outputHelp();
      return EXIT.ok;
    }
    await program.parseAsync([...argv], { from: "user" });
    return session.exitCode;
  } catch (error) {
    return report(error, terminal, verbose);
  }
}

function configure(command: CommandUnknownOpts, host: Host, terminal: Terminal): void {
  command.exitOverride();
  command.configureHelp({ showGlobalOptions: true });
  command.configureOutput({
    writeOut: (text: string) => host.stdout.write(text),
    writeErr: (text: string) => host.stderr.write(text),
    getOutHelpWidth: () => terminal.width ?? 100,
    getErrHelpWidth: () => terminal.width ?? 100,
    getOutHasColors: () => terminal.colour("stdout"),
    getErrHasColors: () => terminal.colour("stderr"),
  });
  for (const child of command.commands) configure(child, host, terminal);
}

/** Says what went wrong, and gives the exit code for it. */
function report(error: unknown, terminal: Terminal, verbose: boolean): number {
  // Commander has already printed its own message.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
  const label = terminal.paintNote("red", "error:");
  if (error instanceof CliError) {
    terminal.note(`${label} ${error.message}`);
    for (const { field, message } of error.fields)
      terminal.note(`  ${terminal.paintNote("bold", field)}: ${message}`);
    if (error.remedy) terminal.note(`  ${terminal.paintNote("dim", "→")} ${error.remedy}`);
    if (verbose) printStack(error, terminal);
    return error.exit;
  }
  const { code, message } = facts(error);
  terminal.note(`${label} ${message}${code ? ` [${code}]` : ""}`);
  if (verbose) printStack(error, terminal);
  else if (!code)
    terminal.note(`  ${terminal.paintNote("dim", "→")} run it again with -v to see where it happened`);
  return ENGINE_EXITS[code ?? ""] ?? EXIT.failed;
}

/** Errors of the engine that the shell should tell from "it failed". */
const ENGINE_EXITS: Readonly<Record<string, number>> = {
  API_ADDRESS: EXIT.conflict,
  CONFIG_INVALID: EXIT.usage,
  HOME_IN_USE: EXIT.conflict,
};

function facts(error: unknown): { code: string | undefined; message: string } {
  if (!(error instanceof Error)) return { code: undefined, message: String(error) };
  const code = (error as { code?: unknown }).code;
  return { code: typeof code === "string" ? code : undefined, message: error.message };
}

function printStack(error: unknown, terminal: Terminal): void {
  for (let current = error; current instanceof Error; current = current.cause) {
    terminal.note(terminal.paintNote("dim", current.stack ?? current.message));
  }
}
