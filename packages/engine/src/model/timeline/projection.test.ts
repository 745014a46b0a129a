import type { TriggerRule } from "@tradewind/sdk/manifest";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import type { TaskState } from "../run/states.ts";
import { type ProjectionInput, projectRun, type TaskPresent } from "./projection.ts";

const NOW = 1_000_000;

const present = (
  facts: Partial<Omit<TaskPresent, "states">> & { states: [TaskState, number][] },
): TaskPresent => ({
  startedAt: null,
  resumesAt: null,
  endedAt: null,
  ...facts,
  states: new Map(facts.states),
});

function input(
  tasks: Readonly<
    Record<string, { up?: string[]; rule?: TriggerRule; is?: TaskPresent; usual?: [number, number] }>
  >,
): ProjectionInput {
  const entries = Object.entries(tasks);
  return {
    graph: compileGraph(
      dagManifest(
        entries.map(([id, { rule = "allSuccess", up = [] }]) => taskManifest(id, { upstream: up, rule })),
      ),
    ),
    tasks: new Map(entries.flatMap(([id, { is }]) => (is ? [[id, is]] : []))),
    usual: new Map(
      entries.flatMap(([id, { usual }]) => (usual ? [[id, { p50: usual[0], p95: usual[1] }]] : [])),
    ),
    now: NOW,
  };
}

const done = present({ states: [["success", 1]], endedAt: NOW - 50 });
const failed = present({ states: [["failed", 1]], endedAt: NOW - 50 });
const running = (ms: number) => present({ states: [["running", 1]], startedAt: NOW - ms });
const shown = (of: ProjectionInput) => {
  const { end, lateEnd, path, tasks, unknown } = projectRun(of);
  const since = (at: number) => at - NOW;
  return {
    ...{ end: since(end), late: since(lateEnd), path: path.join(), unknown },
    tasks: Object.fromEntries(
      tasks.map((task) => [task.taskId, [since(task.start), since(task.end), since(task.lateEnd)]]),
    ),
  };
};

