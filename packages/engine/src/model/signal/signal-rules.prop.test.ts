/** Compares conditions and rules with a reference that remembers all inputs and evaluates all of them every time. */
import type { DagManifest, Json, SignalCondition, SignalRule } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Fact } from "./signal-condition.ts";
import type { ListeningRun, SignalLeaf } from "./signal-condition-match.ts";
import { RuleBook, RuleSet, type StoredRule } from "./signal-rules.ts";

const RUN: ListeningRun = { dagId: "d", runId: "r", conf: { n: 1, deep: { m: "x" } } };
const KEYS = ["a", "b", "a.b", "ab"];
const PATTERNS = [...KEYS, "*", "a*", "*b", "a*b", "*.*"];
const NAMESPACES = ["default", "team"];

const scalar = fc.constantFrom<Json>(null, true, 0, 1, "x", "y");
const value = fc.oneof(
  scalar,
  fc.record({ n: scalar }),
  fc.record({ n: scalar, m: scalar }),
  fc.record({ n: fc.record({ m: scalar }) }),
  fc.array(scalar, { maxLength: 2 }),
);
const where = fc.oneof(
  value.filter((each) => each !== null),
  fc.constantFrom<Json>(
    {},
    { n: { $conf: "n" } },
    { n: { m: { $conf: "deep.m" } } },
    { n: { $conf: "nothing.there" } },
  ),
);
const leaf = fc.record({
  kind: fc.constant("signal" as const),
  namespace: fc.constantFrom(...NAMESPACES, "*"),
  key: fc.constantFrom(...PATTERNS),
  where: fc.option(where),
  equals: fc.option(value.map((each) => ({ value: each }))),
  inRun: fc.boolean(),
});
const task = fc.record({ kind: fc.constant("task" as const), taskId: fc.constantFrom("t0", "t1") });
const condition = fc.letrec<{ node: SignalCondition }>((tie) => {
  const of = fc.array(tie("node"), { minLength: 1, maxLength: 3 });
  return {
    node: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.oneof({ weight: 5, arbitrary: leaf }, { weight: 1, arbitrary: task }),
      fc.record({ kind: fc.constant("all" as const), of }),
      fc.record({ kind: fc.constant("any" as const), of }),
    ),
  };
}).node;
const rule = fc.record({
  action: fc.constantFrom("start", "restart", "stop"),
  when: condition,
  once: fc.boolean(),
});
const dag = fc.record({
  tasks: fc.array(fc.array(rule, { maxLength: 3 }), { minLength: 1, maxLength: 4 }),
  stop: fc.option(condition),
});
const heard = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant("signal" as const),
        namespace: fc.constantFrom(...NAMESPACES),
        key: fc.constantFrom(...KEYS),
        value,
        from: fc.constantFrom(null, { dagId: "d", runId: "r" }, { dagId: "d", runId: "other" }),
      }),
    },
    { weight: 1, arbitrary: task },
  ),
  { maxLength: 30 },
);

function manifestOf(dag: {
  tasks: SignalRule[][];
  stop: SignalCondition | null;
}): Pick<DagManifest, "tasks" | "stop"> {
  const tasks = dag.tasks.map((rules, index) => ({ taskId: `t${index}`, rules }));
  return { tasks: tasks as unknown as DagManifest["tasks"], stop: dag.stop };
}

function inOrder(given: readonly object[]): Fact[] {
  return given.map((each, index) => ({ ...each, version: index + 1 }) as Fact);
}

/** Remembers all inputs since it fired. */
class NaiveRule {
  readonly #rule: SignalRule;
  readonly label: string;
  #history: Fact[] = [];
  #isOver = false;

  constructor(rule: SignalRule, label: string) {
    this.#rule = rule;
    this.label = label;
  }

