import type { MapManifest, TaskManifest } from "@tradewind/sdk/manifest";
import { describe, expect, test } from "vitest";
import { dagManifest, taskManifest } from "../../../test/reference/manifests.ts";
import { compileGraph } from "../graph/graph.ts";
import { type InstanceRow, isOccupying, type Wait } from "./instance.ts";
import { type RunJournal, RunModel } from "./run.ts";

const task = (id: string, upstream: string[] = [], facts: Partial<TaskManifest> = {}) =>
  taskManifest(id, { upstream, ...facts });

const WAIT: Wait = { timeoutAt: null, onTimeout: "fail", keepsSlot: false };

const row = (taskId: string, facts: Partial<InstanceRow> = {}): InstanceRow => {
  const fresh = { mapIndex: -1, state: "pending", tryNumber: 0, maxTries: 0 } as const;
  return { taskId, ...fresh, attempt: null, retryAt: null, infraLosses: 0, ...facts };
};

/** A started run with a row for each task, and shortcuts to drive it. */
function runOf(
  tasks: TaskManifest[],
  rows: InstanceRow[] = [],
  journal: RunJournal & { maps?: MapManifest[] } = {},
) {
  const known = new Set(rows.map(({ taskId }) => taskId));
  const missing = tasks.filter(({ taskId }) => !known.has(taskId));
  const all = [...rows, ...missing.map(({ taskId, retries }) => row(taskId, { maxTries: retries }))];
  const { maps } = journal;
  const manifest = dagManifest(tasks, maps && { maps });
  const model = RunModel.load(compileGraph(manifest), all, journal);
  model.start(1);
  const of = (taskId: string, mapIndex = -1) => {
    return { taskId, mapIndex, attempt: model.get(taskId, mapIndex)?.attempt ?? "?", at: 5 };
  };
  return {
    model,
    state: (id: string, mapIndex = -1) => model.get(id, mapIndex)?.state,
    states: () => Object.fromEntries([...model.instances()].map((i) => [i.node.id, i.state])),
    ready: () => model.drainReady().map((i) => (i.mapIndex < 0 ? i.node.id : `${i.node.id}[${i.mapIndex}]`)),
    queue: (id: string, attempt = `${id}-1`, mapIndex = -1) =>
      model.apply({ type: "queued", taskId: id, mapIndex, attempt }, 2),
    begin: (id: string) => model.apply({ type: "started", ...of(id) }, 3),
    succeed: (id: string, skip: string[] = [], mapIndex = -1) =>
      model.apply({ type: "succeeded", ...of(id, mapIndex), skip }, 5),
    fail: (id: string, retry = true, retryAt: number | null = 50) =>
      model.apply({ type: "failed", ...of(id), retry, retryAt, reason: "boom" }, 5),
    lose: (id: string, budget = 1) =>
      model.apply({ type: "lost", ...of(id), reason: "gone", budget, retryAt: 60 }, 5),
    of,
  };
}

test("a chain: each task becomes ready when the previous one has succeeded, and the run ends", () => {
  const run = runOf([task("a"), task("b", ["a"])]);
  expect(run.ready()).toEqual(["a"]);
  expect(run.ready()).toEqual([]);
  run.queue("a");
  run.begin("a");
  run.succeed("a");
  expect(run.ready()).toEqual(["b"]);
  expect(run.model.verdict()).toEqual({ state: "running" });
  run.queue("b");
  run.succeed("b");
  expect(run.model.verdict()).toEqual({ state: "success" });
  expect(run.model.get("b")).toMatchObject({ tryNumber: 1, startedAt: 5, endedAt: 5 });
  expect(run.model.get("a")).toMatchObject({ startedAt: 5, endedAt: 5, attempt: "a-1" });
});

test("a run with a failed middle task succeeds if its allDone leaf succeeds", () => {
  const run = runOf([task("a"), task("b", ["a"]), task("c", ["b"], { rule: "allDone" })]);
  run.queue("a");
  run.fail("a");
  expect(run.states()).toEqual({ a: "failed", b: "upstream_failed", c: "scheduled" });
  expect(run.model.get("b")?.reason).toBe("trigger rule allSuccess");
  run.queue("c");
  run.succeed("c");
  expect(run.model.verdict()).toEqual({ state: "success" });
});

