import {
  all,
  cron,
  dag,
  type IncomingSignal,
  Operator,
  restart,
  SignalAction,
  signal,
  start,
  stop,
  TimeDeltaTrigger,
} from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { type RunProgress, type RunResult, runDag } from "./index.ts";

const [a, b, over] = [signal<number>("a"), signal<number>("b"), signal("over")];
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const aborted = (abort: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (abort.aborted) resolve();
    abort.addEventListener("abort", () => resolve(), { once: true });
  });
const given = (...keys: string[]) => keys.map((key) => ({ key }));
const tries = (run: RunResult, taskId: string) => run.task(taskId).history.map(({ state }) => state);
const asked = ({ actions }: RunResult) =>
  actions.map(({ taskId, action, by }) => `${action} ${taskId ?? "run"}: ${by}`);

describe("rules", () => {
  const counted = dag("counted", { stop: over }, (d) => {
    const train = d.task("train", { on: [start(a)] }, (_, ctx) => ctx.tryNumber * 10);
    const check = d.task("check", { inputs: { train } }, ({ train }) => train + 1);
    d.task("both", { on: [start(all(a, b), { once: true })] }, () => "both");
    d.task("after", { on: [start(check)] }, () => "after");
    d.task("plain", () => "plain");
  });

  test("start a task once for every signal, with its downstream tasks", async () => {
    const run = await runDag(counted, {
      signals: [...given("a", "a", "b", "a"), { key: "over", after: "1m" }],
    });
    expect(run).toMatchObject({ state: "success", closedBy: "over" });
    expect(run.task("train")).toMatchObject({ state: "success", tries: 3, output: 30 });
    expect(run.task("train").history.map(({ tryNumber, output }) => [tryNumber, output])).toEqual([
      [1, 10],
      [2, 20],
      [3, 30],
    ]);
    expect(run.task("check").output).toBe(31);
    expect(run.task("both").tries).toBe(1);
    expect(run.task("plain").tries).toBe(1);
  });

  test("pass the starting signals to every try of a task", async () => {
    const seen: string[] = [];
    const c = signal<number>("c");
    const told = dag("told", { stop: over }, (d) => {
      d.task("train", { on: [start(a)], retries: 1, retryDelay: "1s" }, (_, ctx) => {
        const n = ctx.startSignals.find((heard) => a.is(heard))?.value;
        seen.push(`train ${n}`);
        if (n === 2 && seen.filter((each) => each === "train 2").length === 1) throw new Error("once more");
      });
      d.task("serve", { lifetime: "streaming", on: [start(all(a, b)), restart(c)] }, async (_, ctx) => {
        seen.push(`serve ${ctx.startSignals.map(({ key, value, version }) => `${key}=${value}@${version}`)}`);
        await aborted(ctx.abort);
      });
      d.task("plain", (_, ctx) => void seen.push(`plain ${ctx.startSignals.length}`));
    });
    const signals = [
      ...[1, 2, 3].map((value) => ({ key: "a", value })),
      { key: "b", value: 4, after: "1m" as const },
      { key: "c", value: 5, after: "2m" as const },
      { key: "over", after: "3m" as const },
    ];
    await runDag(told, { signals, settle: "1s" });
    expect(seen.filter((each) => each.startsWith("train"))).toEqual([
      "train 1",
      "train 2",
      "train 2",
      "train 3",
    ]);
    expect(seen.filter((each) => !each.startsWith("train"))).toEqual([
      "plain 0",
      "serve a=3@3,b=4@4",
      "serve c=5@5,a=3@3,b=4@4",
    ]);
  });

  test("receive a signal at its time and record their actions", async () => {
    const signals = [1, 2, 3].map((hours) => ({ key: "a", after: `${hours}h` as const }));
    const run = await runDag(counted, { signals: [...signals, { key: "over", after: "4h" }] });
    expect(run.task("train").history.map(({ startedMs }) => startedMs / HOUR)).toEqual([1, 2, 3]);
    expect(run.task("check").tries).toBe(3);
    expect(asked(run)).toEqual([
      "start train: a",
      "start after: check",
      "start train: a",
      "start after: check",
      "start train: a",
      "start after: check",
      "stop run: over",
    ]);
    expect(run.actions.at(-1)?.atMs).toBe(4 * HOUR);
  });

  test("close an idle run and skip tasks that never started", async () => {
    const run = await runDag(counted);
    expect(run).toMatchObject({ state: "success", closedBy: "idle" });
    expect(run.states).toEqual({
      train: "skipped",
      check: "skipped",
      both: "skipped",
      after: "skipped",
      plain: "success",
    });
    expect(run.task("train")).toMatchObject({
      tries: 0,
      history: [],
      reason: "the run was closed by the end of the test",
    });
    expect(run.timeline.at(-1)?.atMs).toBe(0);
  });

  test("receive signals of the run's tasks and match conf and value", async () => {
    const chained = dag("chained", (d) => {
      d.task("source", async (_, ctx) => {
        for (const value of [1, 2, 3]) await ctx.send(a, value);
        await ctx.send(b, 1, { onSuccess: true });
      });
      d.task("twos", { on: [start(a.equals(2))] }, () => "two");
      d.task("all", { on: [start(a.inRun())] }, () => "each");
      d.task("last", { on: [start(b)] }, (_, ctx) => ctx.send(over));
      d.task("never", { on: [start(signal("c"))] }, () => 1);
    });
    const run = await runDag(chained, { signals: [{ key: "a", value: 7 }] });
    expect(run.task("twos").tries).toBe(1);
    expect(run.task("all").tries).toBe(3);
    expect(run.states["never"]).toBe("skipped");
    expect(run.signals.map(({ key }) => key)).toEqual(["a", "a", "a", "b", "over"]);
  });

  test("fail a run that times out while tasks could still start", async () => {
    const timed = dag("timed", { runTimeout: "30m" }, (d) => {
      d.task("never", { on: [start(a)] }, () => 1);
    });
    expect(await runDag(timed)).toMatchObject({ state: "failed", reason: "timed_out", closedBy: null });
    expect(await runDag(timed, { until: "10m" })).toMatchObject({ state: "success", closedBy: "until" });
  });

  test("are rejected if they start each other forever", async () => {
    const loop = dag("loop", (d) => {
      const first = d.task("first", { on: [start(a), start(b)] }, (_, ctx) => ctx.send(a, 1));
      d.task("second", { after: first }, () => 2);
    });
    await expect(runDag(loop, { signals: given("a") })).rejects.toMatchObject({
      code: "TW_TEST_ENDLESS",
      message: expect.stringContaining('task "first" has run 10000 times within 0 s'),
    });
  });
});

