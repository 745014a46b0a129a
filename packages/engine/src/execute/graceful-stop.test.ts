/** Attempts that are asked to stop, each with its own terms. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";

/** Longer than any test takes: who waits for it has not understood his terms. */
const LONG_MS = 600_000;

test("what a streaming task returns when it is asked to stop is its outcome", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "stream");
  // It has said nothing so far.
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
  // As of its beginning, although nothing was written before the stop, which is nothing to be warned of.
  expect(lines[0]?.message).toMatch(/^Try 1 of task/);
  expect(Date.parse(lines[0]!.t)).toBeLessThan(stoppedAt);
  const log = JSON.stringify(lines);
  const asked = lines.find(({ message }) => message === "Asked to stop: stopped by site.closed.");
  expect(asked?.level).toBe("info");
  expect(Date.parse(asked!.t)).toBeGreaterThanOrEqual(stoppedAt);
  expect(log).toContain("stopped: stopped by site.closed");
  expect(log).toContain("Succeeded.");
});

test("its own grace period counts, not the executor's: longer", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: 1 });
  const gate = join(under.dir, "gate");
  const attempt = await underWay(under, "stream", { gate });
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await sleep(100);
  await writeFile(gate, "");
  expect(await under.ended(attempt)).toMatchObject({ kind: "success", output: { streamed: true } });
});

test("its own grace period counts, not the executor's: shorter, and its whole group is killed", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
  const attempt = await underWay(under, "deafWithChild");
  const child = Number(await readFile(join(under.dir, attempt), "utf8"));
  under.executor.cancel(attempt, "enough", { graceMs: 40, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
  expect(JSON.stringify(await under.log(attempt))).toContain("did not stop within 40 ms");
  await gone(await under.started(attempt));
  await gone(child);
});

test.each(["fail", "skip", "exit", "throwLater"])("anything but success is cancelled: %s", async (deed) => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "whenAsked", { deed, code: 0 });
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
});

test.each([undefined, {}, { keepsSuccess: false }])(
  "success does not count unless it is kept: %j",
  async (how) => {
    await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
    const attempt = await underWay(under, "stream");
    under.executor.cancel(attempt, "cleared", how);
    expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
    expect(JSON.stringify(await under.log(attempt))).toContain("Cancelled: cleared.");
  },
);

test("a later cancel without terms overrides those of the first", async () => {
  await using under = await ExecutorUnderTest.start({ graceMs: LONG_MS });
  const gate = join(under.dir, "gate");
  const attempt = await underWay(under, "stream", { gate });
  under.executor.cancel(attempt, "stopped", { graceMs: LONG_MS, keepsSuccess: true });
  under.executor.cancel(attempt, "cleared");
  // And nobody gets it back.
  under.executor.cancel(attempt, "stopped once more", { graceMs: LONG_MS, keepsSuccess: true });
  await writeFile(gate, "");
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
});

test("a second cancel shortens the time, and does not lengthen it", async () => {
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

test("an attempt that has not started is cancelled, whatever the terms", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const gate = join(under.dir, "gate");
  const first = under.submit("hold", { conf: { gate } });
  await under.started(first.attempt);
  const second = under.submit("pid");
  under.executor.cancel(second.attempt, "not wanted", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(second.attempt)).toEqual({ kind: "cancelled" });
  await writeFile(gate, "");
  await under.ended(first.attempt);
  expect(under.events.filter(({ type }) => type === "started")).toHaveLength(1);
});

test("a task with all the time of the world keeps to its memory", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "whenAsked", { deed: "memory" }, 250);
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
  expect(JSON.stringify(await under.log(attempt))).toContain("its limit is 250 MB");
});

test("the executor does not wait for a grace period when it stops", async () => {
  await using under = await ExecutorUnderTest.start();
  const attempt = await underWay(under, "deafWithChild");
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await under.executor.stop(0);
  expect(await under.ended(attempt)).toEqual({ kind: "cancelled" });
});

test("a process whose task stopped when it was asked to is used again", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const attempt = await underWay(under, "stream");
  under.executor.cancel(attempt, "enough", { graceMs: LONG_MS, keepsSuccess: true });
  await under.ended(attempt);
  const { pid } = await under.output<{ pid: number }>("pid");
  expect(pid).toBe(await under.started(attempt));
});

/** Submits a task that says in the file of its attempt when its code is under way; answers the attempt. */
async function underWay(
  under: ExecutorUnderTest,
  taskId: string,
  conf: Readonly<Record<string, string | number>> = {},
  memoryMb: number | null = null,
): Promise<string> {
  const { attempt } = under.workload(taskId);
  const file = join(under.dir, attempt);
  under.submit(taskId, { attempt, memoryMb, conf: { ...conf, file } });
  while ((await readFile(file, "utf8").catch(() => "")) === "") await sleep(5);
  return attempt;
}

/** A zombie that nobody has waited for does not run. */
async function gone(pid: number): Promise<void> {
  const isRunning = async (): Promise<boolean> => {
    const status = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
    return status !== "" && !status.includes(") Z ");
  };
  while (await isRunning()) await sleep(5);
}
