/** The tables of docs/guides/options.md: every option of the SDK, with its real default. */
import { dag } from "@tradewind/sdk";
import { PROGRAM } from "@tradewind/sdk/program";
import { describe, expect, it } from "vitest";
import { RULES } from "../../packages/sdk/src/author/task-options.ts";
import {
  DAG_OPTION_NAMES,
  GROUP_OPTION_NAMES,
  TASK_DEFAULT_NAMES,
  TASK_OPTION_NAMES,
} from "../../packages/sdk/src/check/option-names.ts";
import { textOf } from "./guide.ts";

interface Row {
  readonly name: string;
  /** Allowed in `defaults`. */
  readonly isMarked: boolean;
  /** The value of the second cell, if it is code. */
  readonly value: unknown;
  readonly hasDefault: boolean;
}

function table(title: string): Row[] {
  const page = textOf("docs/guides/options.md");
  const [, text = ""] = new RegExp(`<!-- ${title} -->\n([\\s\\S]*?)<!-- end -->`).exec(page) ?? [];
  return [...text.matchAll(/^\| `(\w+)`( ◦)? \| (`.*?`|[^|]*) \|/gm)].map(
    ([, name = "", mark, cell = ""]) => ({
      name,
      isMarked: mark !== undefined,
      hasDefault: cell.startsWith("`"),
      value: cell.startsWith("`") ? JSON.parse(cell.slice(1, -1)) : undefined,
    }),
  );
}

const manifest = (ofDag: object, ofTask: object) =>
  dag("x", ofDag, (d) => void d.task("a", ofTask, () => 1))[PROGRAM].describe();
const namesOf = (rows: readonly Row[]) => rows.map(({ name }) => name).sort();

describe("docs/guides/options.md", () => {
  const dagRows = table("dag options");
  const taskRows = table("task options");

  it("has all options of a DAG, and no others", () => {
    expect(namesOf(dagRows)).toEqual([...DAG_OPTION_NAMES].sort());
  });

  it("has all options of a task, and marks those that are allowed in defaults", () => {
    expect(namesOf(taskRows)).toEqual([...TASK_OPTION_NAMES].sort());
    expect(namesOf(taskRows.filter(({ isMarked }) => isMarked))).toEqual([...TASK_DEFAULT_NAMES].sort());
  });

  it("has all options of a group, and no others", () => {
    expect(namesOf(table("group options"))).toEqual([...GROUP_OPTION_NAMES].sort());
  });

  it("has all rules", () => {
    expect(table("rules").map(({ name }) => name)).toEqual([...RULES]);
  });

  const given = [
    ...dagRows.map((row) => ["DAG", row] as const),
    ...taskRows.map((row) => ["task", row] as const),
  ];
  for (const [of, { hasDefault, name, value }] of given) {
    // A manifest contains these only if they were given, so that older manifests stay the same.
    if (!hasDefault || name === "grace" || name === "onSignalTimeout") continue;
    it(`has the right default of ${name} of a ${of}: setting it changes nothing`, () => {
      const said = { [name]: value };
      // These two only have an effect beside it.
      const beside = name.startsWith("runRetry") ? { runRetries: 1 } : {};
      expect(of === "DAG" ? manifest({ ...beside, ...said }, {}) : manifest({}, said)).toEqual(
        manifest(beside, {}),
      );
    });
  }

  it("names a default where there is one", () => {
    const none = [...dagRows, ...taskRows].filter(({ hasDefault }) => !hasDefault).map(({ name }) => name);
    expect(none).not.toContain("retries");
    expect(none.length).toBeLessThan(given.length / 2);
  });
});