describe("streaming tasks", () => {
  const serving = dag("serving", { stop: signal("shut") }, (d) => {
    const on = [restart(signal("model")), stop(signal("halt")), start(signal("go"))];
    d.task("serve", { lifetime: "streaming", on }, async (_, ctx) => {
      await aborted(ctx.abort);
      return `${ctx.tryNumber}: ${(ctx.abort.reason as Error).message}`;
    });
  });

  test("are started, restarted hot and stopped by signals", async () => {
    const keys = ["go", "model", "halt", "go", "shut"];
    const signals = keys.map((key, index) => ({ key, after: `${index}h` as const }));
    const run = await runDag(serving, { signals });
    expect(run).toMatchObject({ state: "success", closedBy: "shut" });
    expect(run.task("serve").history).toMatchObject([
      { tryNumber: 1, state: "success", output: undefined, reason: "restarted by model", endedMs: HOUR },
      { tryNumber: 2, state: "success", output: "2: stopped by halt", startedMs: HOUR, endedMs: 2 * HOUR },
      {
        tryNumber: 3,
        state: "success",
        output: "3: stopped by shut",
        startedMs: 3 * HOUR,
        endedMs: 4 * HOUR,
      },
    ]);
    expect(run.timeline.map(({ tryNumber, state }) => `${state} ${tryNumber}`)).toEqual([
      "running 1",
      "restarting 1",
      "running 2",
      "success 2",
      "running 3",
      "success 3",
    ]);
    expect(asked(run)).toEqual([
      "start serve: go",
      "restart serve: model",
      "stop serve: halt",
      "start serve: go",
      "stop run: shut",
    ]);
  });

  test("are stopped when the run is idle", async () => {
    const run = await runDag(serving, { signals: given("go") });
    expect(run.closedBy).toBe("idle");
    expect(run.task("serve")).toMatchObject({
      state: "success",
      output: "1: stopped by the end of the test",
    });
  });

  test("may pause for less than `settle`", async () => {
    const slow = dag("slow", (d) => {
      d.task("stream", { lifetime: "streaming" }, async (_, ctx) => {
        for (let value = 1; value <= 3; value++) {
          await new Promise((resolve) => setTimeout(resolve, 30));
          await ctx.send(a, value);
        }
        await aborted(ctx.abort);
      });
      d.task("each", { on: [start(a)] }, () => 1);
    });
    const run = await runDag(slow, { settle: "2s" });
    expect(run.closedBy).toBe("idle");
    expect(run.task("each").tries).toBe(3);
  });

  test("are restarted with a growing delay, which resets after a healthy period", async () => {
    const flaky = dag("flaky", (d) => {
      d.task("stream", { lifetime: "streaming" }, async (_, ctx) => {
        if (ctx.tryNumber <= 3) throw new Error("no");
        await aborted(ctx.abort);
      });
    });
    const run = await runDag(flaky);
    expect(tries(run, "stream")).toEqual(["failed", "failed", "failed", "success"]);
    const starts = run.task("stream").history.map(({ startedMs }) => startedMs);
    for (const [index, delay] of [1_000, 2_000, 4_000].entries())
      expect(starts[index + 1]! - starts[index]!).toBeGreaterThanOrEqual(delay);
    expect(run.task("stream").error).toBeUndefined();
  });

  test("end with the batch tasks if endWhen is batchDone", async () => {
    const batch = dag("batch", { endWhen: "batchDone" }, (d) => {
      const source = d.task("source", { lifetime: "streaming" }, (_, ctx) => aborted(ctx.abort));
      const one = d.task("one", () => 1);
      d.task("two", { after: [one] }, () => 2);
      d.task("next", { after: [source], lifetime: "streaming" }, () => 3);
    });
    const run = await runDag(batch);
    expect(run).toMatchObject({ state: "success", closedBy: "the end of its batch tasks" });
    expect(run.states).toEqual({ source: "success", one: "success", two: "success", next: "skipped" });
  });

  test("leave room for batch tasks, which run one at a time", async () => {
    const mixed = dag("mixed", (d) => {
      for (const id of ["s1", "s2"]) d.task(id, { lifetime: "streaming" }, (_, ctx) => aborted(ctx.abort));
      d.task("batch", () => 1);
    });
    const run = await runDag(mixed, { concurrency: 1 });
    expect(run.timeline.slice(0, 4).map(({ taskId, state }) => `${taskId} ${state}`)).toContain(
      "batch success",
    );
  });

  test("run onSuccess when they are stopped, and no callback when they are restarted", async () => {
    const calls: string[] = [];
    const told = dag("told", (d) => {
      d.task(
        "quits",
        {
          lifetime: "streaming",
          on: [restart(a)],
          onSuccess: (ctx) => void calls.push(`quits ${ctx.tryNumber}`),
        },
        (_, ctx) => aborted(ctx.abort),
      );
      d.task(
        "throws",
        {
          lifetime: "streaming",
          onSuccess: () => void calls.push("throws"),
          onFailure: () => void calls.push("no"),
        },
        (_, ctx) => aborted(ctx.abort).then(() => Promise.reject(new Error("stopped in the middle"))),
      );
    });
    const run = await runDag(told, { signals: [{ key: "a", after: "1m" }] });
    expect(run.states).toEqual({ quits: "success", throws: "success" });
    expect(calls.toSorted()).toEqual(["quits 2", "throws"]);
  });

  test("are named if they ignore a stop or never pause", async () => {
    const deaf = dag("deaf", (d) => {
      d.task("stream", { lifetime: "streaming", grace: "10ms" }, () => new Promise<void>(() => {}));
    });
    await expect(runDag(deaf)).rejects.toMatchObject({
      code: "TW_TEST_NOT_STOPPED",
      message: expect.stringContaining(
        'task "stream" was stopped by the end of the test and still runs; it must end',
      ),
    });
    const endless = dag("endless", (d) => {
      d.task("stream", { lifetime: "streaming" }, async (_, ctx) => {
        while (!ctx.abort.aborted) await ctx.send(a, 1);
      });
    });
    await expect(runDag(endless)).rejects.toMatchObject({ code: "TW_TEST_ENDLESS" });
  });

  test("run until the end of `until` on a real clock", async () => {
    const run = await runDag(serving, { clock: "real", until: 100, signals: given("go") });
    expect(run.closedBy).toBe("until");
    expect(run.task("serve").output).toBe("1: stopped by the end of the test");
  });
});

