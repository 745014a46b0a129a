import { expect, it } from "vitest";
import {
  failuresOf,
  type GridAnswer,
  gridModel,
  segmentsOf,
  usualOf,
  withRun,
  worstOf,
} from "./grid-model.ts";

const LEGEND = ["none", "success", "failed", "running", "skipped"];
const encoded = (...bytes: number[]) => btoa(String.fromCharCode(...bytes));

const run = (id: string, states: readonly number[], minute = 0): GridAnswer["runs"][number] => ({
  ...{ run_id: id, run_type: "scheduled", state: "success", version: 1, try_number: 1, has_note: false },
  logical_date: null,
  run_after: new Date(minute * 60_000).toISOString(),
  queued_at: new Date(0).toISOString(),
  started_at: new Date(0).toISOString(),
  ended_at: new Date(minute * 1_000).toISOString(),
  states: encoded(...states),
  tries: null,
  mapped: [],
});

const page = (runs: GridAnswer["runs"], removed: string[] = []): GridAnswer => ({
  ...{ version: 1, task_states: LEGEND, groups: [], edges: { from: [], to: [] }, next_before: null },
  tasks: ["a", "b"].map((task_id) => ({
    ...{ task_id, group: null, operator: "task", is_mapped: false, role: "work" as const },
  })),
  removed,
  runs,
});

it("puts older pages before newer ones, and each run once", () => {
  const { columns } = gridModel([
    page([run("r3", [1, 1]), run("r4", [1, 2])]),
    page([run("r1", [1, 1]), run("r3", [1, 1])]),
  ]);
  expect(columns.map(({ runId }) => runId)).toEqual(["r1", "r3", "r4"]);
  expect([...columns[2]!.states]).toEqual([1, 2]);
});

it("gives removed tasks of different pages one place each", () => {
  const { columns, removed } = gridModel([
    page([run("r2", [1, 1, 2])], ["y"]),
    page([run("r1", [1, 1, 3])], ["x"]),
  ]);
  expect(removed).toEqual(["x", "y"]);
  expect(columns.map(({ states }) => [...states])).toEqual([
    [1, 1, 3],
    [1, 1, 0, 2],
  ]);
});

it("counts the failures of each task, also of removed ones", () => {
  const model = gridModel([
    page([run("r2", [2, 1, 2])], ["y"]),
    page([run("r0", [1, 1, 1]), run("r1", [2, 1, 2])], ["x"]),
  ]);
  expect(failuresOf(model)).toEqual([2, 0, 1, 1]);
});

it("decodes only the run that has changed", () => {
  const pages = [page([run("r1", [1, 1]), run("r2", [3, 0], 1)])];
  const before = gridModel(pages);
  const after = gridModel(
    withRun(pages, { version: 1, removed: [], task_count: 2, run: run("r2", [1, 2], 1) })!,
  );
  expect(after.columns[0]).toBe(before.columns[0]);
  expect([...after.columns[1]!.states]).toEqual([1, 2]);
});

it("appends a new run, and reads all again for a run of other tasks or an older date", () => {
  const pages = [page([run("r1", [1, 1], 5)])];
  const sent = (task_count: number, minute: number) => ({
    ...{ version: 1, removed: [], task_count, run: run("r2", [1, 1], minute) },
  });
  expect(withRun(pages, sent(2, 6))![0]!.runs.map(({ run_id }) => run_id)).toEqual(["r1", "r2"]);
  expect(withRun(pages, sent(3, 6))).toBeUndefined();
  expect(withRun(pages, sent(2, 4))).toBeUndefined();
});

it("shows the worst state of a group", () => {
  const model = gridModel([page([run("r1", [1, 2])])]);
  expect(LEGEND[worstOf(model, model.columns[0]!, [0, 1])]).toBe("failed");
  expect(LEGEND[worstOf(model, model.columns[0]!, [0])]).toBe("success");
  expect(LEGEND[worstOf(model, model.columns[0]!, [])]).toBe("none");
});

it("draws a mapped task in proportion, and never hides a failure", () => {
  const { ranks } = gridModel([page([])]);
  const shown = (...counts: [number, number][]) =>
    segmentsOf({ ranks }, counts, 4).map((byte) => LEGEND[byte]);
  expect(shown([1, 23], [2, 1])).toEqual(["failed", "success", "success", "success"]);
  expect(shown([1, 2], [3, 2])).toEqual(["running", "running", "success", "success"]);
  expect(shown([1, 7])).toEqual(["success", "success", "success", "success"]);
});

it("takes the median of the successful runs as usual", () => {
  const { columns } = gridModel([page([run("r1", [1, 1], 1), run("r2", [1, 1], 9), run("r3", [1, 1], 3)])]);
  expect(usualOf(columns)).toBe(3_000);
});
