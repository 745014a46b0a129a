import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { RunModel } from "./run.ts";

/** start -> `width` tasks -> end; `width` chains would be the same for the model. */
function fan(width: number): RunModel {
  const middle = Array.from({ length: width }, (_, i) => `t${i}`);
  const tasks = [
    taskManifest("start"),
    ...middle.map((id) => taskManifest(id, { upstream: ["start"] })),
    taskManifest("end", { upstream: middle }),
  ];
  const model = RunModel.load(compileGraph(dagManifest(tasks)), []);
  model.start(0);
  return model;
}

function finish(model: RunModel, taskId: string): void {
  const attempt = `attempt-of-${taskId}`;
  model.apply({ type: "queued", taskId, mapIndex: -1, attempt }, 1);
  model.apply({ type: "started", taskId, mapIndex: -1, attempt, at: 1 }, 1);
  model.apply({ type: "succeeded", taskId, mapIndex: -1, attempt, at: 1, skip: [] }, 1);
}

test("an event costs its direct downstream, for any size of the run", () => {
  for (const width of [10, 1_000, 100_000]) {
    const model = fan(width);
    expect(model.evaluations).toBe(width + 2);
    finish(model, "start");
    expect(model.evaluations - (width + 2)).toBe(width);
    expect(model.drainReady()).toHaveLength(width);
    model.drainChanges();
    const before = model.evaluations;
    for (let i = 0; i < 10; i++) finish(model, `t${i}`);
    // One evaluation of `end` for each of the ten.
    expect(model.evaluations - before).toBe(10);
    expect(model.drainChanges().length).toBe(width === 10 ? 11 : 10);
  }
});

test("a scheduled task is not evaluated again when more upstream tasks end", () => {
  const upstream = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
  const tasks = [
    ...upstream.map((id) => taskManifest(id)),
    taskManifest("any", { upstream, rule: "oneSuccess" }),
  ];
  const model = RunModel.load(compileGraph(dagManifest(tasks)), []);
  model.start(0);
  const before = model.evaluations;
  for (const id of upstream) finish(model, id);
  expect(model.evaluations - before).toBe(1);
});

test("a chain of 100,000 tasks fails in one event, with one evaluation per task", () => {
  const count = 100_000;
  const tasks = Array.from({ length: count }, (_, i) =>
    taskManifest(`t${i}`, { upstream: i ? [`t${i - 1}`] : [] }),
  );
  const model = RunModel.load(compileGraph(dagManifest(tasks)), []);
  model.start(0);
  const before = model.evaluations;
  model.apply({ type: "queued", taskId: "t0", mapIndex: -1, attempt: "x" }, 1);
  model.apply(
    {
      type: "failed",
      taskId: "t0",
      mapIndex: -1,
      attempt: "x",
      at: 1,
      retry: false,
      retryAt: null,
      reason: null,
    },
    1,
  );
  expect(model.evaluations - before).toBe(count - 1);
  expect(model.verdict()).toEqual({ state: "failed", reason: "task_failure" });
});

test("100,000 instances take less than 60 MB", () => {
  const graph = fan(100_000).graph;
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  const before = process.memoryUsage().heapUsed;
  const model = RunModel.load(graph, []);
  model.start(0);
  finish(model, "start");
  model.drainReady();
  model.drainChanges();
  collect();
  const used = process.memoryUsage().heapUsed - before;
  expect(model.counts.byState.scheduled).toBe(100_000);
  expect(used / 1e6).toBeGreaterThan(1);
  expect(used / 1e6).toBeLessThan(60);
});
