import { expect, it, onTestFinished, vi } from "vitest";
import { PASSWORD, RunnerUnderTest, SERVICES, triggerText } from "../../../test/trigger/runner-under-test.ts";
import { silentLogger } from "../../service/logger.ts";
import { userEnvironment } from "../../service/user-environment.ts";
import { TriggerRunner } from "./trigger-runner.ts";

it("runs a trigger of a bundle, and a built-in trigger", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(triggerText("demo", `yield { greeting: "hello " + args.name };`));
  under.run(1, "demo", bundle, { name: "you" });
  expect(await under.event(1)).toEqual({ greeting: "hello you" });
  under.run(2, "tradewind.file", null, { path: bundle, intervalMs: 1_000 });
  expect(await under.event(2)).toMatchObject({ path: bundle });
  expect(under.outcomes(1)).toHaveLength(1);
});

it("requests the next event only after the last one is acknowledged", async () => {
  const under = await RunnerUnderTest.start();
  const text = triggerText(
    "counter",
    `for (let n = 1; n <= 3; n++) { yield n; console.log("stored", n); }`,
    `console.log("cleaned up");`,
  );
  under.run(1, "counter", await under.bundle(text));
  for (let n = 1; n <= 3; n++) {
    expect(await under.event(1, n)).toBe(n);
    // An event that happens later in the same child: the trigger has had its chance to run ahead.
    under.run(100 + n, "counter", await under.bundle(text));
    await under.event(100 + n);
    expect(under.outcomes(1)).toHaveLength(n);
    expect(under.logs(1)).toHaveLength(n - 1);
    under.runner.ack(1);
  }
  await under.until(() => under.logs(1).length === 3);
  expect(under.logs(1)).toEqual(["stored 1", "stored 2", "stored 3"]);
  expect(under.outcomes(1)).toHaveLength(3);
});

it("starts its triggers again in new processes when a package has changed", async () => {
  const under = await RunnerUnderTest.start();
  const text = triggerText("where", `yield process.pid; await new Promise(() => {});`);
  under.run(1, "where", await under.bundle(text));
  const before = await under.event(1);
  under.runner.ack(1);
  under.runner.replaceProcesses();
  const after = await under.event(1, 2);
  expect(after).not.toBe(before);
  under.run(2, "where", await under.bundle(text));
  expect(await under.event(2)).toBe(after);
});

it("passes on how a trigger ends the task", async () => {
  const under = await RunnerUnderTest.start();
  const ending = { kind: "skipped", reason: "nothing to do" };
  under.run(1, "ends", await under.bundle(triggerText("ends", `yield { ending: args };`)), ending);
  expect(await under.outcome(1)).toEqual({ kind: "ending", ending });
});

const FAILURES: Readonly<Record<string, readonly [body: string, failure: object]>> = {
  throws: [
    `throw new RangeError("too far");`,
    { name: "RangeError", message: "too far", code: null, stack: expect.stringContaining("at run (file:") },
  ],
  returns: [`return;`, { code: "TRIGGER_ENDED_WITHOUT_EVENT" }],
  bigint: [`yield 1n;`, { code: "TW_EVENT_NOT_JSON", message: expect.stringContaining("BigInt") }],
  nothing: [`yield undefined;`, { code: "TW_EVENT_NOT_JSON" }],
  large: [
    `yield "x".repeat(1024 * 1024 - 1);`,
    { code: "TW_EVENT_TOO_LARGE", message: expect.stringContaining("1048577 bytes") },
  ],
  exits: [
    `await null; process.exit(3);`,
    { code: "TRIGGER_CRASHED", message: expect.stringContaining("process.exit(3)") },
  ],
  kills: [
    `await null; process.kill(process.pid, "SIGKILL"); yield 1;`,
    { code: "TRIGGER_CRASHED", message: expect.stringContaining("process.kill") },
  ],
  timer: [
    `setTimeout(() => { throw new TypeError("in a timer"); }, 1); await new Promise(() => {});`,
    { name: "TypeError", message: "in a timer" },
  ],
  rejection: [
    `void Promise.reject(new TypeError("unseen")); await new Promise(() => {});`,
    { message: "unseen" },
  ],
};

it("reports why a trigger failed, and keeps the others running in the same process", async () => {
  const under = await RunnerUnderTest.start();
  const texts = Object.entries(FAILURES).map(([id, [body]]) => triggerText(id, body));
  const last = triggerText("last", `await host.variable("plain"); yield "fine"; yield "still fine";`);
  const bundle = await under.bundle([...texts, last].join("\n"));
  const { pid } = under.runner;
  under.run(1, "last", bundle);
  await under.event(1);
  let id = 10;
  for (const [kind, [, failure]] of Object.entries(FAILURES)) {
    under.run(++id, kind, bundle);
    expect(await under.failure(id), kind).toMatchObject(failure);
  }
  under.runner.ack(1);
  expect(await under.event(1, 2)).toBe("still fine");
  expect(under.runner.pid).toBe(pid);
  for (let each = 11; each <= id; each++) expect(under.outcomes(each)).toHaveLength(1);
});

