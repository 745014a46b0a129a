import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { CommanderError, InvalidArgumentError } from "commander";
import { withRemedy } from "./client/missing.ts";
import { COMPLETE, complete } from "./completion/complete.ts";
import { Interrupted, USAGE } from "./errors.ts";
import { EXIT } from "./exit-code.ts";
import { describeError, printError, withCode } from "./output/error.ts";
import { showDatesIn } from "./output/when.ts";
import { buildProgram } from "./program.ts";
import { type Host, Session } from "./session.ts";
import { Terminal } from "./terminal.ts";
import { addTopLevelHints, addVerbHints } from "./verbs.ts";

/** Runs one command line (without node and script) and returns its exit code. Never rejects. */
export async function run(argv: readonly string[], host: Host): Promise<number> {
  if (argv[0] === COMPLETE) {
    // Print candidates only, no errors.
    await complete(argv[1] ?? "", host).catch(() => {});
    return EXIT.ok;
  }
  const terminal = new Terminal(host, host.env);
  // Read the style from the words, for errors in the command line itself.
  const style = {
    json: saysJson(argv),
    verbose: argv.includes("-v") || argv.includes("--verbose"),
  };
  let session: Session | undefined;
  try {
    const built = await buildProgram(argv, (options) => new Session(host, terminal, options));
    session = built.session;
    const { program } = built;
    addTopLevelHints(program as unknown as CommandUnknownOpts);
    configure(program, host, { terminal, isSilent: style.json });
    program.hook("preAction", () => {
      style.json = built.session.format === "json";
      style.verbose = built.session.options.verbose === true;
      showDatesIn(built.session.options.tz ?? "UTC");
      terminal.chooseColour(built.session.options.color ?? "auto");
    });
    if (argv.length === 0) {
      program.outputHelp();
      return EXIT.ok;
    }
    await program.parseAsync([...argv], { from: "user" });
    return session.exitCode;
  } catch (error) {
    if (error instanceof Interrupted) {
      terminal.note("\ncancelled");
      return EXIT.interrupted;
    }
    // Commander prints its own errors unless it is silent; it does not see errors thrown by an action.
    if (error instanceof CommanderError && !(error instanceof InvalidArgumentError)) {
      if (error.exitCode === 0) return EXIT.ok;
      if (!style.json) return EXIT.usage;
    }
    const told = describeError(await withRemedy(error, session));
    printError(terminal, told, style);
    return told.exit;
  }
}

function configure(
  command: CommandUnknownOpts,
  host: Host,
  { terminal, isSilent }: { terminal: Terminal; isSilent: boolean },
): void {
  command.exitOverride();
  command.configureHelp({ showGlobalOptions: true, subcommandDescription: shortDescription });
  command.configureOutput({
    writeOut: (text: string) => host.stdout.write(text),
    writeErr: (text: string) => isSilent || host.stderr.write(text),
    outputError: (text: string, write) =>
      write(`${withCode(text.trimEnd(), USAGE)}\n  → \`${wordsOf(command)} --help\` shows the usage\n`),
    getOutHelpWidth: () => terminal.width ?? 100,
    getErrHelpWidth: () => terminal.width ?? 100,
    getOutHasColors: () => terminal.colour("stdout"),
    getErrHasColors: () => terminal.colour("stderr"),
  });
  if (command.parent) addVerbHints(command);
  for (const child of command.commands) configure(child, host, { terminal, isSilent });
}

/** One line in a list of commands: the description up to its first colon or semicolon. */
function shortDescription(command: CommandUnknownOpts): string {
  return command.summary() || command.description().split(/[:;] /, 1)[0]!;
}

function wordsOf(command: CommandUnknownOpts): string {
  return command.parent ? `${wordsOf(command.parent)} ${command.name()}` : command.name();
}

function saysJson(argv: readonly string[]): boolean {
  return argv.some(
    (word, at) =>
      /^(?:--json|-o=?json|--output=json)$/.test(word) ||
      (word === "json" && /^(?:-o|--output)$/.test(argv[at - 1] ?? "")),
  );
}
