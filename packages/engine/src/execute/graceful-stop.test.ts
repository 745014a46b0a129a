/** Cancelled attempts, each with its own terms. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";

/** Longer than any test takes. */
const LONG_MS = 600_000;

test("a streaming task that returns after a graceful stop has succeeded", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "stream");
  // The task has logged nothing so far.
  await sleep(30);
  const stoppedAt = Date.now();
  under.executor.cancel(attempt, "stopped by site.closed", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({
    kind: "success",
    output: { streamed: true },
    skip: ["after"],
    signals: [{ namespace: "default", key: "stream.rows", value: expect.any(Number) }],
  });
  const lines = await under.log(attempt);
  // The first line has the time of the start, although nothing was written before the stop. The stop is no warning.
  expect(lines[0]?.message).toMatch(/^Try 1 of task/);
  expect(Date.parse(lines[0]!.t)).toBeLessThan(stoppedAt);
  const log = JSON.stringify(lines);
  const asked = lines.find(({ message }) => message === "Asked to stop: stopped by site.closed.");
  expect(asked?.level).toBe("info");
  expect(Date.parse(asked!.t)).toBeGreaterThanOrEqual(stoppedAt);
  expect(log).toContain("stopped: stopped by site.closed");
  expect(log).toContain("Succeeded.");
});

test("a grace period of a cancel may be longer than the executor's", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: 1 });
  const gate = join(under.dir, "gate");
  const attempt = await underWay(under, "stream", { gate });
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await sleep(100);
  await writeFile(gate, "");
  expect(await under.ended(attempt)).toMatchObject({ kind: "success", output: { streamed: true } });
});

test("a grace period of a cancel may be shorter than the executor's, and ends with a kill of the group", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
  const attempt = await underWay(under, "deafWithChild");
  const child = Number(await readFile(join(under.dir, attempt), "utf8"));
  under.executor.cancel(attempt, "enough", { graceMs: 40, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
  expect(JSON.stringify(await under.log(attempt))).toContain("did not stop within 40 ms");
  await gone(await under.started(attempt));
  await gone(child);
});

test.each(["fail", "skip", "exit", "throwLater"])(
  "a graceful stop that does not end in success is cancelled: %s",
  async (deed) => {
    await using under = await ExecutorUnderTest.start();
    const attempt = await underWay(under, "whenAsked", { deed, code: 0 });
    under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
    expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
  },
);

test.each([undefined, {}, { keepsSuccess: false }])(
  "a cancel that does not keep the success discards it: %j",
  async (how) => {
    await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
    const attempt = await underWay(under, "stream");
    under.executor.cancel(attempt, "cleared", how);
    expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
    expect(JSON.stringify(await under.log(attempt))).toContain("Cancelled: cleared.");
  },
);

test("a later cancel without terms replaces the terms of the first", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
  const gate = join(under.dir, "gate");
  const attempt = await underWay(under, "stream", { gate });
  under.executor.cancel(attempt, "stopped", { graceMs: LONG_MS, keepsSuccess: true });
  under.executor.cancel(attempt, "cleared");
  // A third cancel does not restore the success.
  under.executor.cancel(attempt, "stopped once more", { graceMs: LONG_MS, keepsSuccess: true });
  await writeFile(gate, "");
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
});

test("a second cancel can shorten the grace period, not extend it", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 2, graceMs: LONG_MS });
  const shortened = await underWay(under, "deafWithChild");
  under.executor.cancel(shortened, "first", { graceMs: LONG_MS, keepsSuccess: true });
  under.executor.cancel(shortened, "second", { graceMs: 30, keepsSuccess: true });
  const lengthened = await underWay(under, "deafWithChild");
  under.executor.cancel(lengthened, "first", { graceMs: 30 });
  under.executor.cancel(lengthened, "second", { graceMs: LONG_MS });
  for (const attempt of [shortened, lengthened]) {
    expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
    expect(JSON.stringify(await under.log(attempt))).toContain("did not stop within 30 ms");
  }
});

test("an attempt that has not started is cancelled with any terms", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const gate = join(under.dir, "gate");
  const first = under.submit("hold", { conf: { gate } });
  await under.started(first.id);
  const second = under.submit("pid");
  under.executor.cancel(second.id, "not wanted", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(second.id)).toEqual({ kind: "cancelled" });
  await writeFile(gate, "");
  await under.ended(first.id);
  expect(under.events.filter(({ type }) => type === "started")).toHaveLength(1);
});

test("the memory limit holds during a long grace period", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "whenAsked", { deed: "memory" }, 250);
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
  expect(JSON.stringify(await under.log(attempt))).toContain("its limit is 250 MB");
});

test("an executor that stops does not wait for the grace period of a cancel", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "deafWithChild");
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await under.executor.stop(0);
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
});

test("a process is reused after a graceful stop of its task", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const attempt = await underWay(under, "stream");
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await under.ended(attempt);
  const { pid } = await under.output<{ pid: number }>("pid");
  expect(pid).toBe(await under.started(attempt));
});

/** Submits a task that writes to a file when its code is running; resolves then, with the attempt. */
async function underWay(
  under: ExecutorUnderTest,
  taskId: string,
  conf: Readonly<Record<string, string | number>> = {},
  memoryMb: number | null = null,
): Promise<string> {
  const { id: attempt } = under.assignment(taskId);
  const file = join(under.dir, attempt);
  under.submit(taskId, { id: attempt, memoryMb, conf: { ...conf, file } });
  while ((await readFile(file, "utf8").catch(() => "")) === "") await sleep(5);
  return attempt;
}

/** A zombie process counts as gone. */
async function gone(pid: number): Promise<void> {
  const isRunning = async (): Promise<boolean> => {
    const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    return status !== "" && !status.includes(") Z ");
  };
  while (await isRunning()) await sleep(5);
}
