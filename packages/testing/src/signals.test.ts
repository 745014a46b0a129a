import {
  conf,
  type Duration,
  dag,
  FileTrigger,
  signal,
  type TaskContext,
  TimeDeltaTrigger,
} from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type RunResult, runDag } from "./index.ts";

const ready = signal("ready", z.object({ n: z.number() }));

/** Two tasks side by side: one that waits, one that acts. */
function beside(waits: (ctx: TaskContext) => unknown, does: (ctx: TaskContext) => unknown) {
  return dag("beside", (d) => {
    d.task("waits", (_, ctx) => waits(ctx) as Promise<number>);
    d.task("does", (_, ctx) => does(ctx) as Promise<number>);
  });
}

const n = async (ctx: TaskContext, name = "s") => (await ctx.until(name, ready)).value.n;

describe("a wait for a signal", () => {
  test("ends with a given signal", async () => {
    const run = await runDag(
      beside(n, () => 1),
      { signals: [{ key: "other" }, { key: "ready", value: { n: 4 } }] },
    );
    expect(run.outputs).toEqual({ waits: 4, does: 1 });
    expect(run.signals).toEqual([]);
  });

  test("skips a signal that the schema rejects, in the same try", async () => {
    const run = await runDag(
      beside(
        async (ctx) => [await n(ctx), ctx.tryNumber],
        () => 1,
      ),
      {
        signals: [
          { key: "ready", value: { n: "four" } },
          { key: "ready", value: 5 },
          { key: "ready", value: { n: 6 } },
        ],
      },
    );
    expect(run.outputs["waits"]).toEqual([6, 1]);
    expect(run.logs["waits"]?.map(({ level, message }) => [level, message.split(":")[0]])).toEqual(
      Array(2).fill(["warn", 'ctx.until("s") skips signal "ready"']),
    );
  });

  test("ends with a signal that was sent before it began", async () => {
    const sequence = dag("sequence", (d) => {
      const sends = d.task("sends", async (_, ctx) => (await ctx.send(ready, { n: 5 })).version);
      d.task("waits", { after: sends }, (_, ctx) => n(ctx));
    });
    const run = await runDag(sequence);
    expect(run.outputs).toEqual({ sends: 1, waits: 5 });
    expect(run.signals).toEqual([{ namespace: "default", key: "ready", value: { n: 5 }, version: 1 }]);
  });

  test("ends with a signal that a task sends after a wait of its own", async () => {
    const run = await runDag(
      beside(n, async (ctx) => {
        await ctx.until("night", new TimeDeltaTrigger({ delta: "8h" }));
        await ctx.send(ready, { n: 6 });
      }),
    );
    expect(run.outputs["waits"]).toBe(6);
    expect(run.timeline.find(({ taskId, state }) => taskId === "waits" && state === "success")?.atMs).toBe(
      8 * 3_600_000,
    );
  });

  test("takes one signal after the other", async () => {
    const run = await runDag(
      beside(
        async (ctx) => [await n(ctx, "a"), await n(ctx, "b"), await n(ctx, "c")].join(),
        async (ctx) => {
          for (const value of [1, 2, 3]) await ctx.send(ready, { n: value });
        },
      ),
    );
    expect(run.outputs["waits"]).toBe("1,2,3");
  });

  test("matches conf, value and run", async () => {
    const picky = beside(
      async (ctx) => {
        const mine = await ctx.until("mine", ready.where({ n: conf("n") }));
        const own = await ctx.until("own", ready.inRun());
        const exact = await ctx.until("exact", signal("mode").equals("on"));
        return [mine.value.n, own.value.n, exact.version].join();
      },
      (ctx) => ctx.send(ready, { n: 9 }),
    );
    const signals = [
      { key: "ready", value: { n: 1 } },
      { key: "ready", value: { n: 2 } },
      { key: "mode", value: "off" },
      { key: "mode", value: "on" },
    ];
    expect((await runDag(picky, { conf: { n: 2 }, signals })).outputs["waits"]).toBe("2,9,4");
  });

  test("times out on the clock of the run", async () => {
    const defined = beside(
      (ctx) => ctx.until("s", ready, { timeout: "3d" }).catch((error) => error.code),
      () => 1,
    );
    const run = await runDag(defined);
    expect(run.outputs["waits"]).toBe("TW_WAIT_TIMEOUT");
    expect(run.timeline.at(-1)?.atMs).toBe(3 * 24 * 3_600_000);
  });

  test("fails the test without a timeout and without a signal", async () => {
    await expect(runDag(beside(n, () => 1))).rejects.toMatchObject({
      code: "TW_TEST_NEVER_FIRES",
      message: expect.stringContaining("`signals`"),
    });
  });

  test("prefers an entry in `triggers`", async () => {
    const triggers = { "waits/s": { key: "ready", value: { n: 70 }, version: 70 } };
    const run = await runDag(
      beside(n, () => 1),
      { triggers, signals: [{ key: "ready", value: { n: 1 } }] },
    );
    expect(run.outputs["waits"]).toBe(70);
  });

  test("joins with triggers", async () => {
    const defined = beside(
      async (ctx) => {
        const { ready: r, file } = await ctx.until("both", { ready, file: new FileTrigger({ path: "/a" }) });
        return r.value.n + file.size;
      },
      () => 1,
    );
    const run = await runDag(defined, {
      signals: [{ key: "ready", value: { n: 1 } }],
      triggers: { "tradewind.file": { path: "/a", size: 2, mtime: "" } },
    });
    expect(run.outputs["waits"]).toBe(3);
  });
});

