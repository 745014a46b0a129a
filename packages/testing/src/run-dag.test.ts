import { type CallbackContext, cron, dag, fail, type Output, skip, TaskError } from "@tradewind/sdk";
import { expect, test } from "vitest";
import { z } from "zod";
import { type RunProgress, runDag } from "./index.ts";

test("passes outputs along the edges and returns states and outputs", async () => {
  const sales = dag("sales", { params: z.object({ factor: z.number().default(2) }) }, (d) => {
    const rows = d.task("rows", () => [1, 2, 3]);
    const scaled = d.task("scaled", { inputs: { rows } }, ({ rows }, ctx) =>
      rows.map((n) => n * ctx.params.factor),
    );
    d.task(
      "sum",
      { inputs: { rows, scaled } },
      ({ rows, scaled }) => rows.length + scaled.reduce((a, b) => a + b),
    );
    d.task("nothing", { after: scaled }, () => {});
  });
  const run = await runDag(sales, { conf: { factor: 10 } });
  expect(run).toMatchObject({ state: "success", reason: null });
  expect(run.states).toEqual({ rows: "success", scaled: "success", sum: "success", nothing: "success" });
  expect(run.outputs).toEqual({ rows: [1, 2, 3], scaled: [10, 20, 30], sum: 63 });
  expect(() => run.task("gone")).toThrow(
    'the run has no task "gone"; its tasks are rows, scaled, sum, nothing',
  );
});

test("copies outputs, so that a task cannot change the input of another", async () => {
  const shared = dag("shared", (d) => {
    const list = d.task("list", () => [1]);
    const spoiler = d.task("spoiler", { inputs: { list } }, ({ list }) => void list.push(2));
    d.task("reader", { inputs: { list }, after: spoiler }, ({ list }) => list.length);
  });
  expect((await runDag(shared)).outputs["reader"]).toBe(1);
});

test("waits for retries on the virtual clock", async () => {
  const flaky = dag("flaky", (d) => {
    const first = d.task("first", { retries: 3, retryDelay: "2h" }, (_, ctx) => {
      if (ctx.tryNumber < 3) throw new Error(`try ${ctx.tryNumber}`);
      return ctx.tryNumber;
    });
    d.task("second", { after: first }, () => {});
  });
  const started = performance.now();
  const run = await runDag(flaky);
  expect(performance.now() - started).toBeLessThan(10_000);
  expect(run.task("first")).toMatchObject({ state: "success", tries: 3, output: 3, error: undefined });
  expect(
    run.timeline.map(({ atMs, taskId, tryNumber, state }) => [atMs / 3_600_000, taskId, tryNumber, state]),
  ).toEqual([
    [0, "first", 1, "running"],
    [0, "first", 1, "up_for_retry"],
    [2, "first", 2, "running"],
    [2, "first", 2, "up_for_retry"],
    [4, "first", 3, "running"],
    [4, "first", 3, "success"],
    [4, "second", 1, "running"],
    [4, "second", 1, "success"],
  ]);
});

test("applies failures, skips and rules like the engine", async () => {
  const mixed = dag("mixed", (d) => {
    const bad = d.task("bad", { retries: 5 }, () => fail("no use"));
    const skipped = d.task("skipped", () => skip("not today"));
    d.task("behind_bad", { inputs: { bad } }, () => 1);
    d.task("behind_skipped", { inputs: { skipped } }, () => 1);
    d.task("cleanup", { inputs: { bad, skipped }, rule: "allDone" }, ({ bad, skipped }) => [
      bad.state,
      skipped.state,
    ]);
  });
  const run = await runDag(mixed);
  expect(run).toMatchObject({ state: "failed", reason: "task_failure" });
  expect(run.states).toEqual({
    bad: "failed",
    skipped: "skipped",
    behind_bad: "upstream_failed",
    behind_skipped: "skipped",
    cleanup: "success",
  });
  expect(run.task("bad")).toMatchObject({ tries: 1, error: { message: "no use" } });
  expect(run.task("behind_bad")).toMatchObject({ tries: 0, error: undefined });
  expect(run.outputs).toEqual({ cleanup: ["failed", "skipped"] });
});

test("skips the tasks that a branch and a short circuit exclude", async () => {
  const chosen = dag("chosen", (d) => {
    const branch = d.branch("branch", () => "left");
    const left = d.task("left", { after: branch }, () => 1);
    const right = d.task("right", { after: branch }, () => 1);
    d.task("right_too", { after: right }, () => 1);
    d.task("join", { after: [left, right], rule: "noneFailedMinOneSuccess" }, () => 1);
    const closed = d.shortCircuit("closed", () => false);
    const one = d.task("one", { after: closed }, () => 1);
    d.task("two", { after: one, rule: "allDone" }, () => 1);
  });
  const run = await runDag(chosen);
  expect(run.state).toBe("success");
  expect(run.states).toEqual({
    branch: "success",
    left: "success",
    right: "skipped",
    right_too: "skipped",
    join: "success",
    closed: "success",
    one: "skipped",
    two: "skipped",
  });
});

