import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost, taskCall } from "../../test/attempt-call.ts";
import {
  all,
  conf,
  type Dag,
  dag,
  FileTrigger,
  type IncomingSignal,
  type Json,
  Operator,
  type SignalAction,
  type SignalContext,
  signal,
  start,
  type TaskContext,
} from "../index.ts";
import { PROGRAM, type ReactCall, type ReceivedSignal, type TaskOutcome } from "../runtime/program.ts";
import type { SignalArgs } from "../trigger/builtin-triggers.ts";

const sold = signal("sold", z.object({ id: z.string(), day: z.coerce.date() }), { namespace: "shop" });
const tick = signal("tick");

/** A DAG with one task "t" that runs `run`. */
function one(run: (ctx: TaskContext) => unknown): Dag {
  return dag("x", (d) => void d.task("t", (_, ctx) => run(ctx) as Promise<number>));
}

function argsOf(outcome: TaskOutcome): SignalArgs {
  if (outcome.kind !== "deferred") throw new Error(`not a wait: ${JSON.stringify(outcome)}`);
  return outcome.trigger.args as unknown as SignalArgs;
}

const heard = (key: string, value: unknown, version: number) =>
  ({ kind: "event", value: { key, value, version } }) as never;

describe("ctx.until of a signal", () => {
  test("waits for signals sent since the run started", async () => {
    const run = taskCall(
      one(() => 1),
      "t",
    ).run;
    const outcome = await attempt(
      one((ctx) => ctx.until("s", sold.where({ id: conf("order.id") }).inRun(), { timeout: "1h" })),
      "t",
      { conf: { order: { id: "A-7" } }, run: { ...run, startedAt: "2027-01-04T00:00:00.000Z" } },
    );
    expect(outcome).toEqual({
      kind: "deferred",
      trigger: {
        kind: "tradewind.signal",
        args: {
          namespace: "shop",
          key: "sold",
          where: { id: "A-7" },
          equals: null,
          inRun: { dagId: "x", runId: "manual__1" },
          since: "2027-01-04T00:00:00.000Z",
          after: null,
        } satisfies SignalArgs,
        source: "builtin",
        queue: "default",
        replicas: 1,
        wake: null,
        timed: null,
      },
      method: null,
      name: "s",
      kwargs: {},
      timeoutMs: 3_600_000,
      onTimeout: "resume",
      onFailure: "resume",
    });
  });

  test("returns the value as parsed by the schema", async () => {
    const host = new RecordingHost();
    host.journal["s"] = heard("sold", { id: "7", day: "2027-01-04" }, 5);
    const days: unknown[] = [];
    const defined = one(async (ctx) => {
      const { value, version } = await ctx.until("s", sold);
      days.push(value.day);
      return version;
    });
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success", output: 5 });
    expect(days).toEqual([new Date("2027-01-04")]);
  });

  test("skips a value that the schema rejects, and waits for the next one under a name of its own", async () => {
    const host = new RecordingHost();
    host.journal["s"] = heard("sold", { id: 7 }, 5);
    const defined = one(async (ctx) => (await ctx.until("s", sold, { timeout: "1h" })).version);
    const again = await attempt(defined, "t", { host });
    expect(again).toMatchObject({ kind: "deferred", name: "s (2)", timeoutMs: 3_600_000 });
    expect(argsOf(again).after).toBe(5);
    expect(host.lines).toMatchObject([{ level: "warn", message: expect.stringContaining("skips signal") }]);
    host.journal["s (2)"] = heard("sold", { id: 8 }, 6);
    expect(argsOf(await attempt(defined, "t", { host })).after).toBe(6);
    host.journal["s (3)"] = heard("sold", { id: "9", day: "2027-01-04" }, 7);
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success", output: 7 });
    expect(host.lines).toHaveLength(2);
  });

  test("fails on an invalid value in a joint wait, or if the name of the next wait is taken", async () => {
    const host = new RecordingHost();
    const invalid = { kind: "failed", retry: true, error: { code: "TW_SIGNAL_INVALID" } };
    const joint = one(async (ctx) => void (await ctx.until("both", { a: sold, b: tick })));
    host.journal["both"] = {
      kind: "event",
      value: { a: { key: "sold", value: {}, version: 5 }, b: { key: "tick", value: 1, version: 6 } },
    };
    expect(await attempt(joint, "t", { host })).toMatchObject(invalid);
    host.journal["s"] = heard("sold", { id: 7 }, 5);
    const taken = one(async (ctx) => {
      await ctx.step("s (2)", () => 1);
      await ctx.until("s", sold);
    });
    expect(await attempt(taken, "t", { host })).toMatchObject(invalid);
  });

  test("takes the next signal after those that the task has taken", async () => {
    const host = new RecordingHost();
    const defined = one(async (ctx) => {
      await ctx.until("first", tick);
      await ctx.until("sold", sold);
      await ctx.until("second", tick.equals(3));
    });
    expect(argsOf(await attempt(defined, "t", { host })).after).toBeNull();
    host.journal["first"] = heard("tick", 1, 40);
    expect(argsOf(await attempt(defined, "t", { host }))).toMatchObject({ key: "sold", after: null });
    host.journal["sold"] = heard("sold", { id: "7", day: "2027-01-04" }, 90);
    expect(argsOf(await attempt(defined, "t", { host }))).toMatchObject({ key: "tick", after: 40 });
    host.journal["second"] = heard("tick", 3, 41);
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success" });
  });

  test("takes two signals for two waits that begin at once", async () => {
    const host = new RecordingHost();
    const defined = one((ctx) => Promise.all([ctx.until("a", sold), ctx.until("b", sold)]));
    host.journal["a"] = heard("sold", { id: "7", day: "2027-01-04" }, 6);
    expect(argsOf(await attempt(defined, "t", { host })).after).toBe(6);
  });

  test("joins with triggers and validates each value", async () => {
    const host = new RecordingHost();
    const days: Date[] = [];
    const defined = one(async (ctx) => {
      const { sale, file } = await ctx.until("both", { sale: sold, file: new FileTrigger({ path: "/a" }) });
      days.push(sale.value.day);
      await ctx.until("next", sold);
      return file.size;
    });
    expect(await attempt(defined, "t", { host })).toMatchObject({
      trigger: { kind: "tradewind.all", args: { members: { sale: { kind: "tradewind.signal" } } } },
    });
    host.journal["both"] = {
      kind: "event",
      value: {
        sale: { key: "sold", value: { id: "7", day: "2027-01-04" }, version: 5 },
        file: { path: "/a", size: 3, mtime: "" },
      },
    };
    expect(argsOf(await attempt(defined, "t", { host })).after).toBe(5);
    expect(days).toEqual([new Date("2027-01-04")]);
  });

  test("fails if the conf lacks the value that signals have to match", async () => {
    const defined = one((ctx) => ctx.until("s", sold.where({ id: conf("order.id") })));
    expect(await attempt(defined, "t", { conf: { order: {} } })).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code: "TW_CONF_MISSING", message: expect.stringContaining('"order.id"') },
    });
  });
});

