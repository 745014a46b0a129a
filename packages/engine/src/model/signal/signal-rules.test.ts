import type { DagManifest, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import type { Fact } from "./signal-condition.ts";
import type { SignalLeaf } from "./signal-condition-match.ts";
import { RuleBook, RuleSet } from "./signal-rules.ts";

const RUN = { dagId: "d", runId: "r", conf: {} };

function leaf(key: string, more: Partial<SignalLeaf> = {}): SignalLeaf {
  return { kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false, ...more };
}

function heard(key: string, version = 1): Fact {
  return { kind: "signal", namespace: "default", key, value: null, version, from: null };
}

function ruleSet(tasks: Record<string, SignalRule[]>, stop?: SignalCondition): RuleSet {
  const manifests = Object.entries(tasks).map(([taskId, rules]) => ({ taskId, rules }));
  return new RuleSet({ tasks: manifests as unknown as DagManifest["tasks"], stop });
}

const rule = (action: SignalRule["action"], when: SignalCondition, once = false): SignalRule => ({
  action,
  when,
  once,
});
const both: SignalCondition = { kind: "all", of: [leaf("a"), leaf("b")] };

describe("the rules for one signal", () => {
  test("act in the order written, task by task, and the stop rule of the run last", () => {
    const set = ruleSet(
      { one: [rule("stop", leaf("a")), rule("start", leaf("*"))], two: [rule("restart", leaf("a"))] },
      leaf("a"),
    );
    const firings = new RuleBook(set, RUN).receive(heard("a", 7));
    expect(firings.map(({ taskId, ruleIndex, action }) => [taskId, ruleIndex, action])).toEqual([
      ["one", 0, "stop"],
      ["one", 1, "start"],
      ["two", 0, "restart"],
      [null, 0, "stop"],
    ]);
    expect(firings[0]!.by).toEqual([{ met: true, key: "a", version: 7 }]);
  });

  test("are found without an evaluation of the others", () => {
    const tasks = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, i) => [`t${i}`, [rule("start", leaf(`k${i}`))]]),
    );
    const set = ruleSet({ ...tasks, wild: [rule("start", leaf("k77*"))] });
    expect(set.candidates(heard("k7")).map(({ taskId }) => taskId)).toEqual(["t7"]);
    expect(set.candidates(heard("k771")).map(({ taskId }) => taskId)).toEqual(["t771", "wild"]);
    expect(set.candidates({ ...heard("k7"), namespace: "team" } as Fact)).toEqual([]);
    expect(set.candidates({ kind: "task", taskId: "k7", version: 1 })).toEqual([]);
  });

  test("are evaluated once each, even if several leaves match", () => {
    const twice: SignalCondition = { kind: "all", of: [leaf("a"), leaf("a", { where: {} }), leaf("*")] };
    const book = new RuleBook(ruleSet({ t: [rule("start", twice)] }), RUN);
    expect(book.receive({ ...heard("a"), value: { n: 1 } } as Fact)).toHaveLength(1);
  });
});

describe("a book", () => {
  test("returns changed states once, and no others", () => {
    const book = new RuleBook(ruleSet({ t: [rule("start", both), rule("stop", leaf("c"))] }), RUN);
    expect(book.drainChanges()).toEqual([]);
    book.receive(heard("a", 4));
    expect(book.drainChanges()).toEqual([
      {
        taskId: "t",
        ruleIndex: 0,
        state: { leaves: [{ met: true, key: "a", version: 4 }, null], fired: 0, armed: true },
      },
    ]);
    book.receive(heard("x"));
    expect(book.drainChanges()).toEqual([]);
    book.receive(heard("b"));
    expect(book.drainChanges()).toEqual([
      { taskId: "t", ruleIndex: 0, state: { leaves: [null, null], fired: 1, armed: true } },
    ]);
  });

  test("reports whether any rule can still start a task", () => {
    const set = ruleSet({
      t: [rule("start", leaf("a"), true), rule("stop", leaf("b"))],
      u: [rule("restart", leaf("c"))],
    });
    const book = new RuleBook(set, RUN);
    expect(book.mayStart).toBe(true);
    book.receive(heard("a"));
    expect(book.mayStart).toBe(true);
    book.disarm("u");
    expect(book.mayStart).toBe(false);
    expect(new RuleBook(set, RUN, book.drainChanges()).mayStart).toBe(false);
    book.arm("u");
    expect(book.mayStart).toBe(true);
    expect(new RuleBook(ruleSet({ t: [rule("stop", leaf("a"))] }), RUN).mayStart).toBe(false);
  });

  test("ignores rows of rules that no longer exist", () => {
    const gone = [
      { taskId: "gone", ruleIndex: 0, state: {} },
      { taskId: "t", ruleIndex: 9, state: null },
    ];
    const book = new RuleBook(ruleSet({ t: [rule("start", leaf("a"))] }), RUN, gone);
    expect(book.receive(heard("a"))).toHaveLength(1);
  });

  test("reports the state of every rule", () => {
    const set = ruleSet({ t: [rule("start", both), rule("stop", leaf("c"), true)] }, leaf("end"));
    const book = new RuleBook(set, RUN);
    for (const key of ["a", "c", "c"]) book.receive(heard(key));
    expect(book.report().map(({ leaves, ...rest }) => rest)).toEqual([
      {
        taskId: "t",
        ruleIndex: 0,
        action: "start",
        once: false,
        isArmed: true,
        fired: 0,
        text: "all(a, b)",
        missing: "b",
      },
      {
        taskId: "t",
        ruleIndex: 1,
        action: "stop",
        once: true,
        isArmed: false,
        fired: 1,
        text: "c",
        missing: "c",
      },
      {
        taskId: null,
        ruleIndex: 0,
        action: "stop",
        once: true,
        isArmed: true,
        fired: 0,
        text: "end",
        missing: "end",
      },
    ]);
  });
});