test("does not run a queued task that a branch excludes", async () => {
  let hasRun = false;
  const line = dag("line", (d) => {
    const branch = d.branch("branch", { priority: 100 }, () => null);
    d.task("eager", { after: branch, rule: "always" }, () => {
      hasRun = true;
    });
  });
  const run = await runDag(line, { concurrency: 1 });
  expect(run.states).toEqual({ branch: "success", eager: "skipped" });
  expect(hasRun).toBe(false);
});

test("builds the context from the options", async () => {
  const seen: Record<string, unknown> = {};
  const context = dag("context", { schedule: cron("0 0 * * *") }, (d) => {
    const a = d.task("a", () => "out");
    d.task("t", { after: a, dependsOnPast: true }, async (_, ctx) => {
      const { logicalDate, dataInterval, startedAt, type } = ctx.run;
      Object.assign(seen, { logicalDate, dataInterval, startedAt, type, params: ctx.params });
      Object.assign(seen, {
        v: await ctx.variable("v"),
        c: await ctx.connection("db"),
        a: await ctx.output(a),
      });
      ctx.log.info("hello", { n: 1 });
    });
  });
  const run = await runDag(context, {
    conf: { any: "thing" },
    logicalDate: "2026-03-01",
    dataInterval: { start: "2026-02-28", end: "2026-03-01" },
    now: "2026-03-01T02:00:00Z",
    variables: { v: "value" },
    connections: { db: { host: "localhost", port: 5432 } },
  });
  expect(run.state).toBe("success");
  expect(seen).toEqual({
    logicalDate: new Date("2026-03-01"),
    dataInterval: { start: new Date("2026-02-28"), end: new Date("2026-03-01") },
    startedAt: new Date("2026-03-01T02:00:00Z"),
    type: "manual",
    params: { any: "thing" },
    v: "value",
    c: {
      id: "db",
      type: "generic",
      host: "localhost",
      port: 5432,
      login: null,
      password: null,
      schema: null,
      extra: {},
    },
    a: "out",
  });
  expect(run.logs).toEqual({ t: [{ level: "info", message: "hello", fields: { n: 1 } }] });
  expect(
    (await runDag(context, { logicalDate: null, variables: { v: "" }, connections: { db: {} } })).state,
  ).toBe("success");
  expect(seen).toMatchObject({ logicalDate: null, dataInterval: null });
});

test("fails the run if the params reject the conf", async () => {
  const strict = dag(
    "strict",
    { params: z.object({ n: z.number() }) },
    (d) => void d.task("t", { retries: 3 }, () => 1),
  );
  const run = await runDag(strict, { conf: { n: "five" } as never });
  expect(run.task("t")).toMatchObject({ state: "failed", tries: 1, error: { code: "TW_PARAMS_INVALID" } });
});

test("rejects an unknown key of the conf", async () => {
  const params = z.object({ region: z.string().optional() });
  const typed = dag("typed", { params }, (d) => void d.task("t", () => 1));
  await expect(runDag(typed, { conf: { regoin: "eu" } as never })).rejects.toThrow(
    'conf.regoin of dag "typed" is unknown; did you mean "region"?',
  );
});

test("limits the stack of an engine error to the author's code", async () => {
  const asked = dag("asked", (d) => {
    d.task("through", async (_, ctx) => await ctx.variable("nope"));
    d.task("after", () => ({ at: 1n }) as never);
    d.task("own", () => {
      throw new TaskError("TW_VARIABLE_MISSING", "of mine");
    });
  });
  const run = await runDag(asked);
  const frames = (taskId: string) => run.task(taskId).error?.stack?.split("\n").slice(1) ?? null;
  expect(frames("through")).toEqual([expect.stringContaining("run-dag.test.ts")]);
  expect(frames("after")).toEqual([]);
  expect(frames("own")).toEqual([expect.stringContaining("run-dag.test.ts")]);
});

test("limits concurrent tasks and starts the heaviest first", async () => {
  let running = 0;
  let most = 0;
  const order: string[] = [];
  const work = (id: string) => async () => {
    order.push(id);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
  };
  const wide = dag("wide", { maxActiveTasks: 3 }, (d) => {
    for (let i = 0; i < 9; i++) d.task(`t${i}`, { priority: i }, work(`t${i}`));
  });
  expect((await runDag(wide)).state).toBe("success");
  expect(most).toBe(3);
  expect(order).toEqual(["t8", "t7", "t6", "t5", "t4", "t3", "t2", "t1", "t0"]);
  most = 0;
  await runDag(wide, { concurrency: 1 });
  expect(most).toBe(1);
});