describe("a signal as a trigger", () => {
  test("is a task that waits for signals sent after the wait began", () => {
    const { tasks } = dag("x", (d) => void d.trigger("t", sold.where({ id: "7" })))[PROGRAM].describe();
    expect(tasks[0]!.startTrigger!.trigger).toMatchObject({
      kind: "tradewind.signal",
      args: { key: "sold", where: { id: "7" }, inRun: null, since: null, after: null },
    });
  });

  test.each([
    ["inRun()", sold.inRun()],
    ["conf()", sold.where({ id: conf("id") })],
  ])("rejects %s, because it has no run", (what, leaf) => {
    expect(() => dag("x", (d) => void d.trigger("t", leaf))).toThrowError(
      expect.objectContaining({ code: "TW_BAD_TRIGGER", message: expect.stringContaining(what) }),
    );
  });
});

describe("an operator with onSignal", () => {
  const scored = signal("model.*", z.object({ score: z.number() }));

  class Serve extends Operator<{ least: number }> {
    readonly contexts: SignalContext[] = [];
    constructor(args: { least: number }) {
      super(args);
      this.setSignal(scored);
      this.setSignal(tick);
    }
    override execute() {}
    override async onSignal(heard: IncomingSignal, ctx: SignalContext): Promise<SignalAction> {
      this.contexts.push(ctx);
      if (!scored.is(heard)) return heard.value as SignalAction;
      return heard.value.score >= this.args.least ? "RESTART" : "NONE";
    }
  }

  const serve = new Serve({ least: 0.9 });
  const defined = dag("x", (d) => {
    d.operator("serve", serve);
    d.task("plain", () => 1);
  });

  async function react(key: string, value: unknown, overrides: Partial<ReactCall> = {}) {
    const { run, tryNumber, conf, host } = taskCall(defined, "serve");
    const signal = { namespace: "default", key, value: value as never, version: 12 };
    return defined[PROGRAM].react!({ taskId: "serve", run, tryNumber, conf, host, signal, ...overrides });
  }

  test("lists its signals in the manifest, and none without onSignal", () => {
    expect([...serve.signals]).toEqual([scored, tick]);
    const [task, plain] = defined[PROGRAM].describe().tasks;
    expect(task!.reacts).toEqual([
      { namespace: "default", key: "model.*" },
      { namespace: "default", key: "tick" },
    ]);
    expect(plain).not.toHaveProperty("reacts");
  });

  test("receives the validated value and returns an action", async () => {
    expect(await react("model.prices", { score: 0.95 })).toEqual({ ok: true, action: "RESTART" });
    expect(await react("model.prices", { score: 0.5 })).toEqual({ ok: true, action: "NONE" });
    expect(await react("tick", "STOP")).toEqual({ ok: true, action: "STOP" });
    expect(serve.contexts.at(-1)).toMatchObject({ taskId: "serve", run: { id: "manual__1" } });
  });

  test.each<[string, string, unknown, Partial<ReactCall>, string]>([
    ["a value that the schema rejects", "model.a", { score: "high" }, {}, "TW_SIGNAL_INVALID"],
    ["an invalid action", "tick", "GO", {}, "TW_SIGNAL_ACTION"],
    ["no answer", "tick", undefined, {}, "TW_SIGNAL_ACTION"],
    ["a task that is not there", "tick", "STOP", { taskId: "nowhere" }, "TW_TASK_UNKNOWN"],
  ])("fails on %s", async (_, key, value, overrides, code) => {
    expect(await react(key, value, overrides)).toMatchObject({ ok: false, error: { code } });
  });

  test("returns NONE for a task without onSignal", async () => {
    expect(await react("tick", 1, { taskId: "plain" })).toEqual({ ok: true, action: "NONE" });
  });

  test("accepts only signals", () => {
    expect(() => serve.setSignal("tick" as never)).toThrowError(
      expect.objectContaining({ code: "TW_BAD_SIGNAL" }),
    );
  });
});

