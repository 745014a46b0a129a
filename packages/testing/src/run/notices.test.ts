import { dag, email, type Json, sendSignal, signal, start, TimeDeltaTrigger, webhook } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { runDag } from "../run-dag.ts";

const fail = (why: string) => () => {
  throw new Error(why);
};
const pager = webhook("pager");

test("records notices with their content without sending them", async () => {
  const defined = dag(
    "x",
    { onFailure: [pager, email({ to: "ops@example.com", connection: "mail" })], onSuccess: pager },
    (d) => {
      d.task("fine", { onSuccess: pager, onFailure: pager }, () => 1);
      d.task("broken", { retries: 1, onRetry: pager, onFailure: pager }, fail("no disk"));
      d.group("g", { retries: 1, onRetry: pager, onFailure: pager }, (g) => void g.task("t", fail("no net")));
    },
  );
  const { notices, runId } = await runDag(defined, { now: "2026-01-31T00:00:00Z", concurrency: 1 });
  expect(notices.map(({ action, event, tryNumber }) => [event, tryNumber, action.kind])).toEqual([
    ["task.succeeded", 1, "webhook"],
    ["task.retrying", 1, "webhook"],
    ["group.retrying", 1, "webhook"],
    ["group.failed", 2, "webhook"],
    ["task.failed", 2, "webhook"],
    ["run.failed", 1, "webhook"],
    ["run.failed", 1, "email"],
  ]);
  expect(notices[4]).toEqual({
    event: "task.failed",
    dagId: "x",
    runId,
    taskId: "broken",
    groupId: null,
    mapIndex: -1,
    tryNumber: 2,
    state: "failed",
    reason: "Error: no disk",
    logicalDate: expect.any(String),
    startedAt: "2026-01-31T00:05:00.000Z",
    endedAt: "2026-01-31T00:05:00.000Z",
    nextTryAt: null,
    cause: null,
    action: { kind: "webhook", to: "pager" },
  });
  expect(notices[3]).toMatchObject({ groupId: "g", cause: { taskId: "g.t", reason: "Error: no net" } });
  expect(notices[5]).toMatchObject({ reason: "task_failure", cause: { taskId: "broken", tryNumber: 2 } });
});

test("delivers the signal of a notice to the run", async () => {
  const failed = signal("failed");
  const defined = dag("x", { endWhen: "batchDone" }, (d) => {
    d.task("broken", { onFailure: sendSignal(failed) }, fail("no disk"));
    d.task("clean", { on: start(failed) }, (_, ctx) => ctx.startSignals.map(({ value }) => value as Json));
    d.task("slow", { retries: 1, retryDelay: "1m" }, (_, ctx) => {
      if (ctx.tryNumber === 1) throw new Error("once more");
    });
  });
  const run = await runDag(defined);
  expect(run.task("clean").output).toMatchObject([{ event: "task.failed", taskId: "broken", cause: null }]);
});

test("sends notices about a run that times out and about its tasks", async () => {
  const defined = dag("x", { runTimeout: "1m", onFailure: pager }, (d) => {
    d.task("waits", { retries: 3, retryDelay: "1h", onFailure: pager }, fail("not yet"));
    d.task("hangs", { onFailure: pager }, (_, ctx) =>
      ctx.until("nap", new TimeDeltaTrigger({ delta: "1h" })),
    );
  });
  const { notices } = await runDag(defined);
  const hangs = notices.find(({ taskId }) => taskId === "hangs");
  expect(hangs).toMatchObject({ event: "task.failed", reason: "TASK_RUN_TIMED_OUT: the run timed out" });
  expect(notices.at(-1)).toMatchObject({ event: "run.failed", reason: "timed_out" });
});
