/**
 * Compares signal-driven runs with a reference written from the guide, through random histories with commits, crashes and
 * false reports at any point; and checks the invariants of every such run.
 */
import type { DagManifest, SignalCondition, SignalRule, TriggerRule } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { expect, test } from "vitest";
import { DrivenLockstep, type PlainStep, type Step } from "../../../test/reference/driven-lockstep.ts";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";

const RUNS = Number(process.env.TRADEWIND_PROPERTY_RUNS ?? 300);
const KEYS = ["a", "b", "c"];

const signal = (key: string): SignalCondition => {
  return { kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false };
};

const leaf = (tasks: number): fc.Arbitrary<SignalCondition> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...KEYS).map(signal) },
    {
      weight: 1,
      arbitrary: fc.nat({ max: tasks - 1 }).map((n): SignalCondition => ({ kind: "task", taskId: `t${n}` })),
    },
  );
const condition = (tasks: number): fc.Arbitrary<SignalCondition> =>
  fc.oneof(
    { weight: 4, arbitrary: leaf(tasks) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constantFrom("all", "any"), of: fc.tuple(leaf(tasks), leaf(tasks)) }),
    },
  );
const rule = (tasks: number): fc.Arbitrary<SignalRule> =>
  fc.record({
    action: fc.constantFrom("start", "start", "restart", "stop"),
    when: condition(tasks),
    once: fc.boolean(),
  });

const RULES: TriggerRule[] = [
  "allSuccess",
  "allSuccess",
  "allSuccess",
  "allDone",
  "noneFailed",
  "oneDone",
  "always",
];

const task = (tasks: number) =>
  fc.record({
    rules: fc.oneof(
      { weight: 1, arbitrary: fc.constant([]) },
      { weight: 2, arbitrary: fc.array(rule(tasks), { maxLength: 3 }) },
    ),
    upstream: fc.array(fc.nat({ max: tasks - 1 }), { maxLength: 2 }),
    rule: fc.constantFrom(...RULES),
    retries: fc.nat({ max: 2 }),
    isStreaming: fc.boolean(),
    every: fc.option(fc.constantFrom(7, 20), { freq: 8 }),
  });

interface Facts {
  readonly tasks: readonly {
    readonly rules: readonly SignalRule[];
    readonly upstream: readonly number[];
    readonly rule: TriggerRule;
    readonly retries: number;
    readonly isStreaming: boolean;
    readonly every: number | null;
  }[];
  readonly stop: SignalCondition | null;
  readonly endsWithBatch: boolean;
}

const dag: fc.Arbitrary<Facts> = fc.integer({ min: 1, max: 6 }).chain((tasks) =>
  fc.record({
    tasks: fc.array(task(tasks), { minLength: tasks, maxLength: tasks }),
    stop: fc.option(condition(tasks), { freq: 3 }),
    endsWithBatch: fc.boolean(),
  }),
);

/** Later tasks may depend on earlier ones; the manifest order is the order of the rules. */
function manifestOf({ endsWithBatch, stop, tasks }: Facts): DagManifest {
  const all = tasks.map(({ every, isStreaming, retries, rule, rules, upstream }, index) =>
    taskManifest(`t${index}`, {
      upstream: [...new Set(upstream.filter((each) => each < index).map((each) => `t${each}`))],
      ...{ rule, retries: isStreaming ? 1_000_000_000 : retries },
      ...(rules.length > 0 && { rules }),
      ...(isStreaming && { lifetime: "streaming" as const }),
      ...(every !== null && { every: { kind: "interval", everyMs: every, style: "trigger" } as const }),
    }),
  );
  return dagManifest(all, { stop, ...(endsWithBatch && { endWhen: "batchDone" as const }) });
}

const fixed = (...kinds: PlainStep[]) => fc.constantFrom(...kinds.map((kind): Step => ({ kind })));
const pick = fc.nat({ max: 5 });
const sent: fc.Arbitrary<Step> = fc.record({ kind: fc.constant("signal"), key: fc.constantFrom(...KEYS) });
const reported: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("attempt"),
  pick,
  outcome: fc.nat({ max: 17 }),
});
const ordered: fc.Arbitrary<Step> = fc.record({
  kind: fc.constant("order"),
  pick,
  action: fc.constantFrom("start", "restart", "stop"),
});
const picks = fc.nat({ max: 63 });
const few = fc.tuple(pick, pick).map(([one, other]) => (1 << one) | (1 << other));
const state = fc.constantFrom("success", "failed", "failed", "skipped");
const edited: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("clear"), picks, onlyFailed: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("mark"), picks: few, as: state }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: "cancel", as: "failed" }) },
  { weight: 1, arbitrary: fc.constant<Step>({ kind: "cancel", as: "success" }) },
);

const steps = (step: fc.Arbitrary<Step>, maxLength = 60) =>
  fc.array(step, { minLength: 1, maxLength, size: "max" });
const anything = fc.oneof(
  { weight: 6, arbitrary: sent },
  { weight: 3, arbitrary: ordered },
  { weight: 20, arbitrary: reported },
  { weight: 8, arbitrary: fixed("turn") },
  { weight: 2, arbitrary: fixed("commit", "giveBack", "tick") },
  { weight: 1, arbitrary: fixed("crash", "forge") },
  { weight: 1, arbitrary: edited },
);

function live(facts: Facts, steps: readonly Step[]): DrivenLockstep {
  const run = new DrivenLockstep(manifestOf(facts));
  for (const step of steps) if (!run.isOver || isEdit(step)) run.step(step);
  return run;
}

