import { describe, expect, it } from "vitest";
import { NOUNS, VERBS } from "../../packages/cli/src/verbs.ts";
import { runCaptured } from "../../packages/cli/test/support/captured-host.ts";
import { readLeaves } from "./command-tree.ts";

const leaves = (await readLeaves()).map(({ words }) => words.split(" "));

describe("commands", () => {
  it("use one verb per meaning", () => {
    const names = leaves.filter((words) => words.length > 2).map((words) => words.at(-1) as string);
    expect(names.length).toBeGreaterThan(60);
    const unknown = names.filter((name) => !(name in VERBS) && !NOUNS.includes(name));
    expect(unknown).toEqual([]);
    expect(Object.keys(VERBS).filter((name) => !names.includes(name))).toEqual([]);
  });

  it("do not have two verbs for one meaning in one group", () => {
    const groups = Map.groupBy(leaves, (words) => words.slice(0, -1).join(" "));
    const pairs = [...groups].flatMap(([group, commands]) => {
      const names = commands.map((words) => words.at(-1) as string);
      return names.flatMap((name) =>
        (VERBS[name] ?? [])
          .filter((other) => names.includes(other))
          .map((other) => `${group} ${name}/${other}`),
      );
    });
    // `set` changes a backfill, `create` creates one: its user does not name it.
    expect(pairs).toEqual(["tradewind backfill set/create"]);
  });

  it.each([
    [["variables", "get", "region"], "variables has no get: use variables show.", "variables show"],
    [["tokens", "revoke", "2"], "tokens has no revoke: use tokens delete.", "tokens delete"],
    [["tokens", "add", "ci"], "tokens has no add: use tokens create.", "tokens create"],
    [["pools", "create", "gpu", "--slots", "3"], "pools has no create: use pools set.", "pools set"],
    [["backfill", "resume", "7"], "backfill has no resume: use backfill unpause.", "backfill unpause"],
    [
      ["signals", "dead-letters", "rm", "--help"],
      "dead-letters has no rm: use dead-letters delete.",
      "delete",
    ],
  ])("%j names the right verb", async (argv, message, target) => {
    const { code, stderr, stdout } = await runCaptured(argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(`error: ${message} [TW_CLI_USAGE]`);
    expect(stderr).toMatch(new RegExp(`→ \`tradewind .*${target} --help\` shows`));
  });

  it("report it as JSON, too, and show no hint in --help", async () => {
    const { stderr } = await runCaptured(["variables", "get", "region", "--json"]);
    expect(JSON.parse(stderr)).toMatchObject({ message: "variables has no get: use variables show." });
    expect((await runCaptured(["variables", "--help"])).stdout).not.toMatch(/^ {2}get/m);
  });
});