test("aborts, fails and retries an attempt that times out", async () => {
  const reasons: unknown[] = [];
  const calls: string[] = [];
  const slow = dag("slow", (d) => {
    d.task(
      "deaf",
      {
        timeout: "20ms",
        retries: 1,
        onRetry: () => calls.push("retry"),
        onFailure: (ctx) => calls.push(ctx.error!.code!),
      },
      async (_, ctx) => {
        ctx.abort.addEventListener("abort", () => reasons.push(ctx.abort.reason));
        await new Promise(() => {});
      },
    );
  });
  const run = await runDag(slow);
  expect(run.task("deaf")).toMatchObject({ state: "failed", tries: 2, error: { code: "TASK_TIMEOUT" } });
  expect(reasons).toHaveLength(2);
  expect(calls).toEqual(["retry", "TASK_TIMEOUT"]);
});

test("fails a run that times out, with its pending retries, and skips tasks that have not started", async () => {
  const slow = dag("slow", { runTimeout: "1h" }, (d) => {
    const never = d.task("never", { retries: 9, retryDelay: "25m" }, () => {
      throw new Error("again");
    });
    d.task("behind", { after: never }, () => 1);
  });
  const run = await runDag(slow);
  expect(run).toMatchObject({ state: "failed", reason: "timed_out" });
  expect(run.task("never")).toMatchObject({ state: "failed", tries: 3 });
  expect(run.states["behind"]).toBe("skipped");
  expect(run.timeline.at(-1)!.atMs).toBe(3_600_000);
});

test("runs callbacks of tasks and of the DAG", async () => {
  const calls: string[] = [];
  const note = (ctx: CallbackContext) => calls.push(`${ctx.event} ${ctx.taskId}`);
  const onFailure = (ctx: CallbackContext) => {
    note(ctx);
    throw new Error("no network");
  };
  const told = dag("told", { onFailure, onSuccess: note }, (d) => {
    d.task("t", { retries: 1, onRetry: note, onFailure: note }, () => {
      throw new Error("oh");
    });
  });
  const run = await runDag(told);
  expect(calls).toEqual(["retry t", "failure t", "failure null"]);
  expect(run.logs[""]).toMatchObject([
    { level: "error", message: "callback for failure failed: no network" },
  ]);
});

test("reports every step as it happens", async () => {
  const events: RunProgress[] = [];
  const defined = dag("defined", (d) => {
    const a = d.task("a", { retries: 1 }, (_, ctx) => {
      ctx.log.warn("careful");
      return ctx.tryNumber === 1 ? Promise.reject(new Error("first")) : 5;
    });
    const never = d.shortCircuit("gate", { after: a }, () => false);
    d.task("ruled_out", { after: never }, () => 1);
  });
  await runDag(defined, { onEvent: (event) => events.push(event) });
  const short = events.map((event) => {
    if (event.type === "log") return `log ${event.message}`;
    const what = "state" in event ? event.state : event.type === "started" ? event.tryNumber : "";
    return `${event.type} ${event.taskId} ${what}`;
  });
  expect(short).toEqual([
    "started a 1",
    "log careful",
    "ended a up_for_retry",
    "started a 2",
    "log careful",
    "ended a success",
    "started gate 1",
    "ended gate success",
    "ended ruled_out skipped",
  ]);
  expect(events[2]).toMatchObject({ error: { message: "first" }, output: undefined });
  expect(events[5]).toMatchObject({ error: undefined, output: 5, mapIndex: -1 });
  expect(JSON.parse(JSON.stringify(events))).toBeTruthy();
});

test("runs a thousand parallel and a thousand chained tasks", async () => {
  const large = dag("large", { maxActiveTasks: 2000 }, (d) => {
    let last: Output<number> = d.task("c0", () => 0);
    for (let i = 1; i < 1000; i++) last = d.task(`c${i}`, { inputs: { last } }, ({ last }) => last + 1);
    const wide = Array.from({ length: 1000 }, (_, i) => d.task(`w${i}`, () => i));
    d.task("join", { after: [last, ...wide] }, () => "done");
  });
  const started = performance.now();
  const run = await runDag(large);
  expect(run.outputs).toMatchObject({ join: "done", c999: 999 });
  expect(performance.now() - started).toBeLessThan(10_000);
});

test("rejects invalid arguments with the remedy", async () => {
  await expect(runDag({} as never)).rejects.toThrow(/runDag takes a DAG, the value that dag\(\) returned/);
  await expect(runDag(undefined as never)).rejects.toMatchObject({ code: "TW_TEST_NOT_A_DAG" });
  const fine = dag("fine", (d) => void d.task("t", () => 1));
  await expect(runDag(fine, { logicalDate: "yesterday" })).rejects.toThrow(
    /logicalDate must be a Date or an ISO text/,
  );
  await expect(runDag(fine, { concurrency: 0 })).rejects.toThrow(/concurrency must be 1 or more/);
  await expect(runDag(fine, { conf: { n: 1n } as never })).rejects.toThrow(/conf must be JSON/);
});