test("a signal-driven run follows the guide in any history, with commits and reloads at any point", () => {
  fc.assert(
    fc.property(
      dag,
      steps(anything),
      fc.option(steps(anything), { freq: 3 }),
      (facts, before, afterClose) => {
        const steps: Step[] = afterClose ? [...before, { kind: "close" }, ...afterClose] : before;
        live(facts, steps).toTheEnd();
      },
    ),
    { numRuns: RUNS },
  );
});

test("n signals cause n runs of each task that they start: none is lost or counted twice", () => {
  const task = { rules: [{ action: "start", when: signal("a"), once: false }], rule: "allDone" } as const;
  const shape = fc.array(fc.array(fc.nat({ max: 3 }), { maxLength: 2 }), { minLength: 1, maxLength: 3 });
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constant<Step>({ kind: "signal", key: "a" }) },
    { weight: 6, arbitrary: reported.filter((each) => each.kind !== "attempt" || !isRetried(each.outcome)) },
    { weight: 3, arbitrary: fixed("turn") },
    { weight: 2, arbitrary: fixed("commit", "giveBack", "crash", "crash", "forge") },
  );
  fc.assert(
    fc.property(shape, steps(step, 40), (shape, steps) => {
      const tasks = shape.map((upstream) => ({
        ...task,
        upstream,
        retries: 0,
        isStreaming: false,
        every: null,
      }));
      const run = live({ tasks, stop: null, endsWithBatch: false }, steps);
      run.rest();
      const signals = steps.filter(({ kind }) => kind === "signal").length;
      expect(run.tries()).toEqual(tasks.map(() => signals));
      // Each try has its own signal as its cause.
      const each = Array.from({ length: signals }, (_, index) => [index + 1]);
      expect(run.causes()).toEqual(tasks.map(() => each));
    }),
    { numRuns: RUNS },
  );
});

/** The attempt fails permanently, queued or running. */
const FAILS = 7;

/** Tasks that wait for a start as well as for their upstream, with few stops. */
const startedDag: fc.Arbitrary<Facts> = fc.record({
  tasks: fc.array(
    task(5).chain((facts) =>
      fc.record({
        ...each(facts),
        upstream: fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 2 }),
        isStreaming: fc.nat({ max: 5 }).map((n) => n === 0),
        rules: fc.oneof(
          { weight: 2, arbitrary: fc.constant([]) },
          {
            weight: 2,
            arbitrary: fc.constant<SignalRule[]>([{ action: "start", when: signal("a"), once: false }]),
          },
          { weight: 1, arbitrary: fc.array(rule(5), { maxLength: 2 }) },
        ),
      }),
    ),
    { minLength: 2, maxLength: 5 },
  ),
  stop: fc.option(condition(2), { freq: 9 }),
  endsWithBatch: fc.boolean(),
});

test("edits lose no start, and a run succeeds only if every task that its rules require has run", () => {
  const step = fc.oneof(
    { weight: 1, arbitrary: anything.filter((each) => !isEdit(each)) },
    { weight: 1, arbitrary: reported },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant("attempt"), pick, outcome: fc.constant(FAILS) }) },
    { weight: 1, arbitrary: sent },
  );
  const started = steps(step, 15).map((each): Step[] => [{ kind: "signal", key: "a" }, ...each]);
  const phase = fc.record({ before: started, edits: fc.array(edited, { minLength: 1, maxLength: 2 }) });
  const counts = { reopened: 0, carriedOut: 0 };
  fc.assert(
    fc.property(startedDag, fc.array(phase, { minLength: 1, maxLength: 4 }), (facts, phases) => {
      const run = live(
        facts,
        phases.flatMap(({ before, edits }) => [...before, ...edits]),
      );
      run.toTheEnd();
      // Failed tasks are cleared, and every attempt succeeds from now on.
      run.step({ kind: "clear", picks: 0, onlyFailed: true });
      run.toTheEnd();
      counts.reopened += run.reopened;
      counts.carriedOut += run.carriedOut;
    }),
    { numRuns: 2 * RUNS },
  );
  // Guards against vacuous success: the histories must contain these events.
  expect(counts.reopened).toBeGreaterThan(RUNS);
  expect(counts.carriedOut).toBeGreaterThan(0);
});

/** A loss that counts: after two of them the try has failed, and failures are not retried here. */
function isRetried(outcome: number): boolean {
  return Math.floor(outcome / 2) % 9 === 6;
}

test("tasks downstream of a repeated task run again after it, never before", () => {
  const startable = rule(4).filter(({ action }) => action !== "stop");
  const tasks = fc.array(
    task(4).chain((facts) => fc.record({ ...each(facts), rules: fc.array(startable, { maxLength: 1 }) })),
    { minLength: 2, maxLength: 5 },
  );
  const isGentle = (step: Step) => !isEdit(step) && (step.kind !== "order" || step.action !== "stop");
  const step = anything.filter(isGentle);
  fc.assert(
    fc.property(tasks, steps(step), (tasks, steps) => {
      const run = live({ tasks, stop: null, endsWithBatch: false }, steps);
      run.toTheEnd();
      if (run.isClosedInPeace) run.checkOrder();
    }),
    { numRuns: RUNS },
  );
});

function isEdit({ kind }: Step): boolean {
  return kind === "clear" || kind === "mark" || kind === "cancel";
}

function each<T extends object>(facts: T): { [K in keyof T]: fc.Arbitrary<T[K]> } {
  return Object.fromEntries(Object.entries(facts).map(([key, value]) => [key, fc.constant(value)])) as never;
}
