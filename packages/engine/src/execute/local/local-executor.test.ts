import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";

describe("endings", () => {
  test("the outcome of a task is reported, with all its inputs in place", async () => {
    await using under = await ExecutorUnderTest.start();
    const inputs = { rows: { state: "success", value: [1, 2] } } as const;
    expect(await under.output("echo", { inputs, conf: { region: "eu" }, tryNumber: 3 })).toEqual({
      inputs,
      conf: { region: "eu" },
      run: "manual__1",
      tryNumber: 3,
    });
    expect(await under.run("noop")).toEqual({ kind: "success", skip: [] });
    expect(await under.run("skip")).toEqual({ kind: "skipped", reason: "nothing to do" });
    const failed = await under.run("fail");
    expect(failed).toMatchObject({ kind: "failed", retry: false });
    expect(failed).toMatchObject({ error: { message: "it went wrong", code: null } });
  });

  test("user code reads outputs and variables, and gets no details of a database error", async () => {
    await using under = await ExecutorUnderTest.start();
    const answers = { output: { dagRunId: 7, taskId: "upstream" }, variable: "a value", missing: true };
    expect(await under.output("ask")).toEqual(answers);
    const message = await under.output<string>("askBroken");
    expect(message).toContain('variable "broken"');
    expect(message).not.toContain("postgres");
  });

  test("a task that exits its process has failed, with any exit code", async () => {
    await using under = await ExecutorUnderTest.start();
    expect(await under.run("exit", { conf: { code: 0 } })).toMatchObject({
      kind: "failed",
      retry: true,
      error: {
        code: "TASK_PROCESS_DIED",
        message: expect.stringMatching(/exit code 0 before the task did\. Return from the task instead/),
      },
    });
    const died = await under.run("exit", { conf: { code: 3 } });
    expect(died).toMatchObject({ kind: "failed", retry: true });
    expect(died).toMatchObject({ error: { code: "TASK_PROCESS_DIED" } });
    expect(JSON.stringify(died)).toContain("exit code 3");
    expect(JSON.stringify(died)).toContain("last words");
  });

  test("the error of a process that died by a signal has the signal and the last lines on stderr", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt } = under.submit("signal", { conf: { signal: "SIGSEGV" } });
    const died = await under.ended(attempt);
    expect(died).toMatchObject({ kind: "failed", retry: true, error: { code: "TASK_PROCESS_DIED" } });
    expect(JSON.stringify(died)).toContain("signal SIGSEGV");
    expect(JSON.stringify(died)).toContain("raw last words");
    expect((await under.log(attempt)).at(-1)).toMatchObject({ source: "engine", level: "error" });
  });

  test.each([
    ["throwLater", "thrown in a timer"],
    ["rejectUnseen", "unhandled rejection"],
  ])("an error outside the promise of the task fails the task: %s", async (taskId, message) => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const first = under.submit(taskId);
    expect(await under.ended(first.id)).toMatchObject({
      kind: "failed",
      retry: true,
      error: { message },
    });
    const { pid } = await under.output<{ pid: number }>("pid");
    expect(pid).not.toBe(await under.started(first.id));
  });

  test("a task whose promise can never settle fails, unless it waits for its abort", async () => {
    await using under = await ExecutorUnderTest.start();
    expect(await under.run("neverSettles")).toMatchObject({
      kind: "failed",
      error: { code: "TASK_NEVER_SETTLED" },
    });
    for (const taskId of ["waitForAbort", "waitForCombined"]) {
      const waiting = under.submit(taskId);
      await under.output("pid");
      expect(under.events.some((event) => event.type === "ended" && event.attempt === waiting.id)).toBe(
        false,
      );
      under.executor.cancel(waiting.id, "enough");
      expect(await under.ended(waiting.id)).toEqual({ kind: "cancelled" });
    }
  });

  test("outputs that are too large or not JSON fail without a retry", async () => {
    await using under = await ExecutorUnderTest.start();
    expect(await under.run("big")).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code: "TASK_OUTPUT_TOO_LARGE" },
    });
    expect(await under.run("notJson")).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code: "TASK_OUTPUT_NOT_JSON" },
    });
  });

  test("a bundle that is missing or lacks the DAG fails only its task", async () => {
    await using under = await ExecutorUnderTest.start();
    const run = { ...under.assignment("noop").run, dagId: "other" };
    expect(await under.run("noop", { run })).toMatchObject({
      kind: "failed",
      error: { code: "BUNDLE_WITHOUT_DAG" },
    });
    const bundleHash = join(under.dir, "missing.mjs");
    expect(await under.run("noop", { bundleHash })).toMatchObject({
      kind: "failed",
      error: { code: "ERR_MODULE_NOT_FOUND" },
    });
    expect(await under.run("noop")).toMatchObject({ kind: "success" });
  });
});

