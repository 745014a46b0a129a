import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import { type Dag, dag, Operator, signal, skip, type TaskContext } from "../index.ts";
import type { SignalToSend } from "../runtime/program.ts";

const sold = signal("sold", z.object({ id: z.string(), units: z.number().default(1) }), {
  namespace: "shop",
});
const tick = signal("tick");

/** A DAG with one task "t" that runs `run`. */
function one(run: (ctx: TaskContext) => unknown): Dag {
  return dag("x", (d) => void d.task("t", (_, ctx) => run(ctx) as Promise<number>));
}

describe("ctx.send", () => {
  test("stores a signal as given and returns its version", async () => {
    const host = new RecordingHost();
    const outcome = await attempt(
      one(async (ctx) => [await ctx.send(sold, { id: "7" }), await ctx.send(tick)]),
      "t",
      { host },
    );
    expect(host.sent).toEqual([
      { namespace: "shop", key: "sold", value: { id: "7" } },
      { namespace: "default", key: "tick", value: null },
    ]);
    expect(outcome).toEqual({ kind: "success", output: [{ version: 1 }, { version: 2 }], skip: [] });
  });

  test("sends a signal that is not awaited before the attempt ends", async () => {
    const host = new RecordingHost();
    const stored = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    host.send = async (signal: SignalToSend) => {
      arrived.resolve();
      await stored.promise;
      return { version: host.sent.push(signal) };
    };
    let isOver = false;
    const over = attempt(
      one((ctx) => void ctx.send(tick)),
      "t",
      { host },
    ).then(() => {
      isOver = true;
    });
    await arrived.promise;
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    stored.resolve();
    await over;
    expect(host.sent).toHaveLength(1);
  });

  test("sends a signal in a step once per try, with any waits", async () => {
    const host = new RecordingHost();
    const defined = one(async (ctx) => {
      await ctx.step("tell", () => ctx.send(tick, 1));
      await ctx.until("more", tick);
    });
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "deferred" });
    host.journal["more"] = { kind: "event", value: { key: "tick", value: 2, version: 9 } };
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success" });
    expect(host.sent).toHaveLength(1);
  });
});

describe("ctx.send with onSuccess", () => {
  test("adds signals only to the outcome, in the order of the calls", async () => {
    const host = new RecordingHost();
    const slow = signal(
      "slow",
      z.string().refine(async () => new Promise<boolean>((ok) => setImmediate(ok, true))),
    );
    const outcome = await attempt(
      one(async (ctx) => {
        void ctx.send(slow, "first", { onSuccess: true });
        expect(await ctx.send(sold, { id: "7", units: 2 }, { onSuccess: true })).toBeUndefined();
        return 1;
      }),
      "t",
      { host },
    );
    expect(host.sent).toEqual([]);
    expect(outcome).toEqual({
      kind: "success",
      output: 1,
      skip: [],
      signals: [
        { namespace: "default", key: "slow", value: "first" },
        { namespace: "shop", key: "sold", value: { id: "7", units: 2 } },
      ],
    });
  });

  test.each<[string, (ctx: TaskContext) => unknown]>([
    ["fails", () => Promise.reject(new Error("no"))],
    ["is skipped", () => skip("no")],
    ["waits", (ctx) => ctx.until("a", tick)],
  ])("sends nothing if the attempt %s", async (_, end) => {
    const host = new RecordingHost();
    const outcome = await attempt(
      one(async (ctx) => {
        await ctx.send(tick, 1, { onSuccess: true });
        return end(ctx);
      }),
      "t",
      { host },
    );
    expect(outcome.kind).not.toBe("success");
    expect(outcome).not.toHaveProperty("signals");
    expect(host.sent).toEqual([]);
  });

  test("sends signals of a branch", async () => {
    const branching = dag("x", (d) => {
      const t = d.branch("t", async (_, ctx) => {
        await ctx.send(tick, 1, { onSuccess: true });
        return "a";
      });
      d.task("a", { after: t }, () => 1);
    });
    expect(await attempt(branching, "t")).toMatchObject({ signals: [{ key: "tick", value: 1 }] });
  });

  test("rejects a call inside a step, which would be lost after a wait", async () => {
    const defined = one((ctx) =>
      ctx.step("s", async () => void (await ctx.send(tick, 1, { onSuccess: true }))),
    );
    expect(await attempt(defined, "t")).toMatchObject({ kind: "failed", error: { code: "TW_STEP_NESTED" } });
  });

  test("rejects a deferral of an operator after the call", async () => {
    class Deferring extends Operator<void, number> {
      override async execute(ctx: TaskContext) {
        await ctx.send(tick, 1, { onSuccess: true });
        return this.defer({ trigger: signal("other"), method: "later" });
      }
      later() {
        return 1;
      }
    }
    expect(
      await attempt(
        dag("x", (d) => void d.operator("t", new Deferring())),
        "t",
      ),
    ).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code: "TW_SIGNAL_LOST", message: expect.stringContaining('"tick"') },
    });
  });
});

