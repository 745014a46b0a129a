/** Signals for `onSignal` handlers: each gets exactly one answer or error. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ExecutorUnderTest, SECRETS } from "../../test/execute/executor-under-test.ts";

/** Longer than any test takes. */
const LONG_MS = 600_000;

test("the answer is reported, and the output of the handler is in the log", async () => {
  await using under = await ExecutorUnderTest.start();
  const run = { ...under.assignment("noop").run, runId: "order-7" };
  const { id: reactionId } = under.submitReaction("say", {
    ...{ taskId: "serve", tryNumber: 3, run, conf: { order: 7 } },
    signal: { namespace: "shop", key: "say", value: "RESTART", version: 12 },
  });
  expect(await under.answered(reactionId)).toEqual({
    type: "reactionEnded",
    reactionId,
    action: "RESTART",
    error: null,
  });
  const lines = await under.log(reactionId);
  expect(lines.map(({ source, message }) => `${source}: ${message}`)).toEqual([
    'engine: Signal "say", version 12, for task "serve".',
    "stdout: heard shop say 12",
    "task: facts",
    "engine: Answered RESTART.",
  ]);
  const facts = { conf: { order: 7 }, run: "order-7", taskId: "serve", tryNumber: 3 };
  expect(lines[2]).toMatchObject({ fields: facts });
});

test.each(["NONE", "START", "RESTART", "STOP"])("%s without output leaves no log", async (value) => {
  await using under = await ExecutorUnderTest.start();
  const signal = { namespace: "default", key: "silent", value, version: 1 };
  const { id: reactionId, logKey } = under.submitReaction("silent", { signal });
  expect(await under.answered(reactionId)).toMatchObject({ action: value, error: null });
  await expect(readFile(under.logPath(logKey))).rejects.toThrow("ENOENT");
});

test("a program without signal support answers NONE", async () => {
  await using under = await ExecutorUnderTest.start();
  const run = { ...under.assignment("noop").run, dagId: "old" };
  const { id: reactionId } = under.submitReaction("say", { run });
  expect(await under.answered(reactionId)).toMatchObject({ action: "NONE", error: null });
});

test.each([
  ["fail", null, { code: "TW_SIGNAL_ACTION", message: "cannot say" }],
  ["reject", null, { message: "a promise broken" }],
  ["nothing", null, { message: expect.any(String) }],
  ["vague", null, { code: "TASK_PROCESS_DIED" }],
  ["silent", "PERHAPS", { code: "TASK_PROCESS_DIED" }],
  ["neverSettles", null, { code: "TASK_NEVER_SETTLED" }],
  ["exit", 0, { code: "TASK_PROCESS_DIED", message: expect.stringContaining("exit code 0") }],
  ["exit", 3, { code: "TASK_PROCESS_DIED", message: expect.stringContaining("exit code 3") }],
  ["kill", null, { code: "TASK_PROCESS_DIED", message: expect.stringContaining("SIGKILL") }],
  ["leak", null, { message: "not ***" }],
])("a reaction without an answer is an error: %s %j", async (key, value, error) => {
  await using under = await ExecutorUnderTest.start();
  const signal = { namespace: "default", key, value, version: 1 };
  const { id: reactionId, logKey } = under.submitReaction(key, { signal });
  expect(await under.answered(reactionId)).toMatchObject({ action: null, error });
  const log = await readFile(under.logPath(logKey), "utf8");
  expect(log).toContain("No answer: ");
  expect(log).not.toContain(SECRETS.password.slice(0, 4));
  // The next reaction is not affected.
  const next = under.submitReaction("silent", { signal: { ...signal, key: "silent", value: "STOP" } });
  expect(await under.answered(next.id)).toMatchObject({ action: "STOP" });
});

test("a reaction that hangs is aborted, then killed", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: 50 });
  const { id: reactionId } = under.submitReaction("hang", { timeoutMs: 100 });
  expect(await under.answered(reactionId)).toMatchObject({ action: null, error: { code: "TASK_TIMEOUT" } });
  expect(JSON.stringify(await under.log(reactionId))).toContain("did not stop within 50 ms");
});

test("an answer after the abort counts", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
  const { id: reactionId } = under.submitReaction("late", { timeoutMs: 100 });
  expect(await under.answered(reactionId)).toMatchObject({ action: "STOP", error: null });
});

test("reactions run one at a time and do not wait for tasks that hold every process", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const gate = join(under.dir, "gate");
  const running = under.submit("hold", { conf: { gate } });
  await under.started(running.id);
  const file = join(under.dir, "order");
  const waiting = under.submit("mark", { conf: { file, name: "the task" } });
  const names = ["one", "two", "three"];
  const asked = names.map((name) => under.submitReaction("mark", { conf: { file, name } }));
  await Promise.all(asked.map(({ id }) => under.answered(id)));
  expect(await readFile(file, "utf8")).toBe("one\ntwo\nthree\n");
  await writeFile(gate, "");
  await under.ended(waiting.id);
  expect(await readFile(file, "utf8")).toBe("one\ntwo\nthree\nthe task\n");
});

test("when the executor stops, running, waiting and late reactions are each answered once", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const file = join(under.dir, "pid");
  const running = under.submitReaction("hang", { conf: { file } });
  while ((await readFile(file, "utf8").catch(() => "")) === "") await sleep(5);
  const waiting = under.submitReaction("hang");
  await under.executor.stop(10);
  const late = under.submitReaction("hang");
  const all = [running, waiting, late];
  for (const { id } of all) {
    expect(await under.answered(id)).toMatchObject({
      action: null,
      error: { code: "EXECUTOR_STOPPED" },
    });
  }
  expect(under.events.filter(({ type }) => type === "reactionEnded")).toHaveLength(all.length);
});

test("an answer frees a slot for tasks", async () => {
  await using under = await ExecutorUnderTest.start();
  const signal = { namespace: "default", key: "silent", value: "NONE", version: 1 };
  await under.answered(under.submitReaction("silent", { signal }).id);
  await under.event(({ type }) => type === "capacity");
});
