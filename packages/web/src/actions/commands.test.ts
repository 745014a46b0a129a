import { describe, expect, test } from "vitest";
import { clearTasksCommands, markTasksCommands, runsCommands } from "./commands.ts";

const NONE = { downstream: false, upstream: false, onlyFailed: false, latestVersion: false };
const task = (taskId: string, mapIndex: number | null = -1, runId = "r1") => ({
  dagId: "etl",
  runId,
  taskId,
  mapIndex,
});

describe("commands of tasks", () => {
  test("name the tasks of a run together, and instances of maps alone", () => {
    const tasks = [task("a"), task("b", null), task("m", 3), task("a", -1, "r2")];
    expect(clearTasksCommands(tasks, { ...NONE, downstream: true })).toEqual([
      "tradewind tasks clear etl r1 a b --downstream",
      "tradewind tasks clear etl r1 m --map-index 3 --downstream",
      "tradewind tasks clear etl r2 a --downstream",
    ]);
  });

  test("mark one instance each", () => {
    expect(markTasksCommands([task("m", 0)], "skipped", { downstream: false, upstream: true })).toEqual([
      "tradewind tasks mark etl r1 m skipped --map-index 0 --upstream",
    ]);
  });
});

test("commands of runs are one per DAG", () => {
  const runs = [
    { dagId: "etl", runId: "r1" },
    { dagId: "web", runId: "r9" },
    { dagId: "etl", runId: "r2" },
  ];
  expect(runsCommands(runs, "clear", ["--only-failed"])).toEqual([
    "tradewind runs clear etl r1 r2 --only-failed",
    "tradewind runs clear web r9 --only-failed",
  ]);
});
