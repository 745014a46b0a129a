import { describe, expect, it, test } from "vitest";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";
import { attemptOutcome } from "./attempt-outcome.ts";
import { callbackError, reactionAnswer } from "./callback-outcome.ts";
import type { ChildEnd } from "./child-end.ts";
import { type Interference, overruled } from "./interference.ts";
import type { JobOutcome } from "./protocol.ts";

const OK = { kind: "success", output: 1, skip: [] } as const;
const ERROR = { name: "Error", message: "m", stack: "s", code: null };
const FAILED = { kind: "failed", error: ERROR, retry: false } as const;
const CANCEL = { why: "cancel", reason: "r" } as const;
const GRACEFUL = { ...CANCEL, keepsSuccess: true } as const;
const MOVED = { ...CANCEL, isLost: true } as const;
const TIMEOUT: Interference = { why: "timeout", limitMs: 5 };
const MEMORY: Interference = { why: "memory", limitMb: 1, usedMb: 2 };
const STOP: Interference = { why: "stop", reason: "stopping" };

const LOST = { kind: "lost", reason: "r" };
const TIMED_OUT = { kind: "failed", retry: true, error: { code: "TASK_TIMEOUT" } };

describe("the outcome of an attempt", () => {
  test.each<[string, Partial<ChildEnd>, object]>([
    ["success", reported(OK), OK],
    ["a failure of the task", reported(FAILED), FAILED],
    ["exit 0", exited(0), { kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } }],
    ["exit 1", exited(1), { kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } }],
    ["a foreign SIGKILL", exited(null, "SIGKILL"), { kind: "failed", error: { code: "TASK_PROCESS_DIED" } }],
    ["timeout, success before the abort", { ...reported(OK), interference: TIMEOUT }, OK],
    [
      "timeout, success after the abort",
      { ...reported(OK, { aborted: true }), interference: TIMEOUT },
      TIMED_OUT,
    ],
    ["timeout, failure before the abort", { ...reported(FAILED), interference: TIMEOUT }, FAILED],
    [
      "timeout, failure after the abort",
      { ...reported(FAILED, { aborted: true }), interference: TIMEOUT },
      TIMED_OUT,
    ],
    ["timeout, killed", { ...exited(null, "SIGKILL"), interference: TIMEOUT }, TIMED_OUT],
    ["timeout, exit 0", { ...exited(0), interference: TIMEOUT }, TIMED_OUT],
    [
      "timeout, with a readable duration",
      { ...exited(0), interference: { why: "timeout", limitMs: 5_400_000 } },
      { kind: "failed", error: { message: expect.stringContaining("exceeded its timeout of 1 h 30 m.") } },
    ],
    [
      "memory limit",
      { ...exited(null, "SIGKILL"), interference: MEMORY },
      { kind: "failed", error: { code: "TASK_OUT_OF_MEMORY" } },
    ],
    ["cancel, success", { ...reported(OK), interference: CANCEL }, { kind: "cancelled" }],
    ["cancel, killed", { ...exited(null, "SIGKILL"), interference: CANCEL }, { kind: "cancelled" }],
    ["graceful stop, success", { ...reported(OK, { aborted: true }), interference: GRACEFUL }, OK],
    ["graceful stop, success before the abort", { ...reported(OK), interference: GRACEFUL }, OK],
    ["graceful stop, failure", { ...reported(FAILED), interference: GRACEFUL }, { kind: "cancelled" }],
    [
      "graceful stop, skip",
      { ...reported({ kind: "skipped", reason: null }), interference: GRACEFUL },
      { kind: "cancelled" },
    ],
    ["graceful stop, exit 0", { ...exited(0), interference: GRACEFUL }, { kind: "cancelled" }],
    [
      "executor stop, killed",
      { ...exited(null, "SIGKILL"), interference: STOP },
      { kind: "lost", reason: "stopping" },
    ],
    [
      "executor stop, success after the abort",
      { ...reported(OK, { aborted: true }), interference: MOVED },
      LOST,
    ],
    ["executor stop, killed after the grace", { ...exited(null, "SIGKILL"), interference: MOVED }, LOST],
    ["executor stop, success before the abort", { ...reported(OK), interference: MOVED }, OK],
    ["executor stop, success before the kill", { ...reported(OK), interference: STOP }, OK],
  ])("%s", (_, end, outcome) => {
    expect(attemptOutcome('task "t"', childEnd(end))).toMatchObject(outcome);
  });
});

describe("a graceful stop", () => {
  test.each<[string, Interference | null, boolean]>([
    ["keeps the success of an attempt without earlier interference", null, true],
    ["keeps the success after another graceful stop", GRACEFUL, true],
    ["does not restore the success after a cancel", CANCEL, false],
    ["does not restore the success after a timeout", TIMEOUT, false],
  ])("%s", (_, earlier, kept) => {
    expect(overruled(earlier, GRACEFUL)).toMatchObject({ why: "cancel", keepsSuccess: kept });
    expect(overruled(earlier, CANCEL)).not.toMatchObject({ keepsSuccess: true });
    // An executor that stops does not replace what was requested before.
    expect(overruled(earlier, MOVED)).toEqual(earlier ?? MOVED);
  });
});

describe("the answer of an onSignal", () => {
  test.each<[string, Partial<ChildEnd>, object]>([
    ["an action", reported({ ok: true, action: "STOP" }), { action: "STOP", error: null }],
    [
      "an action after the timeout",
      { ...reported({ ok: true, action: "STOP" }, { aborted: true }), interference: TIMEOUT },
      { action: "STOP", error: null },
    ],
    ["an error", reported({ ok: false, error: ERROR }), { action: null, error: ERROR }],
    ["no action", reported({ ok: true }), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
    ["the outcome of a task", reported(OK), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
    ["exit 0", exited(0), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
    ["exit 1", exited(1), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
    ["executor stop", { interference: STOP }, { action: null, error: { code: "EXECUTOR_STOPPED" } }],
  ])("%s", (_, end, answer) => {
    expect(reactionAnswer("onSignal", childEnd(end))).toMatchObject(answer);
  });
});

it.each([0, 1])("fails a callback whose process exits with code %i", (code) => {
  expect(callbackError("onSuccess", childEnd(exited(code)))).toMatchObject({ code: "TASK_PROCESS_DIED" });
});

it("names the engine as the killer of a process that broke the protocol", async () => {
  await using under = await ExecutorUnderTest.start();
  const { id: attempt } = under.submit("babble", { conf: { text: "not a message\n" } });
  const ended = await under.ended(attempt);
  expect(ended).toMatchObject({ kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } });
  const message = ended.kind === "failed" ? ended.error.message : "";
  expect(message).toMatch(
    /^The engine killed the process of task "babble": it sent something that is not JSON/,
  );
  expect(message).not.toContain("The engine did not kill it");
  expect(JSON.stringify(await under.log(attempt))).toContain("killing it");
  const end = childEnd({ ...exited(null, "SIGKILL"), interference: { why: "protocol", what: "sent x" } });
  expect(callbackError("The callback", end)?.message).toContain("The engine killed");
});

function childEnd(end: Partial<ChildEnd>): ChildEnd {
  return { interference: null, report: null, exit: null, errorTail: [], ...end };
}

function reported(outcome: JobOutcome, more: object = {}): Partial<ChildEnd> {
  const message = { k: "ended", id: "a", outcome, aborted: false } as const;
  return { report: { ...message, logged: 0, dropped: 0, unclean: null, ...more } };
}

function exited(code: number | null, signal: string | null = null): Partial<ChildEnd> {
  return { exit: { code, signal } };
}