it("rejects unknown kinds, invalid arguments and bundles that do not load", async () => {
  const under = await RunnerUnderTest.start();
  const bundle = await under.bundle(triggerText("known", "yield 1;"));
  under.run(1, "unknown", bundle);
  expect(await under.failure(1)).toMatchObject({ code: "TRIGGER_KIND_UNKNOWN" });
  under.run(2, "known", null);
  expect(await under.failure(2)).toMatchObject({ code: "TRIGGER_KIND_UNKNOWN" });
  under.run(3, "tradewind.file", null, { path: 7 });
  expect(await under.failure(3)).toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
  under.run(4, "known", `${bundle}-missing.mjs`);
  expect(await under.failure(4)).toMatchObject({ code: "ERR_MODULE_NOT_FOUND" });
  under.run(5, "any", await under.bundle(`throw new Error("not today"); export {};`));
  expect(await under.failure(5)).toMatchObject({ message: "not today" });
  const later = `setTimeout(() => { throw new Error("from the top level"); }, 1);`;
  under.run(6, "later", await under.bundle(later + triggerText("later", "await new Promise(() => {});")));
  expect(await under.failure(6)).toMatchObject({ message: "from the top level" });
});

it("runs two versions of a trigger side by side", async () => {
  const under = await RunnerUnderTest.start();
  const version = (n: number) =>
    under.bundle(triggerText("same", `yield "version ${n}"; yield "still ${n}";`));
  const [one, two] = await Promise.all([version(1), version(2)]);
  under.runner.run([
    { id: 1, kind: "same", args: {}, bundlePath: one },
    { id: 2, kind: "same", args: {}, bundlePath: two },
  ]);
  expect([await under.event(1), await under.event(2)]).toEqual(["version 1", "version 2"]);
  under.runner.ack(1);
  expect(await under.event(1, 2)).toBe("still 1");
});

it("stops a trigger: aborts it, runs its cleanup, and reports nothing more of it", async () => {
  const under = await RunnerUnderTest.start();
  const file = `${under.dir}/cleaned`;
  const text = triggerText(
    "waits",
    `host.log("info", "waiting", { n: 1 });
     await new Promise((resolve) => host.abort.addEventListener("abort", resolve));
     globalThis.why = host.abort.reason.name; yield "late";`,
    `(await import("node:fs")).writeFileSync(args.file, String(globalThis.why));`,
  );
  const watch = triggerText(
    "looks",
    `const fs = await import("node:fs");
     while (!fs.existsSync(args.file)) await new Promise((resolve) => setTimeout(resolve, 5));
     yield fs.readFileSync(args.file, "utf8");`,
  );
  const bundle = await under.bundle(text + watch);
  under.run(1, "waits", bundle, { file });
  expect(await under.reported("log")).toMatchObject({ id: 1, message: "waiting", fields: { n: 1 } });
  under.runner.stop([1, 77], "cancelled");
  under.run(2, "looks", bundle, { file });
  expect(await under.event(2)).toBe("AbortError");
  expect(under.outcomes(1)).toEqual([]);
});

it("runs the cleanups when it is closed", async () => {
  const under = await RunnerUnderTest.start();
  const file = `${under.dir}/closed`;
  const cleanup = `await null; (await import("node:fs")).writeFileSync(args.file, "yes");`;
  under.run(1, "open", await under.bundle(triggerText("open", "yield 1;", cleanup)), { file });
  await under.event(1);
  await under.runner.close(5_000);
  const { readFileSync } = await import("node:fs");
  expect(readFileSync(file, "utf8")).toBe("yes");
});

it("separates the output of triggers, and masks the secrets that they received", async () => {
  const under = await RunnerUnderTest.start();
  const text = triggerText(
    "prints",
    `console.log("I am %s", args.name);
     await new Promise((resolve) => setTimeout(resolve, 5));
     const { password } = await host.connection("any");
     console.error("my password is " + password);
     host.log("debug", "in a field", { password });
     process.stdout.write("raw " + args.name + "\\n");
     const missing = await host.variable("missing");
     const broken = await host.variable("broken").catch((error) => error.code + " " + error.message);
     yield { password, missing: missing === undefined, broken };`,
  );
  const bundle = await under.bundle(text);
  under.run(1, "prints", bundle, { name: "one" });
  under.run(2, "prints", bundle, { name: "two" });
  expect(await under.event(1)).toMatchObject({ password: PASSWORD, missing: true });
  const { broken } = (await under.event(2)) as { broken: string };
  expect(broken).toMatch(/^TRIGGER_SERVICE_FAILED .*variable "broken"/);
  expect(broken).not.toContain("postgres:");
  expect(under.logs(1)).toEqual(["I am one", "my password is ***", "in a field", "raw one"]);
  expect(under.logs(2)).toEqual(["I am two", "my password is ***", "in a field", "raw two"]);
  expect(JSON.stringify(under.reports.filter(({ on }) => on === "log"))).not.toContain(PASSWORD);
});

