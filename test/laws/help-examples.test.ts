import { Command } from "@commander-js/extra-typings";
import { describe, expect, it } from "vitest";
import { examples } from "../../packages/cli/src/examples.ts";
import { examplesIn, helpOf, problemOf, readGroup, readLeaves, readRoot } from "./command-tree.ts";

const COLUMNS = 80;

describe("examples in --help", () => {
  it("of every command parse and fit 80 columns", async () => {
    const root = await readRoot();
    const groups = await Promise.all(root.commands.map((group) => readGroup(group.name())));
    const commands = [root, ...groups, ...(await readLeaves()).map(({ command }) => command)];
    const lines = commands.flatMap((command) => examplesIn(helpOf(command)));
    expect(lines.length).toBeGreaterThan(0);
    const problems = lines.map(async (line) => {
      const problem = line.length + 4 > COLUMNS ? "it is too wide" : await problemOf(line);
      return problem === null ? [] : [`${line}: ${problem}`];
    });
    expect((await Promise.all(problems)).flat()).toEqual([]);
  });

  it("that do not parse would be seen", async () => {
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