describe("batch tasks", () => {
  const slow = dag("slow", (d) => {
    d.task("slow", { on: [start(a), stop(b), restart(over)], retries: 2 }, async (_, ctx) => {
      await aborted(ctx.abort);
      if (ctx.tryNumber === 3) return "through nevertheless";
      throw new Error("given up");
    });
  });

  test("are skipped when they are stopped without a success, and begin again on a restart", async () => {
    const signals = ["a", "over", "b", "a", "b"].map((key, at) => ({ key, after: `${at + 1}m` as const }));
    const run = await runDag(slow, { signals, settle: "20ms" });
    expect(run.task("slow").history).toMatchObject([
      { state: "skipped", reason: "restarted by over", startedMs: MINUTE, endedMs: 2 * MINUTE },
      { state: "skipped", reason: "stopped by b", endedMs: 3 * MINUTE },
      { state: "success", output: "through nevertheless", error: undefined, endedMs: 5 * MINUTE },
    ]);
  });

  test("hold the clock while they work, if nothing can stop them", async () => {
    const busy = dag("busy", (d) => {
      d.task("works", { on: [start(a)] }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 60));
      });
    });
    const signals = [{ key: "a" }, { key: "a", after: "1h" as const }];
    const run = await runDag(busy, { signals, settle: "1ms" });
    expect(run.task("works").history.map(({ endedMs }) => endedMs)).toEqual([0, HOUR]);
  });

  test("are stopped and restarted while they wait", async () => {
    const waiting = dag("waiting", (d) => {
      d.task("waits", { on: [start(a), stop(b), restart(over)] }, async (_, ctx) => {
        await ctx.until("night", new TimeDeltaTrigger({ delta: "8h" }));
        return ctx.tryNumber;
      });
    });
    const at = (key: string, hours: number) => ({ key, after: `${hours}h` as const });
    const run = await runDag(waiting, { signals: [at("a", 0), at("over", 2), at("b", 3), at("a", 4)] });
    expect(run.task("waits").history.map(({ state, endedMs }) => [state, endedMs / HOUR])).toEqual([
      ["skipped", 2],
      ["skipped", 3],
      ["success", 12],
    ]);
    expect(run.timeline.at(-1)?.atMs).toBe(12 * HOUR);
  });
});

