/** The effect on all other triggers when one trigger blocks, crashes or kills their shared process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { transform } from "esbuild";
import { describe, expect, it, vi } from "vitest";
import { RunnerUnderTest, triggerText } from "../../../test/trigger/runner-under-test.ts";

/** An innocent trigger that proves to be alive by yielding. */
const COUNTER = triggerText(
  "counter",
  `for (let n = 1; ; n++) { await new Promise((resolve) => setTimeout(resolve, 5)); yield n; }`,
);
const BUSY = triggerText(
  "busy",
  `await new Promise((resolve) => setTimeout(resolve, 5));
   function spinInCircles(until) { while (Date.now() < until) Math.sqrt(2); }
   spinInCircles(Date.now() + args.ms);
   yield "done";`,
);

describe("a blocked event loop", () => {
  it("is reported with the name and the stack of the guilty trigger, without other effects", async () => {
    const under = await RunnerUnderTest.start();
    const bundle = await under.bundle(COUNTER + BUSY);
    const { pid } = under.runner;
    under.run(1, "counter", bundle);
    await under.event(1);
    // No trigger is blamed for a pause of the machine, so it may take more than one stall.
    const blamed = () =>
      under.reports.flatMap((each) => (each.on === "blocked" && each.stall.id !== null ? [each.stall] : []));
    let id = 1;
    while (blamed().length === 0) {
      under.run(++id, "busy", bundle, { ms: 600 });
      expect(await under.event(id)).toBe("done");
    }
    const stall = blamed()[0]!;
    expect(stall.id).toBeGreaterThanOrEqual(2);
    expect(stall.id).toBeLessThanOrEqual(id);
    expect(stall.ms).toBeGreaterThan(200);
    expect(stall.stack).toMatch(/at spinInCircles \(file:.*\.mjs:\d+:\d+\)/);
    under.runner.ack(1);
    expect(await under.event(1, 2)).toBe(2);
    expect(under.runner.pid).toBe(pid);
  });

  it("blames no trigger while Node loads the modules of a first request", async () => {
    const under = await RunnerUnderTest.start({ blockLimitMs: 1_000, silenceMs: 30_000 });
    const text = triggerText(
      "asks",
      `const url = { toString() { const end = Date.now() + args.ms; while (Date.now() < end); return "data:,yes"; } };
       yield await (await fetch(url)).text();`,
    );
    const bundle = await under.bundle(text);
    under.run(1, "asks", bundle, { ms: 1_500 });
    expect(await under.event(1)).toBe("yes");
    expect(under.reports.filter((each) => each.on === "blocked" && each.stall.id !== null)).toEqual([]);
    under.run(2, "asks", bundle, { ms: 60_000 });
    expect(await under.failure(2)).toMatchObject({ code: "TRIGGER_BLOCKED" });
  });

  it("is reported with source lines", async () => {
    const under = await RunnerUnderTest.start({ blockLimitMs: 1_000 });
    const options = { sourcefile: "dags:/busy.ts", sourcemap: "inline" } as const;
    const text = triggerText("hangs", "await null;\nwhile (true);");
    const classes = "export function tradewind$classes() { return [hangs]; }";
    const { code } = await transform(`${text}\n${classes}`, options);
    const path = join(under.dir, "mapped.mjs");
    await writeFile(path, code);
    under.run(1, "hangs", path);
    const { message, stack } = await under.failure(1);
    expect(message).toMatch(/ and was stopped at .*\(dags:\/busy\.ts:\d+:\d+\)\.$/);
    expect(stack).toMatch(/^ {4}at .*\(dags:\/busy\.ts:\d+:\d+\)/);
  });

  it("is reported each time, also inside a regular expression", async () => {
    const under = await RunnerUnderTest.start({ blockLimitMs: 30_000, silenceMs: 30_000 });
    const text = triggerText(
      "regex",
      `for (let n = 0; n < 3; n++) {
         await new Promise((resolve) => setTimeout(resolve, 300));
         const until = Date.now() + 800;
         for (let size = 20; Date.now() < until; size++) /^(a+)+$/.test("a".repeat(size) + "b");
       }
       yield "done";`,
    );
    under.run(1, "regex", await under.bundle(text));
    await under.event(1);
    const seen = () => under.reports.filter((each) => each.on === "blocked");
    await under.until(() => seen().length >= 3);
    // A stall that ended before the second sample has no name.
    const named = seen().filter(({ stall }) => stall.id !== null);
    expect(named.length).toBeGreaterThan(0);
    for (const { stall } of named)
      expect(stall).toMatchObject({ id: 1, stack: expect.stringContaining("at run (file:") });
  });

  for (const [what, body] of Object.entries({
    "a loop without end": `await null; while (true);`,
    "a loop that is mostly in Node's own code": `await null; while (true) performance.now();`,
    "a loop of microtasks": `while (true) await null;`,
    "a subprocess that is waited for": `(await import("node:child_process")).execSync("sleep 60"); yield 1;`,
  })) {
    it(`by ${what} fails only the guilty trigger`, async () => {
      const under = await RunnerUnderTest.start({ blockLimitMs: 1_000 });
      const bundle = await under.bundle(COUNTER + triggerText("hangs", body));
      const { pid } = under.runner;
      under.run(1, "counter", bundle);
      await under.event(1);
      under.run(2, "hangs", bundle);
      const failure = await under.failure(2);
      const failedAt = performance.now();
      expect(failure).toMatchObject({ code: "TRIGGER_BLOCKED", stack: expect.stringContaining("    at ") });
      expect(failure.message).toMatch(/^The trigger blocked all .* for more than 1 s and was stopped.*$/);
      // The machine may have paused before: no trigger caused that.
      const stalls = under.reports.flatMap((each) =>
        each.on === "blocked" && each.stall.isFailed ? each.stall : [],
      );
      expect(stalls).toMatchObject([{ id: 2, kind: "hangs" }]);
      // Its first event was reported and is unacknowledged: events after the restart are held until then.
      under.runner.ack(1);
      expect(await under.event(1, 2)).toBe(1);
      const tookMs = performance.now() - failedAt;
      expect(tookMs).toBeLessThan(5_000);
      process.stdout.write(`${what}: the others resumed after ${tookMs.toFixed(0)} ms\n`);
      expect(under.runner.pid).not.toBe(pid);
      under.runner.ack(1);
      expect(await under.event(1, 3)).toBe(2);
      expect(under.outcomes(2)).toHaveLength(1);
    });
  }

  it("is ended also if the guilty trigger was stopped meanwhile", async () => {
    const under = await RunnerUnderTest.start({ blockLimitMs: 1_000, silenceMs: 30_000 });
    const text = triggerText(
      "hangs",
      `host.log("info", "from now on"); await new Promise((resolve) => setTimeout(resolve, 100)); while (true);`,
    );
    const bundle = await under.bundle(COUNTER + text);
    under.run(1, "counter", bundle);
    await under.event(1);
    under.run(2, "hangs", bundle);
    await under.reported("log");
    const { pid } = under.runner;
    under.runner.stop([2], "cancelled");
    under.runner.ack(1);
    await under.event(1, 2);
    await vi.waitFor(() => expect(under.runner.pid).not.toBe(pid), { timeout: 5_000 });
    under.runner.ack(1);
    await under.event(1, 3);
    expect(under.outcomes(2)).toEqual([]);
  });

  it("in the top level of a bundle fails the triggers of that bundle", async () => {
    const under = await RunnerUnderTest.start({ blockLimitMs: 1_000 });
    under.run(1, "counter", await under.bundle(COUNTER));
    const endless = await under.bundle(`while (globalThis.on !== 1);\n${triggerText("never", "yield 1;")}`);
    under.runner.run([2, 3].map((id) => ({ id, kind: "never", args: {}, bundlePath: endless })));
    expect(await under.failure(2)).toMatchObject({ code: "TRIGGER_BLOCKED" });
    expect(await under.failure(3)).toMatchObject({ code: "TRIGGER_BLOCKED" });
    under.runner.ack(1);
    await under.event(1);
  });
});