describe("an invalid call of ctx.send", () => {
  test.each<[string, (ctx: TaskContext) => unknown, string, RegExp]>([
    [
      "a value that the schema rejects",
      (ctx) => ctx.send(sold, { id: 7 } as never),
      "TW_SIGNAL_INVALID",
      /"sold": value: id:/,
    ],
    [
      "a Date",
      (ctx) => ctx.send(tick, { at: new Date() } as never),
      "TW_SIGNAL_INVALID",
      /value\.at is a Date/,
    ],
    [
      "more than 1 MB",
      (ctx) => ctx.send(tick, "x".repeat(1_048_576)),
      "TW_SIGNAL_INVALID",
      /send its address/,
    ],
    ["many signals at once", (ctx) => ctx.send(signal("a.*"), 1), "TW_BAD_SIGNAL", /stands for many/],
    [
      "a signal of the engine's",
      (ctx) => ctx.send(signal("a", undefined, { namespace: "task" })),
      "TW_BAD_SIGNAL",
      /belongs to the engine/,
    ],
    [
      "a part of a signal",
      (ctx) => ctx.send(sold.inRun() as never, { id: "" }),
      "TW_BAD_SIGNAL",
      /the result of signal\(\)/,
    ],
    ["a text", (ctx) => ctx.send("tick" as never, 1), "TW_BAD_SIGNAL", /got "tick"/],
    [
      "an option that is misspelt: it would be sent at once",
      (ctx) => ctx.send(tick, 1, { onSucces: true } as never),
      "TW_BAD_SIGNAL",
      /ctx\.send\("tick"\): unknown option "onSucces"; did you mean "onSuccess"\?/,
    ],
    [
      "an option with another value",
      (ctx) => ctx.send(tick, 1, { onSuccess: "yes" } as never),
      "TW_BAD_SIGNAL",
      /onSuccess must be true or false, got "yes"/,
    ],
    [
      "options that are not an object",
      (ctx) => ctx.send(tick, 1, true as never),
      "TW_BAD_SIGNAL",
      /got true/,
    ],
  ])("rejects %s", async (_, send, code, says) => {
    const host = new RecordingHost();
    const outcome = await attempt(one(send), "t", { host });
    expect(outcome).toMatchObject({ kind: "failed", error: { code, message: expect.stringMatching(says) } });
    expect(host.sent).toEqual([]);
  });

  test("rejects a call after the attempt has ended", async () => {
    let late: TaskContext | undefined;
    const host = new RecordingHost();
    await attempt(
      one((ctx) => {
        late = ctx;
      }),
      "t",
      { host },
    );
    await expect(late!.send(tick)).rejects.toThrow("already ended");
    expect(host.sent).toEqual([]);
  });
});

test("rejects an invalid argument of ctx.until and names the accepted ones", async () => {
  for (const [what, got] of [
    ["x", '"x"'],
    [{ one: tick, two: 7 }, "7 for two"],
  ] as const) {
    const outcome = await attempt(
      one((ctx) => ctx.until("x", what as never)),
      "t",
    );
    expect(outcome).toMatchObject({
      kind: "failed",
      error: {
        message: expect.stringContaining(`takes a trigger, a signal, or an object of these, got ${got}`),
      },
    });
  }
});