describe("tasks with times of their own", () => {
  test("run at each time until `until`", async () => {
    const ticking = dag("ticking", { stop: over }, (d) => {
      d.task("tick", { every: "10m" }, () => "tick");
    });
    const hour = await runDag(ticking, { until: "1h" });
    expect(hour.closedBy).toBe("until");
    expect(hour.task("tick").history.map(({ startedMs }) => startedMs / MINUTE)).toEqual([
      10, 20, 30, 40, 50, 60,
    ]);
    expect(asked(hour)[0]).toBe("start tick: its time");
    expect((await runDag(ticking)).task("tick").tries).toBe(144);
    const stopped = await runDag(ticking, { signals: [{ key: "over", after: "25m" }] });
    expect(stopped.task("tick").tries).toBe(2);
    expect((await runDag(ticking, { signals: [{ key: "other", after: "2d" }] })).task("tick").tries).toBe(
      288,
    );
  });

  test("follow daylight saving time", async () => {
    const daily = dag("daily", (d) => {
      d.task("report", { every: cron("0 6 * * *", "Europe/Berlin") }, () => 1);
      d.task("serve", { lifetime: "streaming" }, (_, ctx) => aborted(ctx.abort));
    });
    const run = await runDag(daily, { now: "2026-03-28T00:00:00Z", until: "3d" });
    // The night of the 29th is an hour shorter.
    expect(run.task("report").history.map(({ startedMs }) => startedMs / HOUR)).toEqual([5, 28, 52]);
    expect(run.task("serve").tries).toBe(1);
  });

  test("are rejected with the remedy if there are too many", async () => {
    const busy = dag("busy", (d) => void d.task("tick", { every: "1s" }, () => 1));
    await expect(runDag(busy)).rejects.toMatchObject({
      code: "TW_TEST_ENDLESS",
      message: expect.stringContaining('let "until" end the run earlier'),
    });
    await expect(runDag(busy, { until: "soon" as never })).rejects.toMatchObject({
      code: "TW_TEST_BAD_OPTION",
    });
  });
});

