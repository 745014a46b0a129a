import type { Json, SignalCondition } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import {
  advance,
  type ConditionState,
  compileCondition,
  describeState,
  emptyState,
  type Fact,
  loadState,
} from "./signal-condition.ts";
import { fitsWait, matchesSignal, NO_RUN, type SignalLeaf, valueAt } from "./signal-condition-match.ts";

const RUN = { dagId: "d", runId: "r", conf: { order: { id: "A-7", items: [{ n: 1 }] } } };

function leaf(key: string, more: Partial<SignalLeaf> = {}): SignalLeaf {
  return { kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false, ...more };
}

function heard(key: string, value: Json = null, version = 1): Extract<Fact, { kind: "signal" }> {
  return { kind: "signal", namespace: "default", key, value, version, from: null };
}

const all = (...of: SignalCondition[]): SignalCondition => ({ kind: "all", of });
const any = (...of: SignalCondition[]): SignalCondition => ({ kind: "any", of });

describe("where", () => {
  test.each<[string, Json, Json, boolean]>([
    ["some members", { a: 1 }, { a: 1, b: 2 }, true],
    ["a missing member", { a: 1, c: null }, { a: 1, b: 2 }, false],
    ["members of members", { a: { b: 1 } }, { a: { b: 1, c: 2 }, d: 3 }, true],
    ["no members", {}, { a: 1 }, true],
    ["an empty object and a list", {}, [1], false],
    ["a list", [1, 2], [1, 2], true],
    ["a list in another order", [1, 2], [2, 1], false],
    ["a shorter list", [1], [1, 2], false],
    ["a list of parts", [{ a: 1 }], [{ a: 1, b: 2 }], true],
    ["a text", "x", "x", true],
    ["a number and a text", 1, "1", false],
    ["a member of Object.prototype", { toString: 1 }, {}, false],
    ["a value from the conf", { id: { $conf: "order.id" } }, { id: "A-7", n: 1 }, true],
    ["another value than in the conf", { id: { $conf: "order.id" } }, { id: "A-8" }, false],
    ["a whole value from the conf", { $conf: "order.items.0" }, { n: 1, m: 2 }, true],
    ["a path missing in the conf", { id: { $conf: "order.price" } }, { id: null }, false],
    ["an inherited path of the conf", { id: { $conf: "order.constructor" } }, { id: "A-7" }, false],
  ])("%s", (_, where, value, expected) => {
    expect(matchesSignal(leaf("a", { where }), heard("a", value), RUN)).toBe(expected);
  });

  test("a value in a conf is not resolved as a reference", () => {
    const conf: Json = { a: { $conf: "a" } };
    const listens = leaf("a", { where: { $conf: "a" } });
    expect(matchesSignal(listens, heard("a", { x: 1 }), { ...RUN, conf })).toBe(false);
    expect(matchesSignal(listens, heard("a", { $conf: "a" }), { ...RUN, conf })).toBe(true);
  });

  test("deeply nested values count as different and do not exhaust the stack", () => {
    const deep = JSON.parse(`${"[".repeat(5_000)}${"]".repeat(5_000)}`) as Json;
    expect(
      matchesSignal(leaf("a", { where: { $conf: "x" } }), heard("a", deep), { ...RUN, conf: { x: deep } }),
    ).toBe(false);
    const wait = { namespace: "default", key: "a", where: null, equals: { value: deep }, inRun: null };
    expect(fitsWait(wait, heard("a", deep))).toBe(false);
  });
});

test("a wait treats a reference as a value and checks the sender", () => {
  const wait = { namespace: "*", key: "a", where: { $conf: "x" }, equals: null, inRun: RUN };
  const own = { ...heard("a", { $conf: "x" }), from: { dagId: "d", runId: "r" } };
  expect(fitsWait(wait, own)).toBe(true);
  expect(fitsWait(wait, { ...own, from: null })).toBe(false);
  expect(fitsWait({ ...wait, equals: { value: { $conf: "x" } } }, own)).toBe(true);
  expect(fitsWait({ ...wait, equals: { value: 1 } }, own)).toBe(false);
});

test("a path leads into objects and lists", () => {
  expect(valueAt(RUN.conf, "order.items.0.n")).toBe(1);
  expect(valueAt(RUN.conf, "order.items.length")).toBe(1);
  expect(valueAt(RUN.conf, "order.items.1.n")).toBeUndefined();
  expect(valueAt("text", "0.0")).toBeUndefined();
});