test("sends a signal with onSuccess after the success, and not for a failed try", async () => {
  const retried = dag("retried", (d) => {
    d.task("t", { retries: 1 }, async (_, ctx) => {
      await ctx.send(ready, { n: ctx.tryNumber }, { onSuccess: true });
      if (ctx.tryNumber === 1) throw new Error("once more");
    });
  });
  expect((await runDag(retried)).signals.map(({ value }) => value)).toEqual([{ n: 2 }]);
});

test("rejects a value that is not JSON", async () => {
  const signals = [{ key: "ready", value: 1n }];
  await expect(
    runDag(
      beside(n, () => 1),
      { signals },
    ),
  ).rejects.toMatchObject({ code: "TW_TEST_BAD_OPTION" });
});

describe("a signal with a time", () => {
  const HOUR = 3_600_000;
  const endOf = (run: RunResult) => run.timeline.at(-1)?.atMs;

  test("ends a wait after a duration, or at a moment of the run's clock", async () => {
    const waiting = beside(n, () => 1);
    const late = await runDag(waiting, { signals: [{ key: "ready", value: { n: 1 }, after: "2h" }] });
    expect([late.outputs["waits"], endOf(late)]).toEqual([1, 2 * HOUR]);
    const dated = await runDag(waiting, {
      now: "2026-03-01T00:00:00Z",
      signals: [
        { key: "ready", value: { n: 9 }, at: new Date("2026-03-01T09:00:00Z") },
        { key: "ready", value: { n: 5 }, at: "2026-03-01T05:00:00Z" },
      ],
    });
    expect([dated.outputs["waits"], endOf(dated)]).toEqual([5, 5 * HOUR]);
  });

  test("counts at the moment of the timeout, and not later", async () => {
    const limited = beside(
      async (ctx) => (await ctx.until("s", ready, { timeout: "1h" })).value.n,
      () => 1,
    );
    const given = (after: Duration) =>
      runDag(limited, { signals: [{ key: "ready", value: { n: 1 }, after }] });
    expect((await given("1h")).outputs["waits"]).toBe(1);
    expect((await given("61m")).task("waits").error?.code).toBe("TW_WAIT_TIMEOUT");
  });

  test("does not delay the end of a run", async () => {
    const fine = beside(
      () => 1,
      () => 2,
    );
    expect(endOf(await runDag(fine, { signals: [{ key: "ready", after: "9d" }] }))).toBe(0);
  });

  test("rejects an invalid time", async () => {
    const fine = beside(
      () => 1,
      () => 2,
    );
    const wrong = [
      { after: "soon" as never },
      { at: "never" },
      { at: "2020-01-01T00:00:00Z" },
      { at: "2040-01-01T00:00:00Z", after: "1h" as const },
      { namespace: "action" },
    ];
    for (const when of wrong) {
      await expect(runDag(fine, { signals: [{ key: "ready", ...when }] })).rejects.toMatchObject({
        code: "TW_TEST_BAD_OPTION",
        message: expect.stringContaining("signals[0]"),
      });
    }
  });
});

test.each<[object, string]>([
  [{ signal: [] }, 'unknown option "signal"; did you mean "signals"?'],
  [{ timeout: 7 }, 'unknown option "timeout"; known options: clock, '],
  [{ signals: { key: "a" } }, 'signals must be a list, got {"key":"a"}'],
  [{ signals: ["a"] }, 'signals[0] must be an object like { key: "order.paid", value: 7 }, got "a"'],
  [{ signals: [{ key: "a" }, { value: 7 }] }, "signals[1].key has 1 to 250 characters, got undefined"],
  [{ signals: [{ key: "" }] }, 'signals[0].key has 1 to 250 characters, got ""'],
  [{ signals: [{ key: "a*" }] }, 'signals[0].key "a*" stands for many signals'],
  [{ signals: [{ key: "a", namespace: "x*" }] }, 'signals[0].namespace "x*" stands for many signals'],
  [{ signals: [{ key: "a", afer: "1h" }] }, 'signals[0]: unknown option "afer"; did you mean "after"?'],
  [{ commands: [{ task: "t", actoin: "stop" }] }, 'commands[0]: unknown option "actoin"'],
])("rejects the options %j", async (options, message) => {
  const plain = dag("plain", (d) => void d.task("t", () => 1));
  await expect(runDag(plain, options)).rejects.toMatchObject({
    code: "TW_TEST_BAD_OPTION",
    message: expect.stringContaining(message),
  });
});

test("accepts signals of the engine about other runs", async () => {
  const told = signal("etl/*", undefined, { namespace: "run" });
  const after = dag("after", (d) => void d.task("t", async (_, ctx) => (await ctx.until("end", told)).key));
  const run = await runDag(after, {
    signals: [{ namespace: "run", key: "etl/r1", value: { state: "success" } }],
  });
  expect(run.outputs["t"]).toBe("etl/r1");
});