describe("projectRun", () => {
  it("adds what is left of running tasks, and the tasks after them", () => {
    const projected = shown(
      input({
        a: { is: done, usual: [100, 100] },
        b: { up: ["a"], is: running(30), usual: [100, 300] },
        c: { up: ["a"], is: running(10), usual: [40, 40] },
        d: { up: ["b", "c"], usual: [20, 60] },
        e: { up: ["d"], usual: [5, 5] },
      }),
    );
    expect(projected).toEqual({
      ...{ end: 95, late: 335, path: "b,d,e", unknown: 0 },
      tasks: { b: [0, 70, 270], c: [0, 30, 30], d: [70, 90, 330], e: [90, 95, 335] },
    });
  });

  it("expects a task that takes longer than usual to take as long as in slow runs, then to end now", () => {
    expect(shown(input({ a: { is: running(200), usual: [100, 300] } })).tasks.a).toEqual([0, 100, 100]);
    expect(shown(input({ a: { is: running(400), usual: [100, 300] } })).tasks.a).toEqual([0, 0, 0]);
  });

  it("starts retries when they are due, and ready tasks now", () => {
    const retried = present({ states: [["up_for_retry", 1]], startedAt: NOW - 500, resumesAt: NOW + 60 });
    const queued = present({ states: [["queued", 1]] });
    expect(
      shown(input({ a: { is: retried, usual: [100, 100] }, b: { is: queued, usual: [30, 30] } })).tasks,
    ).toEqual({ a: [0, 160, 160], b: [0, 30, 30] });
  });

  it("counts the instances of a map that are left", () => {
    const map = present({ states: [["success", 30], ["running", 5], ["pending", 5]], startedAt: NOW - 999 }); // biome-ignore format: one row
    expect(shown(input({ a: { is: map, usual: [400, 800] } })).tasks.a).toEqual([0, 100, 200]);
  });

  it("follows the trigger rules", () => {
    const ups = { up: ["fast", "slow"], usual: [10, 10] as [number, number] };
    const of = {
      fast: { is: running(0), usual: [100, 100] as [number, number] },
      slow: { is: running(0), usual: [500, 500] as [number, number] },
    };
    const startOf = (rule: TriggerRule, more: Partial<typeof of> = {}) =>
      shown(input({ ...of, ...more, last: { ...ups, rule } })).tasks.last;
    expect(startOf("allSuccess")).toEqual([500, 510, 510]);
    expect(startOf("oneSuccess")).toEqual([100, 110, 110]);
    expect(startOf("always")).toEqual([0, 10, 10]);
    // It will be skipped as soon as one upstream task succeeds.
    expect(startOf("allFailed")).toEqual([100, 100, 100]);
    const broken = { fast: { is: failed, usual: [1, 1] as [number, number] } };
    expect(startOf("allSuccess", broken)).toEqual([0, 0, 0]);
    expect(startOf("allDone", broken)).toEqual([500, 510, 510]);
    expect(startOf("oneFailed", broken)).toEqual([0, 10, 10]);
  });

  it("projects a run that has not started, and counts tasks without experience", () => {
    expect(shown(input({ a: { usual: [100, 200] }, b: { up: ["a"] } }))).toEqual({
      ...{ end: 100, late: 200, path: "a,b", unknown: 1 },
      tasks: { a: [0, 100, 200], b: [100, 100, 200] },
    });
    expect(shown(input({ a: { is: done } }))).toEqual({ end: 0, late: 0, path: "", unknown: 0, tasks: {} });
  });

  it("never ends a task before its upstream lets it begin, nor a run before one of its tasks", () => {
    const rule = fc.constantFrom<TriggerRule>("allSuccess", "allDone", "noneFailed", "oneSuccess", "always");
    const is = fc.constantFrom(
      undefined,
      done,
      failed,
      running(10),
      running(900),
      present({ states: [["scheduled", 1]] }),
    );
    const task = fc.record({
      rule,
      is,
      edges: fc.array(fc.nat(9), { maxLength: 3 }),
      usual: fc.nat(500),
      slow: fc.nat(500),
    });
    fc.assert(
      fc.property(
        fc.array(task, { minLength: 1, maxLength: 9 }),
        fc.nat(8),
        fc.nat(100),
        (tasks, which, more) => {
          const of = (longer: number) =>
            input(
              Object.fromEntries(
                tasks.map(({ edges, is: now, rule: each, slow, usual }, index) => {
                  const p50 = usual + (index === which ? longer : 0);
                  const up = index === 0 ? [] : [...new Set(edges.map((edge) => `t${edge % index}`))];
                  return [
                    `t${index}`,
                    { up, rule: each, ...(now && { is: now }), usual: [p50, p50 + slow] as [number, number] },
                  ];
                }),
              ),
            );
          const projection = projectRun(of(0));
          const ends = new Map(projection.tasks.map(({ end, taskId }) => [taskId, end]));
          for (const { after, end, lateEnd, start } of projection.tasks) {
            expect(start).toBeGreaterThanOrEqual(NOW);
            expect(end).toBeGreaterThanOrEqual(start);
            expect(lateEnd).toBeGreaterThanOrEqual(end);
            if (after !== null) expect(ends.get(after)).toBe(start);
            expect(projection.end).toBeGreaterThanOrEqual(end);
          }
          expect(projection.end).toBe(Math.max(NOW, ...ends.values()));
          expect(projection.lateEnd).toBeGreaterThanOrEqual(projection.end);
          // A task that has begun may be late by now, and is then expected to take its late time.
          const isPending = tasks[which]?.is === undefined;
          if (isPending) expect(projectRun(of(more)).end).toBeGreaterThanOrEqual(projection.end);
        },
      ),
    );
  });
});
