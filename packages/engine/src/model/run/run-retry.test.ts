import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import type { InstanceRow } from "./instance.ts";
import { RunModel } from "./run.ts";
import { runRetryAt } from "./run-retry.ts";
import type { TaskState } from "./states.ts";

const failed = { state: "failed", reason: "task_failure" } as const;
const manifest = { runRetry: { retries: 2, delayMs: 50, from: "failure" } } as const;

test.each([
  ["with tries left", manifest, { tryNumber: 2, verdict: failed, isTimedOut: false }, 150],
  ["not without", manifest, { tryNumber: 3, verdict: failed, isTimedOut: false }, null],
  ["not after its timeout", manifest, { tryNumber: 1, verdict: failed, isTimedOut: true }, null],
  ["not without retries", {}, { tryNumber: 1, verdict: failed, isTimedOut: false }, null],
  ["not a success", manifest, { tryNumber: 1, verdict: { state: "success" }, isTimedOut: false }, null],
  [
    "not a deadlock",
    manifest,
    { tryNumber: 1, verdict: { state: "failed", reason: "all_tasks_deadlocked" }, isTimedOut: false },
    null,
  ],
] as const)("a run is retried %s", (_, of, run, at) => {
  expect(runRetryAt(of, run, 100)).toBe(at);
});

const row = (taskId: string, state: TaskState, mapIndex = -1): InstanceRow => ({
  taskId,
  mapIndex,
  state,
  tryNumber: 1,
  maxTries: 0,
  attempt: null,
  retryAt: null,
  infraLosses: 0,
});

test("a run retry repeats failed tasks, their downstream in the same map items, and the setups they need", () => {
  const inMap = { map: "m" };
  const tasks = [
    taskManifest("before"),
    taskManifest("setup", { role: "setup", upstream: ["before"], ...inMap }),
    taskManifest("work", { upstream: ["setup"], ...inMap }),
    taskManifest("handled", { upstream: ["work"], rule: "allDone", ...inMap }),
    taskManifest("teardown", {
      role: "teardown",
      upstream: ["handled", "setup"],
      teardown: { of: "setup", failsRun: false },
      ...inMap,
    }),
    taskManifest("gathers", { upstream: ["work"] }),
    taskManifest("beside", { upstream: ["before"] }),
  ];
  const maps = [{ mapId: "m", parent: null, over: { kind: "list", items: [] } as const, limit: null }];
  const rows = [
    row("before", "success"),
    row("gathers", "upstream_failed"),
    row("beside", "success"),
    ...[0, 1].flatMap((item) => [
      row("setup", "success", item),
      row("work", item === 1 ? "failed" : "success", item),
      row("handled", "success", item),
      row("teardown", "success", item),
    ]),
  ];
  const expansions = [{ mapId: "m", parent: -1, base: 0, length: 2, tries: 0 }];
  const model = RunModel.load(compileGraph(dagManifest(tasks, { maps })), rows, { expansions });
  model.start(1);
  const names = (from: "failure" | "start") =>
    model
      .retried(from)
      .map(({ mapIndex, node }) => `${node.id} ${mapIndex}`)
      .sort();
  expect(names("failure")).toEqual(["gathers -1", "handled 1", "setup 1", "teardown 1", "work 1"]);
  expect(names("start")).toHaveLength(11);
});

test("a run retry repeats all tasks of a failed group with retries, but only the failed tasks of another group", () => {
  const retry = { retries: 1, delayMs: 0 };
  const groups = [
    { groupId: "unit", parent: null, docs: null, retry },
    { groupId: "unit.inner", parent: "unit", docs: null, retry },
    { groupId: "box", parent: null, docs: null },
  ];
  const tasks = [
    taskManifest("before"),
    taskManifest("open", { upstream: ["before"], group: "unit" }),
    taskManifest("send", { upstream: ["open"], group: "unit.inner" }),
    taskManifest("other", { upstream: ["open"], group: "unit" }),
    taskManifest("first", { upstream: ["before"], group: "box" }),
    taskManifest("second", { upstream: ["first"], group: "box" }),
    taskManifest("after", { upstream: ["other"], rule: "allDone" }),
  ];
  const states: Record<string, TaskState> = { send: "failed", second: "failed" };
  const rows = tasks.map(({ taskId }) => row(taskId, states[taskId] ?? "success"));
  const stored = ["unit", "unit.inner"].map((groupId) => {
    return { groupId, mapIndex: -1, state: "failed", tryNumber: 2, maxTries: 1, retryAt: null } as const;
  });
  const model = RunModel.load(compileGraph(dagManifest(tasks, { groups })), rows, { groups: stored });
  model.start(1);
  const again = model.retried("failure").map(({ node }) => node.id);
  expect(again.sort()).toEqual(["after", "open", "other", "second", "send"]);
});
