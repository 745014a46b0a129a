/** Every `tradewind …` in the docs is an existing command, with options and arguments that it accepts. */
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { describe, expect, it } from "vitest";
import { buildProgram } from "../../packages/cli/src/program.ts";
import type { Session } from "../../packages/cli/src/session.ts";
import { blocksOf, pages, proseOf } from "./guide.ts";
import { commandLines, shellWords } from "./shell.ts";

const CALL = /^(?:tradewind|npm run -s tradewind --) (.+)$/;

function calls(page: string): string[] {
  const shown = blocksOf(page)
    .filter(({ language }) => language === "sh")
    .flatMap(({ text }) => commandLines(text));
  const mentioned = [...proseOf(page).matchAll(/`([^`]+)`/g)].map(([, code]) =>
    (code ?? "").replace(/\s+/g, " "),
  );
  return [...shown, ...mentioned].flatMap((line) => CALL.exec(line)?.[1] ?? []);
}

/** The problem with the call, or null. In prose, `<dag>` and `…` are placeholders. */
async function problemOf(call: string): Promise<string | null> {
  const words = shellWords(call);
  const { program } = await buildProgram(words, () => ({}) as Session);
  let command = program as unknown as CommandUnknownOpts;
  let given = 0;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] as string;
    if (word.startsWith("-")) {
      const known = [...command.options, ...program.options].find(
        ({ long, short }) => long === word || short === word,
      );
      if (!known && word !== "--help") return `${command.name()} has no option ${word}`;
      if (known?.required || known?.optional) at++;
      continue;
    }
    const sub = command.commands.find((each) => each.name() === word);
    if (sub) command = sub;
    else if (command.commands.length > 0) return `${command.name()} has no command ${word}`;
    else if (word !== "…") given++;
  }
  const { registeredArguments: takes } = command;
  if (given > takes.length && !takes.at(-1)?.variadic)
    return `${command.name()} takes ${takes.length} arguments`;
  return null;
}

describe("commands in the docs", () => {
  it("are many", () => expect(pages().flatMap(calls).length).toBeGreaterThan(40));

  for (const page of pages().filter((each) => calls(each).length > 0)) {
    it(`of ${page} exist`, async () => {
      const problems = await Promise.all(
        calls(page).map(async (call) => {
          const problem = await problemOf(call);
          return problem === null ? [] : [`tradewind ${call}: ${problem}`];
        }),
      );
      expect(problems.flat()).toEqual([]);
    });
  }

  it("reports commands that do not exist", async () => {
    expect(await problemOf("dags launch etl")).toContain("launch");
    expect(await problemOf("dags trigger etl --config '{}'")).toContain("--config");
    expect(await problemOf("dags show etl hello")).toContain("1 arguments");
  });
});