test("all effects of one event are evaluated together: a failure and a skip count as a failure", () => {
  const run = runOf([
    task("a"),
    task("onSkip", ["a"], { rule: "allSkipped" }),
    task("onSuccess", ["a"]),
    task("join", ["onSkip", "onSuccess"]),
  ]);
  run.queue("a");
  run.fail("a");
  expect(run.states()).toMatchObject({
    onSkip: "skipped",
    onSuccess: "upstream_failed",
    join: "upstream_failed",
  });
  expect(run.model.verdict()).toEqual({ state: "failed", reason: "task_failure" });
});

describe("reports", () => {
  test("are ignored for an unknown task, another attempt or a wrong state", () => {
    const run = runOf([task("a")]);
    expect(run.queue("ghost")).toBe(false);
    expect(run.succeed("a")).toBe(false);
    run.queue("a");
    expect(run.queue("a", "second")).toBe(false);
    expect(run.model.apply({ type: "started", ...run.of("a"), attempt: "other" }, 3)).toBe(false);
    expect(run.model.apply({ type: "started", ...run.of("a"), mapIndex: 0 }, 3)).toBe(false);
    run.begin("a");
    expect(run.begin("a")).toBe(false);
    run.succeed("a");
    expect(run.fail("a")).toBe(false);
    expect(run.lose("a")).toBe(false);
    expect(run.state("a")).toBe("success");
  });
});

describe("retries", () => {
  test("happens while tries are left, each at its time", () => {
    const run = runOf([task("a", [], { retries: 2 })]);
    for (const tryNumber of [1, 2, 3]) {
      expect(run.ready()).toEqual(["a"]);
      expect(run.model.get("a")?.tryNumber).toBe(tryNumber);
      run.queue("a", `attempt-${tryNumber}`);
      run.fail("a", true, 50 * tryNumber);
      if (tryNumber === 3) break;
      expect(run.state("a")).toBe("up_for_retry");
      expect(run.model.nextRetryAt()).toBe(50 * tryNumber);
      expect(run.model.fireRetries(50 * tryNumber - 1)).toBe(0);
      expect(run.model.fireRetries(50 * tryNumber)).toBe(1);
    }
    expect(run.state("a")).toBe("failed");
    expect(run.model.nextRetryAt()).toBeNull();
  });

  test("does not happen if the author disabled it", () => {
    const run = runOf([task("a", [], { retries: 2 })]);
    run.queue("a");
    run.fail("a", false);
    expect(run.state("a")).toBe("failed");
  });

  test("happens earliest first, and not twice for a task retried manually", () => {
    const run = runOf(["a", "b", "c"].map((id) => task(id, [], { retries: 1 })));
    for (const [id, at] of [
      ["a", 30],
      ["b", 10],
      ["c", 20],
    ] as const) {
      run.queue(id);
      run.fail(id, true, at);
    }
    expect(run.model.nextRetryAt()).toBe(10);
    expect(run.model.apply({ type: "retryDue", taskId: "b", mapIndex: -1 }, 6)).toBe(true);
    expect(run.model.nextRetryAt()).toBe(20);
    expect(run.model.fireRetries(100)).toBe(2);
  });

  test("survives a reload while it waits", () => {
    const run = runOf(
      [task("a", [], { retries: 1 })],
      [row("a", { state: "up_for_retry", tryNumber: 1, maxTries: 1, retryAt: 40 })],
    );
    expect(run.model.nextRetryAt()).toBe(40);
    run.model.fireRetries(40);
    expect(run.model.get("a")).toMatchObject({ state: "scheduled", tryNumber: 2, retryAt: null });
  });

  test("waits for an upstream that was cleared in the meantime", () => {
    const waiting = row("b", { state: "up_for_retry", tryNumber: 1, maxTries: 3, retryAt: 40 });
    const run = runOf([task("a"), task("b", ["a"], { retries: 3 })], [row("a"), waiting]);
    run.model.fireRetries(40);
    expect(run.state("b")).toBe("pending");
    run.queue("a");
    run.succeed("a");
    expect(run.model.get("b")).toMatchObject({ state: "scheduled", tryNumber: 2 });
  });
});