  fires(heard: Fact): boolean {
    if (this.#isOver) return false;
    this.#history.push(heard);
    if (!holds(this.#rule.when, this.#history)) return false;
    this.#history = [];
    this.#isOver = this.#rule.once;
    return true;
  }
}

function holds(condition: SignalCondition, history: readonly Fact[]): boolean {
  switch (condition.kind) {
    case "all":
      return !condition.of.some((part) => !holds(part, history));
    case "any":
      return condition.of.some((part) => holds(part, history));
    case "task":
      return history.some((each) => each.kind === "task" && each.taskId === condition.taskId);
    case "signal": {
      const mine = history.filter((each) => isMine(condition, each)) as Extract<Fact, { kind: "signal" }>[];
      const last = mine.at(-1);
      if (last === undefined || condition.equals === null) return last !== undefined;
      return sorted(last.value) === sorted(condition.equals.value);
    }
  }
}

function isMine(leaf: SignalLeaf, heard: Fact): boolean {
  if (heard.kind !== "signal") return false;
  const fits = (pattern: string, name: string) =>
    new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll("*", ".*")}$`).test(name);
  if (!fits(leaf.namespace, heard.namespace) || !fits(leaf.key, heard.key)) return false;
  if (leaf.inRun && heard.from?.runId !== RUN.runId) return false;
  if (leaf.where === null) return true;
  const wanted = JSON.stringify(leaf.where)
    .replaceAll('{"$conf":"n"}', "1")
    .replaceAll('{"$conf":"deep.m"}', '"x"');
  if (wanted.includes("$conf")) return false;
  return subset(JSON.parse(wanted), heard.value);
}

/** A value is a part of another if merging it changes nothing. */
function subset(part: Json, whole: Json): boolean {
  if (Array.isArray(part) || typeof part !== "object" || part === null) return sorted(part) === sorted(whole);
  if (Array.isArray(whole) || typeof whole !== "object" || whole === null) return false;
  return Object.entries(part).every(([key, member]) => {
    const there = (whole as Record<string, Json>)[key];
    return there !== undefined && subset(member, there);
  });
}

function sorted(json: Json): string {
  return JSON.stringify(json, (_, each) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}

function naiveRules({ tasks, stop }: { tasks: SignalRule[][]; stop: SignalCondition | null }): NaiveRule[] {
  const ofTasks = tasks.flatMap((rules, task) =>
    rules.map((rule, index) => new NaiveRule(rule, `t${task}/${index}/${rule.action}`)),
  );
  if (stop === null) return ofTasks;
  return [...ofTasks, new NaiveRule({ action: "stop", when: stop, once: true }, "null/0/stop")];
}

function labels(book: RuleBook, heard: Fact): string[] {
  return book.receive(heard).map(({ taskId, ruleIndex, action }) => `${taskId}/${ruleIndex}/${action}`);
}

test("rules fire at the times, as often and in the order of the reference", () => {
  fc.assert(
    fc.property(dag, heard, (defined, given) => {
      const book = new RuleBook(new RuleSet(manifestOf(defined)), RUN);
      const naive = naiveRules(defined);
      for (const each of inOrder(given)) {
        const expected = naive.filter((rule) => rule.fires(each)).map(({ label }) => label);
        expect(labels(book, each)).toEqual(expected);
      }
    }),
    { numRuns: 3_000 },
  );
});

test("a rule book that is stored and loaded at any point gives the same results", () => {
  fc.assert(
    fc.property(dag, heard, fc.array(fc.nat(29), { maxLength: 5 }), (defined, given, pauses) => {
      const set = new RuleSet(manifestOf(defined));
      const steady = new RuleBook(set, RUN);
      const rows = new Map<string, StoredRule>();
      let moved = new RuleBook(set, RUN);
      inOrder(given).forEach((each, index) => {
        expect(labels(moved, each)).toEqual(labels(steady, each));
        for (const row of moved.drainChanges()) rows.set(`${row.taskId}/${row.ruleIndex}`, row);
        // Detects a book that does not store a row for each of its changes.
        if (pauses.includes(index)) moved = new RuleBook(set, RUN, structuredClone([...rows.values()]));
        expect(moved.mayStart).toBe(steady.mayStart);
      });
      expect(moved.report()).toEqual(steady.report());
    }),
    { numRuns: 2_000 },
  );
});

test("a rule on one signal fires once for each signal of a burst", () => {
  fc.assert(
    fc.property(leaf, heard, (when, given) => {
      const rules: SignalRule[] = [{ action: "start", when, once: false }];
      const book = new RuleBook(new RuleSet(manifestOf({ tasks: [rules], stop: null })), RUN);
      const all = inOrder(given);
      const fired = all.flatMap((each) => book.receive(each)).length;
      const wanted = all.filter(
        (each) =>
          each.kind === "signal" &&
          isMine(when, each) &&
          (when.equals === null || sorted(each.value) === sorted(when.equals.value)),
      );
      expect(fired).toBe(wanted.length);
      expect(book.report()[0]!.fired).toBe(wanted.length);
    }),
    { numRuns: 1_000 },
  );
});

test("each firing of all() uses up its parts: it fires as often as the rarest part arrives in between", () => {
  const word = fc.array(fc.constantFrom("a", "b"), { maxLength: 40 });
  fc.assert(
    fc.property(word, (keys) => {
      const [a, b] = ["a", "b"].map(
        (key): SignalLeaf => ({
          kind: "signal",
          namespace: "default",
          key,
          where: null,
          equals: null,
          inRun: false,
        }),
      );
      const rules: SignalRule[] = [{ action: "start", when: { kind: "all", of: [a!, b!] }, once: false }];
      const book = new RuleBook(new RuleSet(manifestOf({ tasks: [rules], stop: null })), RUN);
      const fired = inOrder(
        keys.map((key) => ({ kind: "signal", namespace: "default", key, value: null, from: null })),
      ).map((each) => book.receive(each).length);
      // As a text: up to the first signal of the other kind, then on from there.
      const expected = keys.join("").replaceAll(/a+b|b+a/g, (run) => `${"0".repeat(run.length - 1)}1`);
      expect(fired.join("")).toBe(expected.replaceAll(/[ab]/g, "0"));
    }),
    { numRuns: 1_000 },
  );
});

test("a disarmed book does not fire, and inputs in between do not count when it is armed again", () => {
  fc.assert(
    fc.property(dag, heard, heard, heard, (defined, before, meanwhile, after) => {
      const set = new RuleSet(manifestOf(defined));
      const book = new RuleBook(set, RUN);
      for (const each of inOrder(before)) book.receive(each);
      book.disarm();
      expect(book.mayStart).toBe(false);
      for (const each of inOrder(meanwhile)) expect(book.receive(each)).toEqual([]);
      book.arm();
      const fresh = new RuleBook(set, RUN);
      for (const each of inOrder(after)) expect(book.receive(each)).toEqual(fresh.receive(each));
    }),
    { numRuns: 500 },
  );
});
