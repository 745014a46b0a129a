import { expect, it } from "vitest";
import { sortedTasks, taskRows } from "./task-trends.ts";

const encoded = (...bytes: number[]) => btoa(String.fromCharCode(...bytes));
const rows = taskRows({
  run_ids: ["r1", "r2"],
  run_after: [1, 2],
  task_states: ["none", "success", "failed"],
  tasks: [
    {
      task_id: "b",
      states: encoded(1, 2),
      durations: [10, 30],
      p50: 10,
      p95: 10,
      ended: 2,
      failed: 1,
      retried: 1,
    },
    {
      task_id: "a",
      states: encoded(0, 1),
      durations: [null, 5],
      p50: 5,
      p95: 5,
      ended: 1,
      failed: 0,
      retried: 0,
    },
    {
      task_id: "c",
      states: encoded(0, 0),
      durations: [null, null],
      p50: null,
      p95: null,
      ended: 0,
      failed: 0,
      retried: 0,
    },
  ],
});
const sorted = (orderBy: string) => sortedTasks(rows, orderBy).map(({ task_id }) => task_id);

it("shows the runs in which a task was, with its durations as bars", () => {
  expect(rows[0]!.runs.map(({ ended, state }) => [state, ended])).toEqual([
    ["success", 10],
    ["failed", 30],
  ]);
  expect(rows.map(({ failureRate, runs }) => [runs.length, failureRate])).toEqual([
    [2, 0.5],
    [1, 0],
    [0, null],
  ]);
});

it("sorts by a column, tasks without a value last", () => {
  expect(sorted("graph")).toEqual(["b", "a", "c"]);
  expect(sorted("task_id")).toEqual(["a", "b", "c"]);
  expect(sorted("p50")).toEqual(["a", "b", "c"]);
  expect(sorted("-p50")).toEqual(["b", "a", "c"]);
  expect(sorted("-failures")).toEqual(["b", "a", "c"]);
});