describe("a lost attempt", () => {
  test("uses no try, and gets a new attempt", () => {
    const run = runOf([task("a")]);
    run.ready();
    run.queue("a");
    run.begin("a");
    expect(run.lose("a")).toBe(true);
    expect(run.ready()).toEqual(["a"]);
    expect(run.model.get("a")).toMatchObject({
      state: "scheduled",
      tryNumber: 1,
      attempt: null,
      infraLosses: 1,
      startedAt: null,
    });
  });

  test("over budget counts as a failure that may be retried, with a new budget", () => {
    const run = runOf([task("a", [], { retries: 1 })]);
    for (const n of [1, 2]) {
      run.queue("a", `x${n}`);
      run.lose("a");
    }
    expect(run.model.get("a")).toMatchObject({ state: "up_for_retry", retryAt: 60, infraLosses: 2 });
    run.model.fireRetries(60);
    for (const n of [3, 4]) {
      expect(run.state("a")).toBe("scheduled");
      run.queue("a", `x${n}`);
      run.lose("a");
    }
    expect(run.state("a")).toBe("failed");
  });
});

describe("a branch", () => {
  const tasks = [
    task("pick"),
    task("left", ["pick"]),
    task("right", ["pick"]),
    task("join", ["left", "right"], { rule: "noneFailedMinOneSuccess" }),
  ];

  test("skips excluded tasks at once, except those that have started", () => {
    const run = runOf([...tasks, task("free"), task("eager")]);
    run.queue("pick");
    run.queue("eager");
    run.succeed("pick", ["left", "free", "eager"]);
    expect(run.states()).toMatchObject({
      left: "skipped",
      right: "scheduled",
      free: "skipped",
      eager: "queued",
    });
    expect(run.model.get("left")?.reason).toBe("ruled out by pick");
    expect(run.ready()).not.toContain("free");
    run.queue("right");
    run.succeed("right");
    expect(run.state("join")).toBe("scheduled");
  });

  test("skips an excluded task again that alone was cleared, but not if the branch was cleared too", () => {
    const journal = { skips: [{ taskId: "pick", mapIndex: -1, skip: ["left"] }] };
    const done = row("pick", { state: "success", tryNumber: 1 });
    expect(runOf(tasks, [done], journal).states()).toMatchObject({ left: "skipped", right: "scheduled" });
    expect(runOf(tasks, [row("pick")], journal).states()).toMatchObject({
      left: "pending",
      right: "pending",
    });
  });

  test("does not stop, after a reload, a task that was active when the branch ended", () => {
    const run = runOf(
      tasks,
      [row("pick", { state: "success", tryNumber: 1 }), row("left", { state: "scheduled", tryNumber: 1 })],
      { skips: [{ taskId: "pick", mapIndex: -1, skip: ["left"] }] },
    );
    expect(run.state("left")).toBe("scheduled");
    expect(run.ready()).toContain("left");
  });
});

describe("a gate on earlier runs", () => {
  const tasks = [task("a", [], { dependsOnPast: true }), task("b", ["a"])];

  test("holds the task, prevents a deadlock verdict, and is reported once", () => {
    const run = runOf(tasks);
    expect(run.ready()).toEqual([]);
    expect(run.model.drainGated().map((i) => i.node.id)).toEqual(["a"]);
    expect(run.model.drainGated()).toEqual([]);
    expect(run.model.verdict()).toEqual({ state: "running" });
    expect(run.model.apply({ type: "gateOpened", taskId: "a", mapIndex: -1 }, 2)).toBe(true);
    expect(run.model.apply({ type: "gateOpened", taskId: "a", mapIndex: -1 }, 2)).toBe(false);
    expect(run.ready()).toEqual(["a"]);
  });

  test("does not hold back a verdict of the rule", () => {
    const run = runOf([task("up"), task("gated", ["up"], { dependsOnPast: true })]);
    run.queue("up");
    run.fail("up");
    expect(run.state("gated")).toBe("upstream_failed");
    expect(run.model.drainGated()).toEqual([]);
  });
});