describe("ctx.startSignals", () => {
  class Hosted extends RecordingHost {
    readonly signals: readonly ReceivedSignal[];
    constructor(signals: readonly ReceivedSignal[]) {
      super();
      this.signals = signals;
    }
    async startSignals() {
      return this.signals;
    }
  }
  const seen: (string | undefined)[] = [];
  const started = dag("x", (d) => {
    d.task("t", { on: [start(all(tick, sold.where({ id: "7" })))] }, (_, ctx) => {
      const own = ctx.startSignals.find((each) => sold.is(each));
      seen.push(own?.value.day.toISOString());
      return ctx.startSignals.map(({ key, version, invalid }) => [key, version, invalid === null]);
    });
  });
  const of = (key: string, value: Json, version: number) => {
    return { namespace: key === "sold" ? "shop" : "default", key, value, version };
  };

  test("has the signals that started the try, parsed by the schemas of the task's rules", async () => {
    const host = new Hosted([of("tick", 1, 4), of("sold", { id: "7", day: "2027-01-04" }, 5)]);
    const outcome = await attempt(started, "t", { host, startSignals: [4, 5] });
    expect(outcome).toMatchObject({
      kind: "success",
      output: [
        ["tick", 4, true],
        ["sold", 5, true],
      ],
    });
    expect(seen.at(-1)).toBe("2027-01-04T00:00:00.000Z");
  });

  test("warns about an invalid value or a lost signal, and continues", async () => {
    const host = new Hosted([of("sold", { id: "7", day: "x" }, 5)]);
    const outcome = await attempt(started, "t", { host, startSignals: [4, 5] });
    expect(outcome).toMatchObject({ kind: "success", output: [["sold", 5, false]] });
    expect(seen.at(-1)).toBeUndefined();
    expect(host.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining("no longer has all signals that started this task: 4"),
      expect.stringContaining("started by an invalid signal"),
    ]);
  });

  test("is empty for other starts, and retries if the log cannot be read", async () => {
    expect(await attempt(started, "t")).toMatchObject({ kind: "success", output: [] });
    const host = new RecordingHost();
    const startSignals = () =>
      Promise.reject(Object.assign(new Error("away"), { code: "TASK_SERVICE_FAILED" }));
    Object.assign(host, { startSignals });
    expect(await attempt(started, "t", { host, startSignals: [4] })).toMatchObject({
      kind: "failed",
      retry: true,
      error: { message: "away" },
    });
  });
});
