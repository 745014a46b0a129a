import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ExecutorUnderTest } from "../../../test/execute/executor-under-test.ts";

interface Seen {
  readonly pid: number;
  readonly calls: number;
  readonly [key: string]: number;
}

describe("warm processes", () => {
  test("a process runs one task after another", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const first = await under.output<Seen>("pid");
    const second = await under.output<Seen>("pid");
    expect(second).toEqual({ pid: first.pid, calls: 2 });
  });

  test("a process is replaced after the maximum number of tasks", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1, recycleAfter: 2 });
    const seen: Seen[] = [];
    for (let at = 0; at < 4; at++) seen.push(await under.output<Seen>("pid"));
    expect(seen.map(({ calls }) => calls)).toEqual([1, 2, 1, 2]);
  });

  test("a process that holds too much memory is replaced without failing a task", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1, weighEvery: 2, maxIdleMb: 10 });
    const first = await under.output<Seen>("pid");
    let last = await under.output<Seen>("pid");
    for (let n = 0; n < 100 && last.pid === first.pid; n++) last = await under.output<Seen>("pid");
    expect(last.pid).not.toBe(first.pid);
    expect(last.calls).toBe(1);
  });

  test("used processes are replaced after their current task when a package has changed", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const first = await under.output<Seen>("pid");
    under.executor.replaceUsed();
    const second = await under.output<Seen>("pid");
    expect(second.pid).not.toBe(first.pid);
    const gate = join(under.dir, "gate");
    const { id: attempt } = under.submit("hold", { conf: { gate } });
    expect(await under.started(attempt)).toBe(second.pid);
    under.executor.replaceUsed();
    await writeFile(gate, "");
    expect(await under.ended(attempt)).toMatchObject({ kind: "success" });
    expect((await under.output<Seen>("pid")).pid).not.toBe(second.pid);
  });

  test("a process that holds less memory is kept", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1, weighEvery: 2, maxIdleMb: 4_000 });
    const { pid } = await under.output<Seen>("pid");
    for (let calls = 2; calls <= 20; calls++) expect(await under.output<Seen>("pid")).toEqual({ pid, calls });
  });

  test.each(["leaveTimer", "leaveCwd", "leaveEnv", "leaveListener"])(
    "%s: a process with leftovers is not reused",
    async (taskId) => {
      await using under = await ExecutorUnderTest.start({ parallelism: 1 });
      const dirty = await under.output<Seen>(taskId);
      const next = await under.output<Seen>("pid");
      expect(next.pid).not.toBe(dirty.pid);
      expect(await under.output<Seen>("pid")).toEqual({ pid: next.pid, calls: 2 });
    },
  );

  test("a fresh task does not share its process with earlier or later tasks", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const warm = await under.output<Seen>("pid");
    const fresh = await under.output<Seen>("pid", { isolation: "fresh" });
    const after = await under.output<Seen>("pid");
    expect(fresh.calls).toBe(1);
    expect(after.calls).toBe(1);
    expect(new Set([warm.pid, fresh.pid, after.pid]).size).toBe(3);
  });

  test("without a limit every task has its own process, many in parallel", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 0 });
    expect(under.executor.freeSlots()).toBeGreaterThan(100_000);
    const gate = join(under.dir, "gate");
    const held = Array.from({ length: 6 }, () => under.submit("hold", { conf: { gate } }));
    const pids = await Promise.all(held.map(({ id: attempt }) => under.started(attempt)));
    expect(new Set(pids).size).toBe(6);
    await writeFile(gate, "");
    await Promise.all(held.map(({ id: attempt }) => under.ended(attempt)));
  });

  test("a process that reports for another attempt is ignored and not reused", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const forged = await under.output<Seen>("forge", { conf: { id: "another-attempt" } });
    expect(under.events.some((event) => event.type === "ended" && event.attempt === "another-attempt")).toBe(
      false,
    );
    expect((await under.output<Seen>("pid")).pid).not.toBe(forged.pid);
  });

  test("a second report of the same attempt is ignored", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const { id: attempt } = under.submit("forge", { conf: { twice: true } });
    await under.ended(attempt);
    const next = await under.output<Seen>("pid");
    expect(next.calls).toBe(1);
    expect(under.events.filter((event) => event.type === "ended" && event.attempt === attempt)).toHaveLength(
      1,
    );
  });
});

test.each(["no json\n", '{"k":"ended"}\n', "null\n"])(
  "a process that writes %j to its channel fails only its own task",
  async (text) => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1, graceMs: 20 });
    const { id: attempt } = under.submit("babble", { conf: { text }, timeoutMs: 300 });
    expect(await under.ended(attempt)).toMatchObject({ kind: "failed", retry: true });
    expect(await under.run("pid")).toMatchObject({ kind: "success" });
  },
);

test("waiting attempts are reported as lost if no process can be started", async () => {
  await using under = await ExecutorUnderTest.start({ cwd: "/nowhere/at/all" });
  expect(await under.run("noop")).toMatchObject({
    kind: "lost",
    reason: expect.stringContaining("do not start"),
  });
});

describe("the line", () => {
  test("runs at most the limit in parallel, in the order of submission", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 1 });
    const file = join(under.dir, "order");
    const names = Array.from({ length: 20 }, (_, at) => `task ${at}`);
    under.executor.submit(names.map((name) => under.assignment("mark", { id: name, conf: { file, name } })));
    await Promise.all(names.map((name) => under.ended(name)));
    expect((await readFile(file, "utf8")).trim().split("\n")).toEqual(names);
  });

  test("slots: submitted attempts use slots until they end", async () => {
    await using under = await ExecutorUnderTest.start({ parallelism: 2, prefetch: 50 });
    const gate = join(under.dir, "gate");
    const room = under.executor.freeSlots();
    expect(room).toBeGreaterThanOrEqual(2);
    const held = Array.from({ length: room }, () => under.assignment("hold", { conf: { gate } }));
    under.executor.submit(held.slice(0, 1));
    expect(under.executor.freeSlots()).toBe(room - 1);
    under.executor.submit(held.slice(1));
    under.executor.submit([under.callback()]);
    expect(under.executor.freeSlots()).toBeLessThanOrEqual(1);
    await writeFile(gate, "");
    await Promise.all(held.map(({ id: attempt }) => under.ended(attempt)));
    await under.event((event) => event.type === "capacity");
    expect(under.executor.freeSlots()).toBeGreaterThanOrEqual(2);
  });
});
