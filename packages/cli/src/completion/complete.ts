/**
 * `tradewind __complete <line>`, called by the scripts of `tradewind completion`. Prints one candidate per line, a tab and its
 * description, and nothing else: the shell is drawing its prompt.
 */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { buildProgram } from "../program.ts";
import { type Host, Session } from "../session.ts";
import { plainLine, Terminal } from "../terminal.ts";
import { readTyped, splitLine, type TypedLine } from "./command-line.ts";
import { serverValues } from "./server-values.ts";

export const COMPLETE = "__complete";

interface Candidate {
  readonly value: string;
  readonly description?: string;
}

/** @param line The line up to the cursor, with the program name. */
export async function complete(line: string, host: Host): Promise<void> {
  const words = splitLine(line).slice(1);
  const terminal = new Terminal(host, host.env);
  const built = await buildProgram(words.slice(0, -1), (options) => new Session(host, terminal, options));
  const root = built.program as unknown as CommandUnknownOpts;
  const typed = readTyped(root, words);
  root.exitOverride().configureOutput({ writeErr: () => {} });
  try {
    // Apply options of the line that select the server, e.g. --url.
    root.parseOptions(words.slice(0, -1));
  } catch {
    // The last option has no value yet; the options before it were parsed.
  }
  for (const { description, value } of await candidates(root, typed, built.session)) {
    if (!value.startsWith(typed.current)) continue;
    const told = description === undefined ? "" : `\t${plainLine(description)}`;
    terminal.data(`${typed.before}${plainLine(value)}${told}`);
  }
}

async function candidates(
  root: CommandUnknownOpts,
  typed: TypedLine,
  session: Session,
): Promise<readonly Candidate[]> {
  const { command, expects } = typed;
  switch (expects.kind) {
    case "nothing":
      return [];
    case "command":
      return command.commands.map((each) => ({
        value: each.name(),
        description: each.summary() || each.description(),
      }));
    case "option":
      return [
        ...[...new Set([...command.options, ...root.options])].map(({ description, long }) => ({
          value: long ?? "",
          description,
        })),
        { value: "--help", description: "display help for command" },
      ];
    case "value": {
      const { argChoices } = expects.of;
      if (argChoices !== undefined) return argChoices.map((value) => ({ value }));
      const name = "long" in expects.of ? (expects.of.long ?? "").slice(2) : expects.of.name();
      return (await serverValues(() => session.client, typed, name)).map((value) => ({ value }));
    }
  }
}