describe("limits", () => {
  test("timeout: a task that ends after the abort has failed", async () => {
    await using under = await ExecutorUnderTest.start({ graceMs: 20_000 });
    const { id: attempt } = under.submit("polite", { timeoutMs: 50 });
    expect(await under.ended(attempt)).toMatchObject({
      kind: "failed",
      retry: true,
      error: { code: "TASK_TIMEOUT" },
    });
    expect(JSON.stringify(await under.log(attempt))).toContain("asked to stop: TimeoutError");
  });

  test.each(["deaf", "loop"])("timeout: a task that ignores the abort is killed: %s", async (taskId) => {
    await using under = await ExecutorUnderTest.start({ graceMs: 50 });
    const { id: attempt } = under.submit(taskId, { timeoutMs: 200, conf: { file: join(under.dir, "pids") } });
    const outcome = await under.ended(attempt);
    expect(outcome).toMatchObject({
      kind: "failed",
      retry: true,
      error: { code: "TASK_TIMEOUT" },
    });
    const log = JSON.stringify(await under.log(attempt));
    expect(log).toContain("did not stop within 50 ms");
    expect(await isAlive(await under.started(attempt))).toBe(false);
  });

  test("a timeout longer than a timer can hold does not fire at once", async () => {
    await using under = await ExecutorUnderTest.start();
    expect(await under.run("pid", { timeoutMs: 2 ** 40 })).toMatchObject({ kind: "success" });
  });

  test("memory: a process over the limit is killed", async () => {
    await using under = await ExecutorUnderTest.start();
    const outcome = await under.run("memory", { memoryMb: 200 });
    expect(outcome).toMatchObject({
      kind: "failed",
      retry: true,
      error: { code: "TASK_OUT_OF_MEMORY" },
    });
  });

  test("memory: a full JavaScript heap is recognised", async () => {
    await using under = await ExecutorUnderTest.start();
    const outcome = await under.run("heap", { memoryMb: 100, isolation: "fresh" });
    expect(outcome).toMatchObject({ kind: "failed", retry: true, error: { code: "TASK_OUT_OF_MEMORY" } });
  });
});

describe("cancel", () => {
  test("a running task is aborted, then killed, and is cancelled with any outcome", async () => {
    await using under = await ExecutorUnderTest.start({ graceMs: 50 });
    for (const taskId of ["polite", "deaf"]) {
      const { id: attempt } = under.submit(taskId);
      await under.started(attempt);
      under.executor.cancel(attempt, "the run was cleared");
      expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
    }
  });

  test("a waiting task never starts", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const gate = join(under.dir, "gate");
    const first = under.submit("hold", { conf: { gate } });
    await under.started(first.id);
    const second = under.submit("pid");
    under.executor.cancel(second.id, "not wanted");
    expect(await under.ended(second.id)).toEqual({ kind: "cancelled" });
    await writeFile(gate, "");
    await under.ended(first.id);
    expect(under.events.some((event) => event.type === "started" && event.attempt === second.id)).toBe(false);
  });

  test("a cancel of an unknown attempt is ignored", async () => {
    await using under = await ExecutorUnderTest.start();
    const { id: attempt } = under.submit("noop");
    under.executor.cancel("unknown", "?");
    expect(await under.ended(attempt)).toMatchObject({ kind: "success" });
  });
});

describe("callbacks", () => {
  test("run in a child, and their success or failure is reported", async () => {
    await using under = await ExecutorUnderTest.start({ callbackTimeoutMs: 300, graceMs: 20 });
    const file = join(under.dir, "called");
    const error = { name: "Error", message: "m", stack: null, code: "TASK_TIMEOUT" };
    under.executor.submit([under.callback({ id: "good", conf: { file }, error })]);
    under.executor.submit([under.callback({ id: "bad", event: "retry" })]);
    under.executor.submit([under.callback({ id: "hung", conf: { hang: true } })]);
    const ended = (id: string) =>
      under.event((event) => event.type === "callbackEnded" && event.callbackId === id);
    expect(await ended("good")).toMatchObject({ error: null });
    expect(await readFile(file, "utf8")).toBe("failure noop TASK_TIMEOUT\n");
    expect(await ended("bad")).toMatchObject({ error: { message: "callback failed" } });
    expect(await ended("hung")).toMatchObject({ error: { code: "TASK_TIMEOUT" } });
  });
});

