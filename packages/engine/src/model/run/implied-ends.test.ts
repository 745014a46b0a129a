import { expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { Drive } from "../signal/drive.ts";
import { RuleSet } from "../signal/signal-rules.ts";
import { isStopped } from "./commands.ts";
import { beginAgain, type EditableRow } from "./implied-ends.ts";
import { RunModel } from "./run.ts";

const row = (taskId: string, state: EditableRow["state"], facts: Partial<EditableRow> = {}): EditableRow => {
  const rest = { mapIndex: -1, tryNumber: 0, maxTries: 0, attempt: null, retryAt: null, infraLosses: 0 };
  return { taskId, state, ...rest, isMarked: false, ...facts };
};
const driveOf = (tasks: ReturnType<typeof taskManifest>[]) => {
  const manifest = dagManifest(tasks);
  const run = { dagId: "dag", runId: "run", conf: {} };
  return new Drive({ manifest, rules: new RuleSet(manifest), run, startedAt: 0 });
};
const NOTHING = { skips: [], expansions: [], groups: [] };
const again = (
  rows: readonly EditableRow[],
  tasks: ReturnType<typeof taskManifest>[],
  skips = NOTHING.skips,
) =>
  beginAgain({ graph: compileGraph(dagManifest(tasks)), rows, ...NOTHING, skips }, [], { wholeGroups: false })
    .map(({ taskId }) => taskId)
    .sort();

test("an edit undoes a skip without a cause, and the skips that follow from it", () => {
  const tasks = [
    taskManifest("a"),
    taskManifest("b", { upstream: ["a"] }),
    taskManifest("c", { upstream: ["b"] }),
  ];
  expect(again([row("a", "success"), row("b", "skipped"), row("c", "skipped")], tasks)).toEqual(["b", "c"]);
});

test("an edit keeps a skip that an attempt requested or a user set", () => {
  const tasks = [taskManifest("a"), taskManifest("b"), taskManifest("c", { upstream: ["b"] })];
  const attempt = "0e0f3f7e-5f0f-4a0e-9c53-4a1c1a1f3a11";
  const rows = [
    row("a", "skipped", { attempt }),
    row("b", "skipped", { isMarked: true }),
    row("c", "skipped"),
  ];
  expect(again(rows, tasks)).toEqual([]);
});

test("isStopped distinguishes a stop from an implied skip", () => {
  const run = RunModel.load(compileGraph(dagManifest([taskManifest("a")])), [], {
    drive: driveOf([taskManifest("a")]),
  });
  run.start(0);
  run.apply({ type: "ordered", taskId: "a", action: "stop", reason: "Ann" }, 1);
  expect(run.get("a")).toMatchObject({ state: "skipped", attempt: null, reason: "stopped by Ann" });
  expect(isStopped(run.get("a")!.reason)).toBe(true);
  expect(
    ["trigger rule allSuccess", "the run was closed by Ann", "cancelled by Ann", null].some(isStopped),
  ).toBe(false);
});

test("an edit does not run a task that needs a signal or a tick before its first start", () => {
  const every = { kind: "interval", everyMs: 1_000, style: "trigger" } as const;
  expect(again([row("tick", "skipped")], [taskManifest("tick", { every })])).toEqual([]);
  expect(again([row("tick", "skipped", { tryNumber: 1 })], [taskManifest("tick", { every })])).toEqual([
    "tick",
  ]);
});

test("a queued task that is skipped with its run keeps no attempt, so that its skip counts as implied", () => {
  const model = RunModel.load(compileGraph(dagManifest([taskManifest("a")])), []);
  model.start(0);
  model.apply({ type: "queued", taskId: "a", mapIndex: -1, attempt: "one" }, 1);
  model.apply({ type: "halted", at: 2, reason: "the run timed out", active: "failed" }, 2);
  expect(model.get("a")).toMatchObject({ state: "skipped", attempt: null });
});

test("a scheduled task waits again for an upstream task that starts again", () => {
  const tasks = [taskManifest("a"), taskManifest("b", { upstream: ["a"] })];
  const graph = compileGraph(dagManifest(tasks));
  const rows = [row("a", "success", { tryNumber: 1 }), row("b", "scheduled", { tryNumber: 1 })];
  const found = beginAgain({ graph, rows, ...NOTHING }, [rows[0]!], { wholeGroups: false });
  expect(found.map(({ taskId }) => taskId)).toEqual(["a", "b"]);
  // A task that has waited resumes at its wait.
  const halfway = [rows[0]!, row("b", "scheduled", { tryNumber: 1, resumedAttempt: "wait" })];
  expect(beginAgain({ graph, rows: halfway, ...NOTHING }, [rows[0]!], { wholeGroups: false })).toEqual([
    rows[0],
  ]);
});

test("a task that only ends in another state does not run its setup again", () => {
  const tasks = [
    taskManifest("make", { role: "setup" }),
    taskManifest("use", { upstream: ["make"] }),
    taskManifest("other"),
  ];
  // As after a cancellation: the setup was running, its task had not started. Then a user marks the other task.
  const rows = [row("make", "failed"), row("use", "skipped"), row("other", "success", { isMarked: true })];
  expect(again(rows, tasks)).toEqual(["use"]);
});