describe("onSignal", () => {
  const score = signal<number>("score");
  class Judge extends Operator<{ limit: number }, number> {
    constructor(args: { limit: number }) {
      super(args);
      this.setSignal(score);
    }
    execute() {
      return this.args.limit;
    }
    override onSignal({ value }: IncomingSignal) {
      if (value === -1) throw new Error("negative");
      return (value as number) > this.args.limit ? SignalAction.START : SignalAction.NONE;
    }
  }
  const reacting = dag("reacting", { stop: over }, (d) => {
    d.operator("judge", new Judge({ limit: 5 }));
    d.task("sends", { on: [start(a)] }, (_, ctx) => ctx.send(score, 7));
  });

  test("receives signals in order, and its actions are applied", async () => {
    const scores = [3, 9, 4, 8].map((value) => ({ key: "score", value }));
    const run = await runDag(reacting, { signals: [...scores, { key: "a" }] });
    expect(run.task("judge").tries).toBe(3);
    expect(asked(run).filter((each) => each.includes("judge"))).toHaveLength(3);
    expect(run.closedBy).toBe("idle");
  });

  test("is retried if it fails, then the signal is a dead letter and the next one follows", async () => {
    const signals = [-1, 6].map((value) => ({ key: "score", value }));
    const run = await runDag(reacting, { signals });
    expect(run.deadLetters).toEqual([{ taskId: "judge", key: "score", version: 1, error: "negative" }]);
    expect(run.logs["judge"]).toHaveLength(5);
    expect(run.task("judge").history).toMatchObject([{ startedMs: 15_000, state: "success" }]);
  });
});

describe("manual commands", () => {
  const ordinary = dag("ordinary", (d) => {
    const first = d.task("first", () => 1);
    d.task("second", { after: [first] }, () => 2);
    d.task("long", async (_, ctx) => {
      if (ctx.tryNumber === 1) await aborted(ctx.abort).then(() => Promise.reject(new Error("given up")));
      return ctx.tryNumber;
    });
  });

  test("start, restart and stop tasks of any run", async () => {
    const run = await runDag(ordinary, {
      settle: "20ms",
      commands: [
        { task: "first", action: "start", after: "1m" },
        { task: "long", action: "restart", after: "2m", by: "Ann" },
      ],
    });
    expect(run).toMatchObject({ state: "success", closedBy: null });
    expect([run.task("first").tries, run.task("second").tries, run.task("long").output]).toEqual([2, 2, 2]);
    expect(asked(run)).toEqual(["start first: user", "restart long: Ann"]);
    const stopped = await runDag(ordinary, {
      settle: "20ms",
      commands: [{ task: "long", action: "stop", after: "1m" }],
    });
    expect(stopped.task("long")).toMatchObject({ state: "skipped", reason: "stopped by user" });
  });

  test("close a run", async () => {
    const open = dag("open", (d) => void d.task("t", { on: [start(a)] }, () => 1));
    const run = await runDag(open, {
      signals: [{ key: "a", after: "2h" }],
      commands: [{ action: "stop", after: "1h" }],
    });
    expect(run).toMatchObject({ closedBy: "user", states: { t: "skipped" } });
  });

  test("are rejected if they are invalid", async () => {
    for (const order of [
      { task: "unknown", action: "stop" },
      { action: "start" },
      { task: "long", action: "go" },
    ])
      await expect(runDag(ordinary, { commands: [order as never] })).rejects.toMatchObject({
        code: "TW_TEST_BAD_OPTION",
        message: expect.stringContaining("commands[0]"),
      });
  });
});

test("reports every step with its cause", async () => {
  const events: RunProgress[] = [];
  const told = dag("told", { stop: over }, (d) => {
    d.task("train", { on: [start(a)] }, (_, ctx) => void ctx.send(b, 2, { onSuccess: true }));
    d.task("serve", { lifetime: "streaming", on: [restart(b)] }, (_, ctx) => aborted(ctx.abort));
  });
  await runDag(told, {
    signals: [
      { key: "a", after: "1m" },
      { key: "over", after: "2m" },
    ],
    onEvent: (event) => events.push(event),
  });
  const short = events.map((event) => {
    const { type, taskId } = event;
    if (type === "signal") return `${type} ${event.key} from ${taskId}`;
    if (type === "action") return `${event.action} ${taskId} by ${event.by}`;
    return type === "ended" ? `${type} ${taskId} ${event.state} (${event.reason})` : `${type} ${taskId}`;
  });
  expect(short).toEqual([
    "started serve",
    "signal a from null",
    "start train by a",
    "started train",
    "signal b from train",
    "ended train success (null)",
    "restart serve by b",
    "ended serve success (restarted by b)",
    "started serve",
    "signal over from null",
    "stop null by over",
    "ended serve success (null)",
  ]);
  expect(JSON.parse(JSON.stringify(events))).toBeTruthy();
});
