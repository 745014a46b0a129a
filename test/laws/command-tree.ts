/** The commands of the CLI as `--help` and the parser know them. */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { buildProgram } from "../../packages/cli/src/program.ts";
import type { Session } from "../../packages/cli/src/session.ts";
import { shellWords } from "../docs/shell.ts";

const SESSION = { terminal: {} } as Session;

export interface Leaf {
  /** Without `tradewind`: `dags list`. */
  readonly words: string;
  readonly command: CommandUnknownOpts;
}

export async function readRoot(): Promise<CommandUnknownOpts> {
  return (await buildProgram([], () => SESSION)).program as unknown as CommandUnknownOpts;
}

/** Every command that does something, i.e. has no commands of its own. */
export async function readLeaves(): Promise<Leaf[]> {
  const groups = (await readRoot()).commands.map((group) => group.name());
  const loaded = await Promise.all(groups.map(readGroup));
  return loaded.flatMap((group) => leavesOf(group, group.name()));
}

/** The groups with their commands. */
export async function readGroup(name: string): Promise<CommandUnknownOpts> {
  const { program } = await buildProgram([name], () => SESSION);
  return program.commands.find((group) => group.name() === name) as unknown as CommandUnknownOpts;
}

function leavesOf(command: CommandUnknownOpts, words: string): Leaf[] {
  if (command.commands.length === 0) return [{ words, command }];
  return command.commands.flatMap((each) => leavesOf(each, `${words} ${each.name()}`));
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

/** What the parser says against a command line, or null. The command itself is not run. */
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