describe("deferral and reschedule", () => {
  test("a deferred task resumes in the same try, or is ended by its trigger", () => {
    const run = runOf([task("a")]);
    run.queue("a");
    run.begin("a");
    expect(run.model.apply({ type: "deferred", wait: WAIT, ...run.of("a") }, 5)).toBe(true);
    expect(run.model.verdict()).toEqual({ state: "running" });
    expect(run.model.apply({ type: "resumed", ...run.of("a"), attempt: "stale" }, 6)).toBe(false);
    expect(run.model.apply({ type: "resumed", ...run.of("a") }, 6)).toBe(true);
    expect(run.model.get("a")).toMatchObject({
      state: "scheduled",
      tryNumber: 1,
      attempt: null,
      startedAt: 5,
    });
    run.queue("a", "second");
    run.model.apply({ type: "deferred", wait: WAIT, ...run.of("a") }, 7);
    run.succeed("a");
    expect(run.model.verdict()).toEqual({ state: "success" });
  });

  test("a wait times out at its own timeout or that of the try, whichever comes first", () => {
    const run = runOf([task("a", [], { timeoutMs: 100 })]);
    run.queue("a");
    run.begin("a");
    run.model.apply({ type: "deferred", ...run.of("a"), wait: { ...WAIT, timeoutAt: 50 } }, 10);
    expect(run.model.nextDeadline()).toBe(50);
    expect(run.model.nextOverdue(49)).toEqual([]);
    run.model.apply({ type: "resumed", ...run.of("a") }, 40);
    expect(run.model.nextDeadline()).toBeNull();
    run.queue("a", "second");
    run.model.apply({ type: "deferred", ...run.of("a"), wait: { ...WAIT, timeoutAt: 900 } }, 60);
    expect(run.model.nextDeadline()).toBe(105);
    expect(run.model.nextOverdue(105)).toEqual([run.model.get("a")]);
  });

  test("a try resumes at its last wait after a lost attempt, and restarts after a failure", () => {
    const run = runOf([task("a", [], { retries: 1 })]);
    run.queue("a");
    run.model.apply({ type: "deferred", ...run.of("a"), wait: WAIT }, 5);
    run.model.apply({ type: "resumed", ...run.of("a") }, 6);
    expect(run.model.get("a")).toMatchObject({ resumedAttempt: "a-1", wait: null });
    run.queue("a", "second");
    run.begin("a");
    run.lose("a");
    expect(run.model.get("a")).toMatchObject({ state: "scheduled", resumedAttempt: "a-1", startedAt: 5 });
    run.queue("a", "third");
    run.fail("a");
    run.model.fireRetries(50);
    expect(run.model.get("a")).toMatchObject({ state: "scheduled", resumedAttempt: null, tryNumber: 2 });
  });

  test("a task may begin with a wait, and occupies no slot unless its pool requires it", () => {
    const run = runOf([task("a"), task("b")]);
    const start = (taskId: string, keepsSlot: boolean) =>
      run.model.apply(
        { type: "startedWaiting", ...run.of(taskId), attempt: taskId, wait: { ...WAIT, keepsSlot } },
        5,
      );
    expect([start("a", false), start("b", true)]).toEqual([true, true]);
    expect(start("a", false)).toBe(false);
    const changes = run.model.drainChanges();
    expect(changes.map(({ instance: i }) => [i.node.id, i.state, isOccupying(i)])).toEqual([
      ["a", "deferred", false],
      ["b", "deferred", true],
    ]);
    run.model.apply({ type: "resumed", ...run.of("b") }, 6);
    expect(run.model.drainChanges()[0]).toMatchObject({ from: "deferred", wasOccupying: true });
  });

  test("a rescheduled task resumes in the same try", () => {
    const run = runOf([task("a")]);
    run.queue("a");
    run.model.apply({ type: "rescheduled", ...run.of("a"), retryAt: 90 }, 5);
    expect(run.model.nextRetryAt()).toBe(90);
    run.model.fireRetries(90);
    expect(run.model.get("a")).toMatchObject({ state: "scheduled", tryNumber: 1 });
  });
});

test("an instance cleared while it ran starts over when the old attempt has ended", () => {
  const restarting = row("a", { state: "restarting", tryNumber: 1, maxTries: 1, attempt: "old" });
  const run = runOf([task("a")], [restarting]);
  expect([run.succeed("a"), run.fail("a"), run.lose("a")]).toEqual([false, false, false]);
  expect(run.model.apply({ type: "restarted", ...run.of("a"), attempt: "other" }, 5)).toBe(false);
  expect(run.model.apply({ type: "restarted", ...run.of("a") }, 5)).toBe(true);
  expect(run.model.get("a")).toMatchObject({ state: "scheduled", tryNumber: 2, attempt: null });
});

