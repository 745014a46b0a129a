/** A process that has loaded many unused bundles is replaced without an effect on its triggers. */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { expect, it, vi } from "vitest";
import { RunnerUnderTest, triggerText } from "../../test/trigger/runner-under-test.ts";

const LIMIT = 3;

/** Triggers that fire once and end, each of a bundle of its own. */
async function leaveBehind(under: RunnerUnderTest, bundles: number): Promise<void> {
  for (let n = 0; n < bundles; n++) {
    const id = 1_000 + n;
    under.run(id, "once", await under.bundle(triggerText("once", `yield "bundle ${n}";`)));
    await under.event(id);
    under.runner.stop([id], "cancelled");
  }
}

function replaced(under: RunnerUnderTest, pid: number | undefined): Promise<void> {
  return vi.waitFor(
    () => {
      expect(under.runner.pid).toBeDefined();
      expect(under.runner.pid).not.toBe(pid);
    },
    { timeout: 30_000 },
  );
}

it("ends every trigger in order before it starts it again, exactly once", async () => {
  const under = await RunnerUnderTest.start({ maxDeadBundles: LIMIT });
  const diary = `${under.dir}/diary`;
  const note = `(await import("node:fs")).appendFileSync(${JSON.stringify(diary)}, `;
  const lasting = triggerText(
    "lasting",
    `${note} "start "); while (!host.abort.aborted && !(await import("node:fs")).existsSync(args.go))
       await new Promise((resolve) => setTimeout(resolve, 10));
     yield "went";`,
    `${note} "end ");`,
  );
  under.run(1, "lasting", await under.bundle(lasting), { go: `${under.dir}/go` });
  await vi.waitFor(() => expect(readFileSync(diary, "utf8")).toBe("start "), { timeout: 30_000 });
  const { pid } = under.runner;
  await leaveBehind(under, LIMIT + 1);
  await replaced(under, pid);
  await vi.waitFor(() => expect(readFileSync(diary, "utf8")).toBe("start end start "), { timeout: 30_000 });
  writeFileSync(`${under.dir}/go`, "");
  expect(await under.event(1)).toBe("went");
  expect(under.outcomes(1)).toHaveLength(1);
  // No crash was counted, and no trigger is a suspect.
  expect(under.reports.filter(({ on }) => on === "engine")).toEqual([]);
});

it("waits until every event is acknowledged, and lets each trigger pass that on", async () => {
  const under = await RunnerUnderTest.start({ maxDeadBundles: LIMIT });
  const passes = `yield "once"; (await import("node:fs")).writeFileSync(args.mark, ""); await new Promise(() => {});`;
  under.run(1, "passes", await under.bundle(triggerText("passes", passes)), { mark: `${under.dir}/mark` });
  await under.event(1);
  const { pid } = under.runner;
  await leaveBehind(under, LIMIT + 1);
  expect(under.runner.pid).toBe(pid);
  under.runner.ack(1);
  await vi.waitFor(() => readFileSync(`${under.dir}/mark`), { timeout: 30_000 });
  await replaced(under, pid);
});

it("does not wait forever", async () => {
  const under = await RunnerUnderTest.start({ maxDeadBundles: LIMIT });
  const bundle = await under.bundle(triggerText("fires", `yield "event"; await new Promise(() => {});`));
  under.run(1, "fires", bundle);
  await under.event(1);
  const { pid } = under.runner;
  await leaveBehind(under, 2 * LIMIT + 1);
  await replaced(under, pid);
  // The new child reports the event again; it is delivered after the first one is acknowledged.
  under.runner.ack(1);
  expect(await under.event(1, 2)).toBe("event");
});

it("keeps the last event of a built-in trigger", async () => {
  const under = await RunnerUnderTest.start({ maxDeadBundles: LIMIT });
  const path = `${under.dir}/file`;
  writeFileSync(path, "one");
  under.run(1, "tradewind.file", null, { path, intervalMs: 50 });
  expect(await under.event(1)).toMatchObject({ size: 3 });
  under.runner.ack(1);
  const { pid } = under.runner;
  await leaveBehind(under, LIMIT + 1);
  await replaced(under, pid);
  const looks = () => under.reports.filter((each) => each.on === "polled" && each.id === 1).length;
  const before = looks();
  await under.until(() => looks() > before + 1);
  expect(under.outcomes(1)).toHaveLength(1);
  appendFileSync(path, " two");
  expect(await under.event(1, 2)).toMatchObject({ size: 7 });
});
