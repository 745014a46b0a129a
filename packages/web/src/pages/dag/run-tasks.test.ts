import { expect, it } from "vitest";
import { runTasks } from "./run-tasks.ts";

const encoded = (...bytes: number[]) => btoa(String.fromCharCode(...bytes));
const task = (task_id: string, is_mapped = false) => ({
  ...{ task_id, group: null, operator: "task", is_mapped, role: "work" as const, pool: "default" },
});

it("shows tries as spans, failures first and mapped tasks as one", () => {
  const tasks = runTasks({
    ...{ now: 100, origin: 0, groups: [], edges: { from: [], to: [] }, removed: [], more: true },
    run: {
      ...{ run_id: "r", run_type: "manual", state: "running", version: 1, try_number: 1 },
      ...{ logical_date: null, run_after: 0, queued: 0, started: 0, ended: null },
    },
    task_states: ["none", "success", "failed", "up_for_retry", "running"],
    interval_kinds: ["queued", "running", "up_for_retry"],
    tasks: [task("ok"), task("flaky"), task("map", true)],
    instances: {
      tasks: [0, 1, 2],
      map_indexes: [-1, -1, 0],
      labels: null,
      states: encoded(1, 2, 1),
      tries: encoded(1, 2, 1),
      intervals: [2, 3, 1],
    },
    intervals: {
      kinds: encoded(0, 1, 1, 2, 1, 1),
      tries: encoded(1, 1, 1, 1, 2, 1),
      next: encoded(4, 1, 3, 4, 2, 1),
      starts: [0, 5, 10, 20, 30, 40],
      ends: [5, 9, 20, 30, 35, 41],
    },
    maps: [
      {
        at: 2,
        counts: [
          [1, 3],
          [4, 2],
        ],
        instances: 5,
        tries: 1,
        start: 40,
        end: 41,
        shown: 1,
      },
    ],
  } as unknown as Parameters<typeof runTasks>[0]);
  expect(tasks.map(({ from, state, taskId, to }) => [taskId, state, from, to])).toEqual([
    ["flaky", "failed", 10, 35],
    ["map", "running", 40, null],
    ["ok", "success", 5, 9],
  ]);
  expect(tasks[0]!.spans.map(({ state }) => state)).toEqual(["failed", "up_for_retry", "failed"]);
  expect(tasks[1]!.instances).toBe(5);
});
