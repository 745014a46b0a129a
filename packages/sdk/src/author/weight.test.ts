import { describe, expect, it } from "vitest";
import { dag } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";
import type { WeighedTask } from "./weight.ts";

describe("a custom weight rule", () => {
  it("returns the weight of each task when the DAG is complete", () => {
    const asked: WeighedTask[] = [];
    const weightRule = (task: WeighedTask) => {
      asked.push(task);
      return task.priority * 10 + task.downstream.length;
    };
    const { tasks } = dag("d", { defaults: { weightRule } }, (d) => {
      const a = d.task("a", { priority: 3 }, () => 1);
      d.group("g", (g) => void g.task("b", { after: [a] }, () => 2));
      d.task("c", { after: [a], weightRule: "upstream" }, () => 3);
    })[PROGRAM].describe();
    expect(tasks.map(({ priority, weightRule: rule }) => [priority, rule])).toEqual([
      [32, "absolute"],
      [10, "absolute"],
      [1, "upstream"],
    ]);
    expect(asked).toMatchObject([
      { taskId: "a", group: null, downstream: ["g.b", "c"] },
      { taskId: "g.b", group: "g", upstream: ["a"], pool: "default_pool", poolSlots: 1 },
    ]);
  });

  it("must return a whole number", () => {
    const weighing = (weightRule: () => number) =>
      dag("d", (d) => void d.task("a", { weightRule }, () => 1))[PROGRAM];
    expect(() => weighing(() => 1.5).describe()).toThrow(
      /dag "d", task "a": weightRule must return a whole number/,
    );
    expect(() =>
      weighing(() => {
        throw new Error("no idea");
      }).describe(),
    ).toThrow(/weightRule threw an error: no idea/);
  });
});

it("writes a DAG's limit over all runs to the manifest only if it is set", () => {
  const manifest = (options: object) =>
    dag("d", options, (d) => void d.task("a", () => 1))[PROGRAM].describe();
  expect(manifest({ maxActiveTasksPerDag: 3 }).maxActiveTasksPerDag).toBe(3);
  expect("maxActiveTasksPerDag" in manifest({})).toBe(false);
  expect(() => manifest({ maxActiveTasksPerDag: 0 })).toThrow(/maxActiveTasksPerDag/);
});