describe("stop", () => {
  test("drains: running attempts may end, waiting ones are lost; a stop aborts the rest, then kills it", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 2 });
    const gate = join(under.dir, "gate");
    const quick = under.submit("hold", { conf: { gate } });
    const endless = under.submit("deaf");
    const waiting = under.submit("noop");
    await Promise.all([under.started(quick.id), under.started(endless.id)]);
    under.executor.drain();
    expect(await under.ended(waiting.id)).toMatchObject({ kind: "lost" });
    expect(await under.ended(under.submit("noop").id)).toMatchObject({ kind: "lost" });
    expect(under.executor.freeSlots()).toBe(0);
    expect(under.executor.slots()).toEqual({ slots: 2, free: 0 });
    const callback = under.callback({ id: "drained", conf: { file: join(under.dir, "called") } });
    await writeFile(gate, "");
    expect(await under.ended(quick.id)).toMatchObject({ kind: "success" });
    under.executor.submit([callback]);
    expect(await under.event((event) => event.type === "callbackEnded")).toMatchObject({ error: null });
    await under.executor.stop(100);
    expect(await under.ended(endless.id)).toMatchObject({ kind: "lost" });
    const log = JSON.stringify(await under.log(endless.id));
    expect(log).toContain("Asked to stop: the executor is stopping.");
    expect(log).toContain("did not stop within 100 ms");
    expect(await isAlive(await under.started(endless.id))).toBe(false);
    const late = under.submit("noop");
    expect(await under.ended(late.id)).toMatchObject({ kind: "lost" });
  });

  test("aborts streaming tasks at once and reports them as lost; their slots are not reused", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1, prefetch: 4 });
    expect(await under.run("noop")).toMatchObject({ kind: "success" });
    const stream = under.submit("waitForAbort", { streamGraceMs: 60_000 });
    await under.started(stream.id);
    expect(under.executor.freeSlots()).toBe(0);
    // Longer than this test takes.
    await under.executor.stop(3_600_000);
    expect(await under.ended(stream.id)).toEqual({ kind: "lost", reason: "the executor is stopping" });
    expect(JSON.stringify(await under.log(stream.id))).toContain("Asked to stop: the executor is stopping");
  });
});

test("streaming tasks use streaming slots first, then ordinary ones", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1, streamingSlots: 1, prefetch: 4 });
  const stream = () => under.submit("waitForAbort", { streamGraceMs: 60_000 });
  const first = stream();
  await under.started(first.id);
  expect(under.executor.slots()).toEqual({ slots: 1, free: 1 });
  expect(await under.run("noop")).toMatchObject({ kind: "success" });
  const second = stream();
  await under.started(second.id);
  expect(under.executor.slots()).toEqual({ slots: 1, free: 0 });
  // The ordinary slot is in use: a task that waits for it neither gets the process of a stream nor delays the next stream.
  const waiting = under.submit("noop");
  under.executor.cancel(first.id, "enough");
  await under.ended(first.id);
  expect(await under.ended(waiting.id)).toMatchObject({ kind: "success" });
  const gate = join(under.dir, "gate");
  const holder = under.submit("hold", { conf: { gate } });
  await under.started(holder.id);
  const behind = under.submit("noop");
  under.executor.cancel(second.id, "enough");
  await under.ended(second.id);
  const third = stream();
  await under.started(third.id);
  expect(under.events.some((event) => "attempt" in event && event.attempt === behind.id)).toBe(false);
  await writeFile(gate, "");
  expect(await under.ended(behind.id)).toMatchObject({ kind: "success" });
});

test("every assignment gets one `started`, then one `ended`", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 3, recycleAfter: 20 });
  const names = ["pid", "skip", "fail", "exit", "leaveTimer", "rejectUnseen"];
  const all = Array.from({ length: 60 }, (_, at) =>
    under.assignment(names[at % names.length]!, { conf: { code: at % 2 } }),
  );
  under.executor.submit(all);
  under.executor.submit(all.slice(0, 1));
  await Promise.all(all.map(({ id: attempt }) => under.ended(attempt)));
  for (const { id: attempt } of all) {
    const told = under.events.filter((event) => "attempt" in event && event.attempt === attempt);
    expect(told.map((event) => event.type)).toEqual(["started", "ended"]);
  }
});

test("every attempt is reported exactly once under cancels, crashes, fresh tasks and a stop", async () => {
  const under = await ExecutorUnderTest.start({ parallelism: 3, recycleAfter: 10, graceMs: 10 });
  const random = seeded(20260101);
  const names = [
    "pid",
    "noop",
    "noop",
    "talk",
    "exit",
    "throwLater",
    "deaf",
    "polite",
    "neverSettles",
    "flood",
  ];
  const all = Array.from({ length: 80 }, () =>
    under.assignment(names[random(names.length)]!, {
      conf: { code: random(2), kilobytes: 300 },
      isolation: random(10) === 0 ? "fresh" : "warm",
      timeoutMs: random(3) === 0 ? 20 + random(200) : 1_000,
    }),
  );
  for (let at = 0; at < all.length; at += 10) {
    under.executor.submit(all.slice(at, at + 10));
    await under.ended(all[at]!.id);
    for (let n = 0; n < 3; n++) under.executor.cancel(all[random(at + 10)]!.id, "at random");
  }
  await under.executor.stop(50);
  const kinds = new Set<string>();
  for (const { id: attempt } of all) {
    const told = under.events.filter((event) => event.type === "ended" && event.attempt === attempt);
    expect(told).toHaveLength(1);
    kinds.add((await under.ended(attempt)).kind);
  }
  expect([...kinds]).toEqual(expect.arrayContaining(["success", "failed", "cancelled"]));
  for (const event of under.events)
    if (event.type === "started") expect(await isAlive(event.pid)).toBe(false);
  await under[Symbol.asyncDispose]();
});

function seeded(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
}

async function isAlive(pid: number): Promise<boolean> {
  return await access(`/proc/${pid}`).then(
    () => true,
    () => false,
  );
}