describe("the state of a condition", () => {
  const both = compileCondition(all(leaf("a"), leaf("b", { equals: { value: "x" } })));

  test("is small JSON of the matched signals, and counts no signal twice after firing", () => {
    const first = advance(both, emptyState(both), heard("a", { large: true }, 3), RUN);
    expect(first).toEqual({
      fired: false,
      by: [],
      state: { leaves: [{ met: true, key: "a", version: 3 }, null] },
    });
    const other = advance(both, first.state, heard("b", "y", 4), RUN);
    expect(other.state.leaves[1]).toEqual({ met: false, key: "b", version: 4, value: "y" });
    const last = advance(both, other.state, heard("b", "x", 5), RUN);
    expect(last.fired).toBe(true);
    // The current value is kept for display.
    expect(last.state).toEqual({ leaves: [null, { met: false, key: "b", version: 5, value: "x" }] });
    expect(describeState(both, last.state).missing).toBe('a and b = "x" (already counted)');
    expect(advance(both, last.state, heard("a", 1, 6), RUN).fired).toBe(false);
    expect(last.by.map(({ version }) => version)).toEqual([3, 5]);
  });

  test("does not change for a signal that does not match", () => {
    const state = emptyState(both);
    expect(advance(both, state, heard("c"), NO_RUN).state).toBe(state);
    expect(advance(both, state, { kind: "task", taskId: "a", version: 1 }, NO_RUN).state).toBe(state);
  });

  test("keeps values for a schedule, and only short ones for display", () => {
    const long = "x".repeat(1_000);
    const keeping = compileCondition(all(leaf("a"), leaf("b")), { keepValues: true });
    expect(advance(keeping, emptyState(keeping), heard("a", long), NO_RUN).state.leaves[0]).toHaveProperty(
      "value",
      long,
    );
    expect(advance(both, emptyState(both), heard("b", long), NO_RUN).state.leaves[1]).not.toHaveProperty(
      "value",
    );
  });

  test("is loaded, unless it belongs to another condition", () => {
    const { state } = advance(both, emptyState(both), heard("a"), RUN);
    expect(loadState(both, JSON.parse(JSON.stringify(state)))).toEqual(state);
    for (const stored of [undefined, null, {}, { leaves: [null] }, { leaves: "x" }] as (Json | undefined)[])
      expect(loadState(both, stored)).toEqual(emptyState(both));
    const renamed = compileCondition(all(leaf("z"), leaf("b")));
    expect(loadState(renamed, state as unknown as Json)).toEqual(emptyState(renamed));
    const task = compileCondition(all({ kind: "task", taskId: "t" }, leaf("b")));
    expect(loadState(task, state as unknown as Json)).toEqual(emptyState(task));
  });
});

describe("for people", () => {
  const condition = compileCondition(
    all(
      leaf("a", { namespace: "team" }),
      any(
        leaf("b", { where: { n: 1 } }),
        all(leaf("c", { equals: { value: 2 } }), leaf("d.*", { inRun: true })),
      ),
      { kind: "task", taskId: "load" },
    ),
  );
  const after = (...all: Fact[]): ConditionState =>
    all.reduce((state, each) => advance(condition, state, each, RUN).state, emptyState(condition));

  test("shows a condition as its author wrote it", () => {
    expect(describeState(condition, emptyState(condition)).text).toBe(
      'all(team:a, any(b where {"n":1}, all(c = 2, d.* from this run)), task load)',
    );
  });

  test("lists only the missing parts", () => {
    const missing = (...all: Fact[]) => describeState(condition, after(...all)).missing;
    expect(missing()).toBe('team:a and (b where {"n":1} or (c = 2 and d.* from this run)) and task load');
    const team = { ...heard("a"), namespace: "team" };
    expect(missing(team, heard("b", { n: 1 }))).toBe("task load");
    expect(missing(team, heard("c", 3), { kind: "task", taskId: "load", version: 9 })).toBe(
      'b where {"n":1} or (c = 2 (current value: 3) and d.* from this run)',
    );
  });

  test("shows for each leaf whether it is true, and its version", () => {
    const { leaves } = describeState(condition, after(heard("c", 3, 8), heard("b", { n: 1 }, 9)));
    expect(leaves.map(({ met, version, latest }) => [met, version, latest])).toEqual([
      [false, null, undefined],
      [true, 9, undefined],
      [false, 8, 3],
      [false, null, undefined],
      [false, null, undefined],
    ]);
  });
});

test("a condition without parts is rejected: it would be true at once, or never", () => {
  for (const kind of ["all", "any", "none"] as "all"[]) {
    expect(() => compileCondition({ kind, of: [] })).toThrowError(
      expect.objectContaining({ code: "CONDITION_INVALID" }),
    );
  }
});