it("passes no secret of the engine to its child", async () => {
  process.env["TRADEWIND_SECRET_KEY"] = "not-for-triggers";
  process.env["DATABASE_URL"] = "postgres://not-for-triggers";
  try {
    const under = await RunnerUnderTest.start();
    under.run(1, "env", await under.bundle(triggerText("env", `yield { ...process.env };`)));
    const environment = await under.event(1);
    expect(environment).toMatchObject({ PATH: process.env["PATH"] });
    expect(JSON.stringify(environment)).not.toContain("not-for-triggers");
  } finally {
    delete process.env["TRADEWIND_SECRET_KEY"];
    delete process.env["DATABASE_URL"];
  }
});

it("passes the task environment to its child, and names a variable that a trigger lacks", async () => {
  vi.stubEnv("SHOP_REGION", "eu");
  vi.stubEnv("SHOP_KEY", "not-passed");
  vi.stubEnv("TRADEWIND_TASK_ENV", "SHOP_REG*");
  onTestFinished(() => void vi.unstubAllEnvs());
  const under = await RunnerUnderTest.start();
  under.run(1, "env", await under.bundle(triggerText("env", `yield { ...process.env };`)));
  expect(await under.event(1)).toEqual(userEnvironment(process.env));
  const lacking = triggerText(
    "lacking",
    `throw new Error("SHOP_KEY of " + process.env.SHOP_REGION + " is missing");`,
  );
  under.run(2, "lacking", await under.bundle(lacking));
  expect(await under.outcome(2)).toMatchObject({
    error: {
      message:
        "SHOP_KEY of eu is missing\nSHOP_KEY is set for the triggerer but not passed to tasks: add it to TRADEWIND_TASK_ENV.",
    },
  });
});

it("limits the concurrent work per key", async () => {
  const under = await RunnerUnderTest.start();
  const text = triggerText(
    "limited",
    `const active = globalThis.active ??= { now: 0, most: 0, all: 0 };
     await host.limited("host", 3, async () => {
       active.most = Math.max(active.most, ++active.now);
       await new Promise((resolve) => setTimeout(resolve, 2));
       active.now--;
       active.all++;
     });
     host.polled();
     yield active;`,
  );
  const bundle = await under.bundle(text);
  for (let id = 1; id <= 20; id++) under.run(id, "limited", bundle);
  await under.until(() => under.reports.filter(({ on }) => on === "outcome").length === 20);
  const seen = under.reports.map((each) =>
    each.on === "outcome" && each.outcome.kind === "event" ? each.outcome.payload : null,
  );
  expect(seen.at(-1)).toMatchObject({ most: 3 });
  expect(Math.max(...seen.map((each) => (each as { all?: number } | null)?.all ?? 0))).toBe(20);
  await under.until(() => under.reports.filter(({ on }) => on === "polled").length === 20);
});

it("has a process only while there is something to run", async () => {
  const runner = new TriggerRunner({ services: SERVICES, logger: silentLogger, idleMs: 50 });
  onTestFinished(() => runner.close(0));
  const up = Promise.withResolvers<void>();
  const ignore = () => {};
  const others = {
    log: ignore,
    polled: ignore,
    ceased: ignore,
    members: ignore,
    blocked: ignore,
    ignoredAbort: ignore,
  };
  await runner.start({
    outcome: () => up.resolve(),
    ...others,
  });
  expect(runner.pid).toBeUndefined();
  expect(performance.now() - runner.progressAt()).toBeLessThan(1_000);
  const moment = new Date().toISOString();
  runner.run([{ id: 1, kind: "tradewind.datetime", args: { moment }, bundlePath: null }]);
  await up.promise;
  const { pid } = runner;
  expect(pid).toBeGreaterThan(0);
  runner.stop([1], "cancelled");
  await vi.waitFor(() => expect(runner.pid).toBeUndefined(), { timeout: 10_000 });
  const again = Promise.withResolvers<void>();
  const spare = new TriggerRunner({ services: SERVICES, logger: silentLogger, idleMs: 0 });
  onTestFinished(() => spare.close(0));
  await spare.start({
    outcome: () => again.resolve(),
    ...others,
  });
  // Added while the child is about to end: the next child runs it.
  spare.run([{ id: 2, kind: "tradewind.datetime", args: { moment }, bundlePath: null }]);
  spare.stop([2], "cancelled");
  await new Promise((resolve) => setTimeout(resolve, 20));
  spare.run([{ id: 3, kind: "tradewind.datetime", args: { moment }, bundlePath: null }]);
  await again.promise;
});