describe("an event across a restart", () => {
  it("is reported again, but not before its first report is acknowledged", async () => {
    const under = await RunnerUnderTest.start();
    const bundle = await under.bundle(COUNTER);
    under.run(1, "counter", bundle);
    await under.event(1);
    process.kill(under.runner.pid as number, "SIGKILL");
    // The new child has started all triggers once a trigger added later has fired twice.
    under.run(2, "counter", bundle);
    await under.event(2);
    under.runner.ack(2);
    await under.event(2, 2);
    expect(under.outcomes(1)).toHaveLength(1);
    under.runner.ack(1);
    expect(await under.event(1, 2)).toBe(1);
    under.runner.ack(1);
    expect(await under.event(1, 3)).toBe(2);
  });
});

describe("a trigger process", () => {
  it("is replaced after it dies, and proves that its loop turns", async () => {
    const under = await RunnerUnderTest.start();
    const bundle = await under.bundle(COUNTER);
    const { pid } = under.runner;
    const before = under.runner.progressAt();
    process.kill(pid as number, "SIGKILL");
    under.run(1, "counter", bundle);
    await under.event(1);
    expect(under.runner.pid).not.toBe(pid);
    expect(under.runner.progressAt()).toBeGreaterThan(before);
  });

  it("is replaced if it does not answer", async () => {
    const under = await RunnerUnderTest.start({ silenceMs: 1_000 });
    const { pid } = under.runner;
    process.kill(pid as number, "SIGSTOP");
    under.run(1, "counter", await under.bundle(COUNTER));
    await under.event(1);
    expect(under.runner.pid).not.toBe(pid);
    const { text } = await under.reported("engine", ({ message }) => message.includes("starting another"));
    expect(text).toContain("did not answer for 1000 ms");
  });

  it("ends with the engine, even in a busy loop", async () => {
    const under = await RunnerUnderTest.start();
    const started = `${under.dir}/started`;
    const loop = `(await import("node:fs")).writeFileSync("${started}", ""); while (true);`;
    const bundle = await under.bundle(triggerText("loop", loop));
    const script = fileURLToPath(new URL("../../../test/trigger/runner-parent.ts", import.meta.url));
    const parent = spawn(process.execPath, ["--conditions=source", script, bundle, "loop"]);
    const pid = Number(String((await once(parent.stdout, "data"))[0]));
    // The process is not our child, so there is no exit event to await.
    await vi.waitFor(() => readFileSync(started), 20_000);
    expect(() => process.kill(pid, 0)).not.toThrow();
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false), 20_000);
  });

  it("fails only the trigger that crashes it repeatedly, although no trigger was observed", async () => {
    const under = await RunnerUnderTest.start();
    // Like native code that crashes: nothing in JavaScript can catch it.
    const crash = triggerText("crashes", `await null; process.reallyExit(7); yield 1;`);
    const bundle = await under.bundle(COUNTER + crash);
    const work = Array.from({ length: 2 }, (_, id) => ({
      id,
      kind: "counter",
      args: {},
      bundlePath: bundle,
    }));
    under.runner.run([...work, { id: 99, kind: "crashes", args: {}, bundlePath: bundle }]);
    expect(await under.failure(99)).toMatchObject({ code: "TRIGGER_CRASHED" });
    for (const { id } of work) {
      const before = under.outcomes(id).length;
      under.runner.ack(id);
      await under.event(id, before + 1);
      expect(under.outcomes(id).every(({ kind }) => kind === "event")).toBe(true);
    }
  });

  it("with a full heap fails the trigger that fills it", async () => {
    const under = await RunnerUnderTest.start({ memoryMb: 200, blockLimitMs: 60_000, silenceMs: 60_000 });
    const eats = `await null; const all = []; while (true) all.push(new Array(1_000).fill(all.length));`;
    const bundle = await under.bundle(COUNTER + triggerText("eats", eats));
    under.run(1, "counter", bundle);
    await under.event(1);
    under.run(2, "eats", bundle);
    expect(await under.failure(2)).toMatchObject({ code: "TRIGGER_CRASHED" });
    under.runner.ack(1);
    await under.event(1, 2);
  });
});

