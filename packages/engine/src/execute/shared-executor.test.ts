/** Two jobs of one process with one executor: each sees its own assignments only. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";
import type { Executor } from "./contract.ts";
import type { LocalExecutor } from "./local/local-executor.ts";
import { SharedExecutor } from "./shared-executor.ts";

let dir: string;
let local: LocalExecutor;
let one: ExecutorUnderTest<Executor>;
let other: ExecutorUnderTest<Executor>;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "tradewind-shared-"));
  local = ExecutorUnderTest.local(dir, { parallelism: 2, prefetch: 0 });
  const shared = new SharedExecutor(local);
  one = await ExecutorUnderTest.of(dir, shared.view());
  other = await ExecutorUnderTest.of(dir, shared.view());
});

afterEach(async () => {
  await local.stop(0);
  await rm(dir, { recursive: true, force: true });
});

const gate = () => join(dir, "gate");
const hold = (under: ExecutorUnderTest<Executor>, id: string) =>
  under.submit("hold", { id, conf: { gate: gate() } });

it("reports each assignment to its job only", async () => {
  expect(await one.run("noop", { id: "of-one" })).toMatchObject({ kind: "success" });
  expect(await other.run("noop", { id: "of-other" })).toMatchObject({ kind: "success" });
  const attempts = (under: ExecutorUnderTest<Executor>) =>
    new Set(under.events.flatMap((event) => ("attempt" in event ? event.attempt : [])));
  expect(attempts(one)).toEqual(new Set(["of-one"]));
  expect(attempts(other)).toEqual(new Set(["of-other"]));
});

it("gives all jobs the same slots, and tells each when one becomes free", async () => {
  hold(one, "first");
  hold(other, "second");
  await one.started("first");
  await other.started("second");
  expect([one.executor.freeSlots(), other.executor.freeSlots()]).toEqual([0, 0]);
  await writeFile(gate(), "");
  await one.ended("first");
  await other.event(({ type }) => type === "capacity");
  await other.ended("second");
  expect(one.executor.slots()).toEqual({ slots: 2, free: 2 });
});

it("stops the attempts of a job that stops, and no others", async () => {
  hold(one, "stopped");
  hold(other, "continues");
  await one.started("stopped");
  await other.started("continues");
  await one.executor.stop(0);
  expect(await one.ended("stopped")).toMatchObject({ kind: "lost" });
  expect(other.events.some(({ type }) => type === "ended")).toBe(false);
  await writeFile(gate(), "");
  expect(await other.ended("continues")).toMatchObject({ kind: "success" });
});

it("lets a callback end within the grace period of its job, and reports one that does not as stopped", async () => {
  const callback = one.callback({ id: "hangs", conf: { hang: true } });
  one.executor.submit([callback]);
  await one.executor.stop(50);
  const ended = one.events.find(({ type }) => type === "callbackEnded");
  expect(ended).toMatchObject({ callbackId: "hangs", error: { code: "EXECUTOR_STOPPED" } });
});

it("drains when all jobs drain", async () => {
  one.executor.drain?.();
  expect(await other.run("noop")).toMatchObject({ kind: "success" });
  expect(await one.run("noop")).toMatchObject({ kind: "lost" });
  other.executor.drain?.();
  expect(local.freeSlots()).toBe(0);
});

it("binds all attempts to the lease that ends first", async () => {
  const now = performance.now();
  other.executor.extendLease?.({ trustedUntil: now + 100, endsAt: now + 300 });
  one.executor.extendLease?.({ trustedUntil: now + 600_000, endsAt: now + 600_000 });
  hold(one, "cut");
  expect(await one.ended("cut")).toMatchObject({ kind: "lost" });
});
