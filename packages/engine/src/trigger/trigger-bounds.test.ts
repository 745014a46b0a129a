/** Limits of what one trigger may send, so that a trigger that sends too much does not affect others. */
import { expect, it } from "vitest";
import { RunnerUnderTest, triggerText } from "../../test/trigger/runner-under-test.ts";

const MB = 1024 * 1024;

it("truncates or rejects oversized values, and keeps the other triggers running in the same process", async () => {
  const under = await RunnerUnderTest.start();
  const { pid } = under.runner;
  const bundle = await under.bundle(
    [
      triggerText("throws", `throw new Error("\\u0001".repeat(${5 * MB}));`),
      triggerText("ends", `yield { ending: { kind: "skipped", reason: "r".repeat(${2 * MB}) } };`),
      triggerText(
        "asks",
        `yield [await host.variable("x".repeat(${3 * MB})) ?? null, await host.variable(7) ?? null];`,
      ),
      triggerText("full", `yield "ä".repeat(${MB / 2 - 1});`),
      triggerText("over", `yield "ä".repeat(${MB / 2});`),
      triggerText("keyed", `yield 1;`).replace("key: null", 'key: "k".repeat(5_000)'),
    ].join("\n"),
  );
  for (const [id, kind] of ["throws", "ends", "asks", "full", "over", "keyed"].entries())
    under.run(id + 1, kind, bundle);
  const thrown = await under.failure(1);
  expect(thrown.message.length).toBeLessThan(70_000);
  expect(thrown.stack?.length).toBeLessThan(70_000);
  expect(await under.failure(2)).toMatchObject({ code: "TW_EVENT_TOO_LARGE" });
  expect(await under.event(3)).toEqual([null, null]);
  expect(await under.event(4)).toHaveLength(MB / 2 - 1);
  expect(await under.failure(5)).toMatchObject({ code: "TW_EVENT_TOO_LARGE" });
  expect(await under.failure(6)).toMatchObject({
    code: "TW_EVENT_TOO_LARGE",
    message: expect.stringContaining("5000 characters; 4096 is the limit"),
  });
  expect(under.runner.pid).toBe(pid);
});

it("splits concurrent output into readable lines, and drops the excess", async () => {
  const under = await RunnerUnderTest.start();
  const { pid } = under.runner;
  const bundle = await under.bundle(
    [
      triggerText(
        "talks",
        `for (let n = 0; n < 300; n++) host.log("info", n + "x".repeat(16_000)); yield "said";`,
      ),
      triggerText(
        "floods",
        `for (let turn = 0; turn < 50; turn++) {
           for (let n = 0; n < 1_000; n++) console.log("water");
           await new Promise((resolve) => setImmediate(resolve));
         }
         yield "flooded"; await new Promise(() => {});`,
      ),
      triggerText("speaks", `host.log("info", "one word"); yield "spoken";`),
    ].join("\n"),
  );
  under.run(1, "talks", bundle);
  expect(await under.event(1)).toBe("said");
  expect(under.logs(1)).toHaveLength(300);
  under.run(2, "floods", bundle);
  under.run(3, "speaks", bundle);
  expect(await under.event(3)).toBe("spoken");
  expect(under.logs(3)).toEqual(["one word"]);
  await under.event(2);
  await under.reported("log", ({ id, message }) => id === 2 && /^\d+ log records were dropped/.test(message));
  expect(under.logs(2).filter((message) => message === "water").length).toBeLessThan(50_000);
  expect(under.runner.pid).toBe(pid);
});

it("answers any number of requests, a few of each trigger at a time", async () => {
  let atOnce = 0;
  let most = 0;
  const under = await RunnerUnderTest.start({
    services: {
      variable: async (key) => {
        most = Math.max(most, ++atOnce);
        await new Promise((resolve) => setImmediate(resolve));
        atOnce--;
        return key;
      },
      connection: async () => undefined,
    },
  });
  const asks = `yield (await Promise.all(Array.from({ length: 500 }, (_, n) => host.variable("v" + n)))).length;`;
  under.run(1, "asks", await under.bundle(triggerText("asks", asks)));
  expect(await under.event(1)).toBe(500);
  expect(most).toBeLessThanOrEqual(16);
});

it("limits the bytes of events in flight until they are stored", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(
    [
      triggerText("large", `yield args.n + "x".repeat(1_000_000); await new Promise(() => {});`),
      triggerText("speaks", `host.log("info", "here");`),
    ].join("\n"),
  );
  const ids = Array.from({ length: 40 }, (_, n) => n + 1);
  for (const id of ids) under.run(id, "large", bundle, { n: id });
  const fired = () => ids.filter((id) => under.outcomes(id).length > 0);
  await under.until(() => fired().length >= 33);
  // Output that is sent later in the same process is received later.
  under.run(100, "speaks", bundle);
  await under.reported("log", ({ id }) => id === 100);
  expect(fired()).toHaveLength(33);
  // Stopped triggers free their share, too.
  under.runner.stop([1], "cancelled");
  await under.until(() => fired().length === 34);
  for (const id of ids) under.runner.ack(id);
  await under.until(() => fired().length === 40);
});

it("ends a process that sends an endless line, and starts everything again", async () => {
  const under = await RunnerUnderTest.start();
  const { pid } = under.runner;
  // Bypasses the runner: like code that writes to an arbitrary descriptor.
  const writes = `
    const fs = await import("node:fs");
    if (fs.existsSync(args.mark)) { yield "again"; return; }
    fs.writeFileSync(args.mark, "");
    for (let left = 3_000_000; left > 0; ) {
      try { left -= fs.writeSync(3, "x".repeat(Math.min(left, 65_536))); }
      catch { await new Promise((resolve) => setTimeout(resolve, 1)); }
    }
    await new Promise(() => {});`;
  under.run(1, "writes", await under.bundle(triggerText("writes", writes)), { mark: `${under.dir}/mark` });
  const { text } = await under.reported("engine", ({ message }) => message.includes("starting another"));
  expect(text).toMatch(/it sent (?:a message without end|something that is not JSON)/);
  expect(await under.event(1)).toBe("again");
  expect(under.runner.pid).not.toBe(pid);
});
