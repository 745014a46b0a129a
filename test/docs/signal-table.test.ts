/** The truth table of docs/guides/signals.md: every row is defined with the SDK and evaluated by the model. */
import { type Fact, RuleBook, RuleSet } from "@tradewind/engine/model";
import { all, any, conf, dag, restart, signal, start, stop } from "@tradewind/sdk";
import { PROGRAM } from "@tradewind/sdk/program";
import { describe, expect, it } from "vitest";
import { textOf } from "./guide.ts";

const RUN = { dagId: "d", runId: "r", conf: { id: 7 } };

const [, table = ""] =
  /<!-- truth table -->\n([\s\S]*?)<!-- end -->/.exec(textOf("docs/guides/signals.md")) ?? [];
const rows = table
  .trimEnd()
  .split("\n")
  .slice(2)
  .map((line) => {
    const [rule = "", heard = "", fires = ""] = line.split("|").slice(1, 4);
    return { rule: rule.trim().slice(1, -1), heard: codes(heard), fires: fires.trim() };
  });

describe("the truth table in docs/guides/signals.md", () => {
  it("is there", () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(new Set(rows.map((row) => JSON.stringify(row))).size).toBe(rows.length);
  });

  for (const { rule, heard, fires } of rows) {
    it(`${rule} on ${heard.join(", ")} fires at ${fires}`, () => {
      const book = new RuleBook(rulesOf(rule), RUN);
      const at = heard.flatMap((each, index) => book.receive(heardOf(each, index + 1)).map(() => index + 1));
      expect(at.join(", ") || "never").toBe(fires);
    });
  }
});

function rulesOf(rule: string): RuleSet {
  const names = {
    a: signal("a"),
    b: signal("b"),
    c: signal("c"),
    all,
    any,
    conf,
    restart,
    signal,
    start,
    stop,
  };
  const defined = dag("d", (d) => {
    const scope: Record<string, unknown> = { ...names, load: d.task("load", () => 1) };
    // The page is trusted, and this ensures that its code is what runs.
    const made = new Function(...Object.keys(scope), `return ${rule};`)(...Object.values(scope));
    d.task("driven", { on: [made] }, () => 1);
  });
  return new RuleSet(defined[PROGRAM].describe());
}

/** `a`, `a={"n":1}`, `own a`, `task load`. */
function heardOf(text: string, version: number): Fact {
  const [, who, name = "", value] = /^(?:(own|task) )?([\w.]+)(?:=(.+))?$/.exec(text) ?? [];
  if (who === "task") return { kind: "task", taskId: name, version };
  const from = who === "own" ? { dagId: "d", runId: "r" } : null;
  return {
    kind: "signal",
    namespace: "default",
    key: name,
    value: JSON.parse(value ?? "null"),
    version,
    from,
  };
}

function codes(cell: string): string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");
}
