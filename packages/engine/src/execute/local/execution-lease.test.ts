import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";
import { childEntries } from "../../child/child-entry.ts";
import { Guardian } from "../../child/guardian.ts";
import { silentLogger } from "../../service/logger.ts";

const inMs = (trustedMs: number, endsMs: number) => ({
  trustedUntil: performance.now() + trustedMs,
  endsAt: performance.now() + endsMs,
});

test("when the lease is no longer trusted, waiting attempts are lost at once and running ones are killed before it ends", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const running = under.submit("deaf");
  await under.started(running.id);
  const waiting = under.submit("noop");
  const term = inMs(200, 1_400);
  under.executor.extendLease(term);
  const lost = { kind: "lost", reason: "the scheduler could not renew its lease" };
  expect(await under.ended(waiting.id)).toEqual(lost);
  expect(performance.now()).toBeGreaterThanOrEqual(term.trustedUntil);
  expect(await under.ended(running.id)).toEqual(lost);
  expect(performance.now()).toBeLessThan(term.endsAt);
  expect(await under.run("noop")).toEqual(lost);
  expect(under.events.filter(({ type }) => type === "started")).toHaveLength(1);
  under.executor.extendLease(inMs(60_000, 61_000));
  expect((await under.run("noop")).kind).toBe("success");
});

test("an executor that slept past the lease starts nothing, and reports attempts killed by the guardian as lost", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const running = under.submit("deaf");
  const pid = await under.started(running.id);
  under.submit("noop", { id: "waiting" });
  under.executor.extendLease(inMs(50, 100));
  // No timer of this process runs meanwhile: the first event is the exit of the task's process.
  const until = performance.now() + 400;
  while (performance.now() < until);
  await under.event((event) => event.type === "ended");
  const lost = { kind: "lost", reason: "the scheduler could not renew its lease" };
  expect(await under.ended(running.id)).toEqual(lost);
  expect(await under.ended("waiting")).toEqual(lost);
  expect(() => process.kill(pid, 0)).toThrow();
});

test("the guardian kills the process groups at the end of a lease that is not extended, although the engine is alive", async () => {
  const { guardian: entry } = await childEntries();
  const guardian = new Guardian(silentLogger);
  const task = spawn("sleep", ["1000"], { detached: true, stdio: "ignore" });
  const gone = once(task, "exit");
  guardian.start(entry);
  guardian.watch(task.pid!);
  guardian.extendLease(performance.now() + 1_000);
  const endsAt = performance.now() + 1_600;
  guardian.extendLease(endsAt);
  expect((await gone)[1]).toBe("SIGKILL");
  expect(performance.now()).toBeGreaterThanOrEqual(endsAt - 5);
  guardian.stop();
});
