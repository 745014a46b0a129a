import { Command } from "@commander-js/extra-typings";
import { describe, expect, it } from "vitest";
import { examples } from "../../packages/cli/src/examples.ts";
import { examplesIn, helpOf, problemOf, readCommands } from "./command-tree.ts";

const COLUMNS = 80;

describe("examples in --help", () => {
  it("belong to every command, parse, and fit 80 columns", async () => {
    const commands = await readCommands();
    const shown = commands.map(({ command, words }) => [words, examplesIn(helpOf(command))] as const);
    const without = shown.flatMap(([words, lines]) => (lines.length === 0 ? [words] : []));
    expect(without).toEqual([]);
    const lines = shown.flatMap(([, each]) => each);
    const problems = lines.map(async (line) => {
      const problem = line.length + 4 > COLUMNS ? "it is too wide" : await problemOf(line);
      return problem === null ? [] : [`${line}: ${problem}`];
    });
    expect((await Promise.all(problems)).flat()).toEqual([]);
  });

  it("are reported if they do not parse", async () => {
    expect(await problemOf("tradewind dags launch etl")).toContain("launch");
    expect(await problemOf("tradewind dags list --limit many")).toContain("many");
    expect(await problemOf("tradewind dags show")).toContain("dag");
    expect(await problemOf("tradewind dags show etl hello")).toContain("too many");
    expect(await problemOf("airflow dags list")).toContain("tradewind");
    expect(await problemOf("tradewind dags list --json | jq length")).toBeNull();
  });

  it("are shown below the options, with their explanations", () => {
    const command = new Command("list").addHelpText(
      "after",
      examples("# the paused ones", "tradewind dags list --paused"),
    );
    const help = helpOf(command);
    expect(help).toMatch(
      /Options:[\s\S]+\n\nExamples:\n {2}# the paused ones\n {2}\$ tradewind dags list --paused\n/,
    );
    expect(examplesIn(help)).toEqual(["tradewind dags list --paused"]);
  });
});