test.each(["stopped", "restarted"] as const)("an attempt that runs as it should is not %s", (type) => {
  const run = runOf([task("a")]);
  run.queue("a");
  run.begin("a");
  expect(run.model.apply({ type, ...run.of("a") }, 5)).toBe(false);
  expect(run.state("a")).toBe("running");
});

test("a run is deadlocked if no task is active and no rule can be satisfied", () => {
  const run = runOf([task("a"), task("b", ["a"], { rule: "allSkipped" })], [row("a", { state: "removed" })]);
  expect(run.model.verdict()).toEqual({ state: "failed", reason: "all_tasks_deadlocked" });
});

test("a deadlock is detected once no task is held any more", () => {
  const stuck = [task("a"), task("b", ["a"], { rule: "allSkipped" })];
  const run = runOf([...stuck, task("gated", [], { dependsOnPast: true })], [row("a", { state: "removed" })]);
  expect(run.model.verdict()).toEqual({ state: "running" });
  run.model.apply({ type: "gateOpened", taskId: "gated", mapIndex: -1 }, 2);
  run.queue("gated");
  expect(run.model.verdict()).toEqual({ state: "running" });
  run.succeed("gated");
  expect(run.model.verdict()).toEqual({ state: "failed", reason: "all_tasks_deadlocked" });
});

test("a halt ends active tasks, skips the others, and lets teardowns run", () => {
  const retry = row("r", { state: "up_for_retry", tryNumber: 1, maxTries: 1, retryAt: 9 });
  const run = runOf(
    [
      task("a"),
      task("q"),
      task("r", [], { retries: 1 }),
      task("b", ["a"]),
      task("down", ["b", "q"], { role: "teardown", rule: "allDoneSetupSuccess" }),
    ],
    [retry],
  );
  run.queue("q");
  run.queue("a");
  run.begin("a");
  expect(run.model.apply({ type: "halted", at: 8, reason: "cancelled", active: "failed" }, 8)).toBe(true);
  // A task that waits for its next try has failed already, and stays failed.
  expect(run.states()).toEqual({ a: "failed", q: "skipped", r: "failed", b: "skipped", down: "scheduled" });
  expect(run.model.nextRetryAt()).toBeNull();
  expect(run.succeed("a")).toBe(false);
});

describe("changes", () => {
  test("are net: a return to the stored state is no change, and a new attempt is one", () => {
    const run = runOf([task("a")]);
    run.queue("a");
    run.model.apply({ type: "unqueued", ...run.of("a") }, 2);
    run.queue("a", "first");
    const [change, ...others] = run.model.drainChanges();
    expect(others).toEqual([]);
    expect(change).toMatchObject({ from: "pending", fromAttempt: null, fromTry: 0 });
    run.lose("a");
    run.queue("a", "second");
    expect(run.model.drainChanges()).toMatchObject([{ from: "queued", fromAttempt: "first" }]);
    run.model.apply({ type: "unqueued", ...run.of("a") }, 2);
    run.queue("a", "second");
    expect(run.model.drainChanges()).toEqual([]);
  });

  test("are returned again with their previous stored values after giveBack", () => {
    const run = runOf([task("a")]);
    run.queue("a");
    const changes = run.model.drainChanges();
    run.model.restoreChanges(changes);
    run.model.apply({ type: "unqueued", ...run.of("a") }, 2);
    expect(run.model.drainChanges()).toMatchObject([{ from: "pending", fromAttempt: null, fromTry: 0 }]);
    expect(run.state("a")).toBe("scheduled");
  });

  test("include rows for tasks without a row", () => {
    const model = RunModel.load(compileGraph(dagManifest([task("a"), task("b", ["a"])])), []);
    model.start(1);
    expect(
      model.drainChanges().map(({ instance, from }) => [instance.node.id, from, instance.state]),
    ).toEqual([
      ["a", null, "scheduled"],
      ["b", null, "pending"],
    ]);
  });
});

test("an empty DAG succeeds", () => {
  expect(runOf([]).model.verdict()).toEqual({ state: "success" });
});
