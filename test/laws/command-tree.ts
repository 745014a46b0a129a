/** The commands of the CLI, from `--help` and the parser. */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { buildProgram } from "../../packages/cli/src/program.ts";
import type { Session } from "../../packages/cli/src/session.ts";
import { shellWords } from "../docs/shell.ts";

const SESSION = { terminal: {} } as Session;

export interface NamedCommand {
  /** `tradewind dags list`. */
  readonly words: string;
  readonly command: CommandUnknownOpts;
}

/** The program, its groups and their commands. */
export async function readCommands(): Promise<NamedCommand[]> {
  const { program } = await buildProgram([], () => SESSION);
  const groups = program.commands.map(async (empty) => {
    const { program: loaded } = await buildProgram([empty.name()], () => SESSION);
    const group = loaded.commands.find((each) => each.name() === empty.name());
    return below(group as unknown as CommandUnknownOpts, "tradewind");
  });
  const root = { words: "tradewind", command: program as unknown as CommandUnknownOpts };
  return [root, ...(await Promise.all(groups)).flat()];
}

/** The commands without subcommands. */
export async function readLeaves(): Promise<NamedCommand[]> {
  return (await readCommands()).filter(({ command }) => command.commands.length === 0);
}

function below(command: CommandUnknownOpts, parent: string): NamedCommand[] {
  const words = `${parent} ${command.name()}`;
  return [{ words, command }, ...command.commands.flatMap((each) => below(each, words))];
}

export function helpOf(command: CommandUnknownOpts): string {
  let text = "";
  command.configureOutput({
    writeOut: (part: string) => {
      text += part;
    },
    getOutHelpWidth: () => 80,
  });
  command.outputHelp();
  return text;
}

/** The examples of a help text: `tradewind …`. */
export function examplesIn(help: string): string[] {
  const [, after = ""] = help.split(/^Examples:$/m);
  return [...after.matchAll(/^ {2}\$ (.+)$/gm)].map(([, line]) => line as string);
}

/** The parser's error for a command line, or null. The command itself is not run. */
export async function problemOf(line: string): Promise<string | null> {
  const call = line.split(/ [|><] /, 1)[0] as string;
  const [program, ...words] = shellWords(call);
  if (program !== "tradewind") return "it does not call tradewind";
  const { program: root } = await buildProgram(words, () => SESSION);
  let reached: string | undefined;
  const prepare = (command: CommandUnknownOpts): void => {
    command.exitOverride().configureOutput({ writeErr: () => {}, writeOut: () => {} });
    if (command.commands.length === 0)
      command.action(() => {
        reached = command.name();
      });
    command.commands.forEach(prepare);
  };
  prepare(root as unknown as CommandUnknownOpts);
  try {
    await root.parseAsync(words, { from: "user" });
  } catch (error) {
    return (error as Error).message;
  }
  return reached === undefined ? "it reaches no command" : null;
}
