import { expect, test } from "vitest";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";
import {
  attemptOutcome,
  callbackError,
  type Ending,
  type Interference,
  overruled,
  reactionAnswer,
} from "./ending.ts";

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

test.each<[string, Partial<Ending>, object]>([
  ["success", reported(OK), OK],
  ["its own failure", reported(FAILED), FAILED],
  ["exit 0", exited(0), { kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } }],
  ["exit 1", exited(1), { kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } }],
  ["killed by others", exited(null, "SIGKILL"), { kind: "failed", error: { code: "TASK_PROCESS_DIED" } }],
  ["success just before the abort", { ...reported(OK), interference: TIMEOUT }, OK],
  ["success in spite of the abort", { ...reported(OK, { aborted: true }), interference: TIMEOUT }, TIMED_OUT],
  ["failure just before the abort", { ...reported(FAILED), interference: TIMEOUT }, FAILED],
  [
    "failure because of the abort",
    { ...reported(FAILED, { aborted: true }), interference: TIMEOUT },
    TIMED_OUT,
  ],
  ["killed for its time", { ...exited(null, "SIGKILL"), interference: TIMEOUT }, TIMED_OUT],
  ["exit 0 after the timeout", { ...exited(0), interference: TIMEOUT }, TIMED_OUT],
  [
    "a timeout, told as people write it",
    { ...exited(0), interference: { why: "timeout", limitMs: 5_400_000 } },
    { kind: "failed", error: { message: expect.stringContaining("exceeded its timeout of 1 h 30 m.") } },
  ],
  [
    "memory",
    { ...exited(null, "SIGKILL"), interference: MEMORY },
    { kind: "failed", error: { code: "TASK_OUT_OF_MEMORY" } },
  ],
  ["cancelled, though it succeeded", { ...reported(OK), interference: CANCEL }, { kind: "cancelled" }],
  ["cancelled and killed", { ...exited(null, "SIGKILL"), interference: CANCEL }, { kind: "cancelled" }],
  ["asked to stop, and it succeeded", { ...reported(OK, { aborted: true }), interference: GRACEFUL }, OK],
  ["asked to stop, but it was through", { ...reported(OK), interference: GRACEFUL }, OK],
  ["asked to stop, and it failed", { ...reported(FAILED), interference: GRACEFUL }, { kind: "cancelled" }],
  [
    "asked to stop, and it skipped itself",
    { ...reported({ kind: "skipped", reason: null }), interference: GRACEFUL },
    { kind: "cancelled" },
  ],
  ["asked to stop, and exit 0", { ...exited(0), interference: GRACEFUL }, { kind: "cancelled" }],
  ["stopped", { ...exited(null, "SIGKILL"), interference: STOP }, { kind: "lost", reason: "stopping" }],
  ["a stream, asked by who stops", { ...reported(OK, { aborted: true }), interference: MOVED }, LOST],
  ["a stream that had to be killed", { ...exited(null, "SIGKILL"), interference: MOVED }, LOST],
  ["a stream that was through", { ...reported(OK), interference: MOVED }, OK],
  ["stopped, but it was through", { ...reported(OK), interference: STOP }, OK],
])("%s", (_, ending, outcome) => {
  const whole: Ending = { interference: null, report: null, exit: null, errorTail: [], ...ending };
  expect(attemptOutcome('task "t"', whole)).toMatchObject(outcome);
});

test.each<[string, Interference | null, boolean]>([
  ["the first to interfere", null, true],
  ["after another who keeps it", GRACEFUL, true],
  ["after one who does not", CANCEL, false],
  ["after its time was over", TIMEOUT, false],
])("whether its success is kept: %s", (_, earlier, kept) => {
  expect(overruled(earlier, GRACEFUL)).toMatchObject({ why: "cancel", keepsSuccess: kept });
  expect(overruled(earlier, CANCEL)).not.toMatchObject({ keepsSuccess: true });
  // An executor that stops does not change what the attempt was asked before.
  expect(overruled(earlier, MOVED)).toEqual(earlier ?? MOVED);
});

test.each<[string, Partial<Ending>, object]>([
  ["an answer", reported({ ok: true, action: "STOP" }), { action: "STOP", error: null }],
  [
    "an answer after its time",
    { ...reported({ ok: true, action: "STOP" }, { aborted: true }), interference: TIMEOUT },
    { action: "STOP", error: null },
  ],
  ["an error", reported({ ok: false, error: ERROR }), { action: null, error: ERROR }],
  ["none", reported({ ok: true }), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
  ["that of a task", reported(OK), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
  ["exit 0", exited(0), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
  ["exit 1", exited(1), { action: null, error: { code: "TASK_PROCESS_DIED" } }],
  ["stopped", { interference: STOP }, { action: null, error: { code: "EXECUTOR_STOPPED" } }],
])("what an onSignal answers: %s", (_, ending, answer) => {
  const whole: Ending = { interference: null, report: null, exit: null, errorTail: [], ...ending };
  expect(reactionAnswer("onSignal", whole)).toMatchObject(answer);
});

test("a callback that ends its process has failed, whatever the exit code", () => {
  for (const code of [0, 1]) {
    const gone: Ending = { interference: null, report: null, errorTail: [], exit: { code, signal: null } };
    expect(callbackError("onSuccess", gone)).toMatchObject({ code: "TASK_PROCESS_DIED" });
  }
});

test("what the engine killed for breaking the protocol is not put down to the system", async () => {
  await using under = await ExecutorUnderTest.start();
  const { attempt } = under.submit("babble", { conf: { text: "not a message\n" } });
  const ended = await under.ended(attempt);
  expect(ended).toMatchObject({ kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } });
  const message = ended.kind === "failed" ? ended.error.message : "";
  expect(message).toMatch(
    /^The engine killed the process of task "babble": it sent something that is not JSON/,
  );
  expect(message).not.toContain("Not by the engine");
  expect(JSON.stringify(await under.log(attempt))).toContain("killing it");
  const ending: Ending = {
    interference: { why: "protocol", what: "sent x" },
    report: null,
    exit: { code: null, signal: "SIGKILL" },
    errorTail: [],
  };
  expect(callbackError("The callback", ending)?.message).toContain("The engine killed");
});

function reported(outcome: NonNullable<Ending["report"]>["outcome"], more: object = {}): Partial<Ending> {
  return { report: { outcome, aborted: false, dropped: 0, ...more } };
}

function exited(code: number | null, signal: string | null = null): Partial<Ending> {
  return { exit: { code, signal } };
}
