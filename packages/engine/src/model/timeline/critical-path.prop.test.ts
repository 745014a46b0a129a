import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { ALL_TASK_STATES } from "../run/states.ts";
import { type CriticalPath, criticalPath, TIME_KINDS } from "./critical-path.ts";
import { INTERVAL_KINDS, type Interval } from "./intervals.ts";
import type { PastInstance } from "./stints.ts";

/** A task of a simulated run: it becomes ready when all its upstream tasks have ended. */
interface Simulated {
  readonly upstream: readonly number[];
  readonly overhead: number;
  /** Lengths of its intervals, in the order of INTERVAL_KINDS; a retry follows another process. */
  readonly queue: number;
  readonly retryWait: number | null;
  readonly work: number;
}

const length = fc.integer({ min: 0, max: 1000 });
const simulated: fc.Arbitrary<Simulated[]> = fc
  .array(
    fc.record({
      edges: fc.array(fc.nat(20), { maxLength: 4 }),
      overhead: fc.integer({ min: 0, max: 5 }),
      queue: length,
      retryWait: fc.option(length),
      work: fc.integer({ min: 1, max: 1000 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((tasks) =>
    tasks.map(({ edges, ...task }, index) => ({
      ...task,
      upstream: index === 0 ? [] : [...new Set(edges.map((edge) => edge % index))],
    })),
  );

const FROM = 10_000;

function run(tasks: readonly Simulated[]) {
  const ends: number[] = [];
  const instances = tasks.map((task, index): PastInstance => {
    const ready = Math.max(FROM, ...task.upstream.map((up) => ends[up]!)) + task.overhead;
    const intervals: Interval[] = [];
    let at = ready;
    const pass = (kind: Interval["kind"], ms: number, tryNumber: number, next: Interval["next"]) => {
      if (ms > 0 || kind === "up_for_retry")
        intervals.push({ kind, tryNumber, start: at, end: at + ms, next });
      at += ms;
    };
    pass("scheduled", task.queue, 1, "queued");
    if (task.retryWait !== null) {
      pass("running", task.work, 1, "failed");
      pass("up_for_retry", task.retryWait, 1, "scheduled");
    }
    pass("running", task.work, task.retryWait === null ? 1 : 2, "success");
    ends.push(at);
    return { taskId: `t${index}`, mapIndex: -1, state: "success", attempt: "a", endedAt: at, intervals };
  });
  const manifest = dagManifest(
    tasks.map(({ upstream }, index) =>
      taskManifest(`t${index}`, { upstream: upstream.map((up) => `t${up}`), retries: 1 }),
    ),
  );
  const graph = compileGraph(manifest);
  const to = Math.max(...ends);
  return {
    to,
    graph,
    path: criticalPath({ graph, instances, expansions: null, from: FROM, to, isEnded: true }),
  };
}

function expectAddsUp({ steps, time }: CriticalPath, from: number, to: number): void {
  let at = from;
  for (const step of steps) {
    expect(step.start).toBe(at);
    const parts = TIME_KINDS.map((kind) => step.time[kind]);
    for (const part of parts) expect(part).toBeGreaterThanOrEqual(0);
    expect(parts.reduce((sum, part) => sum + part)).toBe(step.end - step.start);
    at = step.end;
  }
  expect(at).toBeLessThanOrEqual(to);
  expect(TIME_KINDS.reduce((sum, kind) => sum + time[kind], 0)).toBe(to - from);
}

describe("criticalPath", () => {
  it("adds up to the time of the run, along edges of the graph", () => {
    fc.assert(
      fc.property(simulated, (tasks) => {
        const { graph, path, to } = run(tasks);
        expectAddsUp(path, FROM, to);
        expect(path.steps.at(-1)?.end).toBe(to);
        for (const [place, { after, taskId }] of path.steps.entries()) {
          const before = path.steps[place - 1];
          expect(after).toBe(before === undefined ? "run" : "upstream");
          if (!before) continue;
          const { upstream } = graph.byId.get(taskId)!;
          expect(upstream.map((index) => graph.nodes[index]!.id)).toContain(before.taskId);
        }
      }),
    );
  });

  it("counts each part of the time of its tasks", () => {
    fc.assert(
      fc.property(simulated, (tasks) => {
        const { path } = run(tasks);
        for (const { taskId, time } of path.steps) {
          const { overhead, queue, retryWait, work } = tasks[Number(taskId.slice(1))]!;
          const tries = retryWait === null ? 1 : 2;
          expect(time).toEqual({ work: tries * work, queue, wait: retryWait ?? 0, overhead });
        }
      }),
    );
  });

  it("does not change when a task beside it gets faster, and grows with each of its tasks", () => {
    fc.assert(
      fc.property(simulated, fc.nat(20), fc.integer({ min: 1, max: 500 }), (tasks, which, ms) => {
        const { path, to } = run(tasks);
        const index = which % tasks.length;
        const isOnPath = path.steps.some(({ taskId }) => taskId === `t${index}`);
        const changed = tasks.map((task, place) => {
          if (place !== index) return task;
          return isOnPath
            ? { ...task, queue: task.queue + ms }
            : { ...task, queue: Math.max(0, task.queue - ms) };
        });
        const after = run(changed);
        expect(after.to).toBe(isOnPath ? to + ms : to);
        if (!isOnPath) expect(after.path.time).toEqual(path.time);
      }),
    );
  });

  it("adds up for any rows, also of tasks that started over", () => {
    const interval = fc.record({
      kind: fc.constantFrom(...INTERVAL_KINDS),
      pause: fc.nat(50),
      ms: fc.nat(200),
      isNewTry: fc.boolean(),
    });
    const instance = fc.record({
      steps: fc.array(interval, { maxLength: 6 }),
      begin: fc.nat(2000),
      state: fc.constantFrom(...ALL_TASK_STATES),
      attempt: fc.option(fc.constant("a")),
      later: fc.option(fc.nat(300)),
      isOpen: fc.boolean(),
    });
    const rules = fc.constantFrom("allSuccess" as const, "oneDone" as const, "always" as const);
    const rows = fc.array(fc.tuple(instance, rules), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(rows, simulated, fc.boolean(), (given, edges, isEnded) => {
        const instances = given.map(
          ([{ attempt, begin, isOpen, later, state, steps }], index): PastInstance => {
            let [at, tryNumber] = [FROM - 500 + begin, 1];
            const intervals = steps.map(({ isNewTry, kind, ms, pause }, place): Interval => {
              if (isNewTry) tryNumber++;
              const start = at + pause;
              at = start + ms;
              const goesOn = isOpen && place === steps.length - 1;
              return { kind, tryNumber, start, end: goesOn ? null : at, next: goesOn ? null : "scheduled" };
            });
            const endedAt = later === null ? null : at + later;
            return { taskId: `t${index}`, mapIndex: -1, state, attempt, endedAt, intervals };
          },
        );
        const tasks = given.map(([, rule], index) =>
          taskManifest(`t${index}`, { rule, upstream: (edges[index]?.upstream ?? []).map((up) => `t${up}`) }),
        );
        const graph = compileGraph(dagManifest(tasks));
        const to = FROM + 1500;
        const path = criticalPath({ graph, instances, expansions: null, from: FROM, to, isEnded });
        expectAddsUp(path, FROM, to);
      }),
    );
  });
});