it("keeps the event loop free at ten thousand polls a second", { timeout: 120_000 }, async () => {
  const under = await RunnerUnderTest.start();
  const poll = triggerText(
    "poll",
    `while (!host.abort.aborted) {
       host.polled();
       await new Promise((resolve) => setTimeout(resolve, 1_000));
     }`,
  );
  const bundle = await under.bundle(poll + COUNTER);
  const startedAt = performance.now();
  under.runner.run(
    Array.from({ length: 10_000 }, (_, id) => ({ id, kind: "poll", args: {}, bundlePath: bundle })),
  );
  const polled = () => new Set(under.reports.flatMap((each) => (each.on === "polled" ? [each.id] : []))).size;
  await under.until(() => under.reports.length >= 10_000 && polled() === 10_000);
  const startMs = performance.now() - startedAt;
  // Three seconds, measured by a trigger among the others.
  const lag = triggerText(
    "lag",
    `const { monitorEventLoopDelay } = await import("node:perf_hooks");
     const delays = monitorEventLoopDelay({ resolution: 10 });
     delays.enable();
     const cpu = process.cpuUsage();
     await new Promise((resolve) => setTimeout(resolve, 3_000));
     const used = process.cpuUsage(cpu);
     yield { p50: delays.percentile(50) / 1e6, p99: delays.percentile(99) / 1e6, max: delays.max / 1e6,
       cpu: (used.user + used.system) / 3e6, rss: process.memoryUsage.rss() / 2 ** 20 };`,
  );
  under.run(20_000, "lag", await under.bundle(lag));
  const seen = (await under.event(20_000)) as Record<"p50" | "p99" | "max" | "cpu" | "rss", number>;
  const blocked = under.reports.filter((each) => each.on === "blocked").length;
  process.stdout.write(
    `10,000 triggers: all polled ${startMs.toFixed(0)} ms after the start; loop delay p50 ${seen.p50.toFixed(1)} ms, ` +
      `p99 ${seen.p99.toFixed(1)} ms, max ${seen.max.toFixed(1)} ms; ${(seen.cpu * 100).toFixed(0)}% CPU, ` +
      `${seen.rss.toFixed(0)} MB, ${blocked} stalls\n`,
  );
  expect(seen.p50).toBeLessThan(200);
  expect(seen.rss).toBeLessThan(600);
});

/** A zombie that was not reaped does not run. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== "linux" || !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}
