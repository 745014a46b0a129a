import {
  type CallbackContext,
  DateTimeSensor,
  DateTimeTrigger,
  DeferralTimeoutError,
  dag,
  endWith,
  FileSensor,
  FileTrigger,
  fail,
  HttpSensor,
  HttpTrigger,
  Operator,
  type StartFrom,
  type TaskContext,
  TimeDeltaSensor,
  TimeDeltaTrigger,
  TriggerDagRunOperator,
  TriggerFailedError,
  WebhookTrigger,
} from "@tradewind/sdk";
import { describe, expect, test } from "vitest";
import { after, type RunProgress, runDag } from "../index.ts";

const HOUR = 3_600_000;
const FILE = { path: "/data/a.csv", size: 3, mtime: "2026-03-01T00:00:00.000Z" };

/** The steps with their times, in hours since the run began. */
function steps(run: Awaited<ReturnType<typeof runDag>>): string[] {
  return run.timeline.map(
    ({ atMs, taskId, tryNumber, state }) => `${atMs / HOUR}h ${taskId} #${tryNumber} ${state}`,
  );
}

describe("time", () => {
  test("resumes a function after three virtual days with its recorded steps", async () => {
    let submits = 0;
    const patient = dag("patient", (d) => {
      d.task("t", async (_, ctx) => {
        const job = await ctx.step("submit", () => ++submits);
        const at = await ctx.until("cooled", new TimeDeltaTrigger({ delta: "3d" }));
        const opened = await ctx.until("opening", new DateTimeTrigger({ moment: "2026-03-05T00:00:00Z" }));
        return { job, at, opened, submits };
      });
    });
    const started = performance.now();
    const run = await runDag(patient, { now: "2026-03-01T00:00:00Z" });
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(run.outputs["t"]).toEqual({
      job: 1,
      at: "2026-03-04T00:00:00.000Z",
      opened: "2026-03-05T00:00:00.000Z",
      submits: 1,
    });
    expect(steps(run)).toEqual([
      "0h t #1 running",
      "0h t #1 deferred",
      "72h t #1 running",
      "72h t #1 deferred",
      "96h t #1 running",
      "96h t #1 success",
    ]);
    expect(run.task("t").tries).toBe(1);
  });

  test("ends a thousand waits in the order of their moments, without holding slots", async () => {
    const many = dag("many", { maxActiveTasks: 1 }, (d) => {
      for (let i = 0; i < 1000; i++)
        d.task(`t${i}`, async (_, ctx) => {
          await ctx.until("x", new TimeDeltaTrigger({ delta: `${1000 - i}h` }));
        });
    });
    const run = await runDag(many);
    const ended = run.timeline.filter(({ state }) => state === "success");
    expect(ended.map(({ taskId }) => taskId)).toEqual(Array.from({ length: 1000 }, (_, i) => `t${999 - i}`));
    expect(run.timeline.at(-1)!.atMs).toBe(1000 * HOUR);
  });

  test("starts another try without recorded steps", async () => {
    let submits = 0;
    const forgetful = dag("forgetful", (d) => {
      d.task("t", { retries: 1, retryDelay: "1h" }, async (_, ctx) => {
        const job = await ctx.step("submit", () => ++submits);
        await ctx.until("x", new TimeDeltaTrigger({ delta: "2h" }));
        if (ctx.tryNumber === 1) throw new Error("no");
        return job;
      });
    });
    const run = await runDag(forgetful);
    expect(run.outputs["t"]).toBe(2);
    expect(steps(run)).toEqual([
      "0h t #1 running",
      "0h t #1 deferred",
      "2h t #1 running",
      "2h t #1 up_for_retry",
      "3h t #2 running",
      "3h t #2 deferred",
      "5h t #2 running",
      "5h t #2 success",
    ]);
  });

  test("waits on the real clock", async () => {
    const slow = dag("slow", (d) => {
      d.task("t", { retries: 1, retryDelay: "30ms" }, async (_, ctx) => {
        if (ctx.tryNumber === 1) throw new Error("no");
        return await ctx.until("x", new TimeDeltaTrigger({ delta: "40ms" }));
      });
      d.task("late", async (_, ctx) => {
        await ctx.until("hook", new WebhookTrigger({ name: "x" }), { timeout: "50ms" });
      });
    });
    const now = "2030-01-01T00:00:00.000Z";
    const started = performance.now();
    const run = await runDag(slow, { clock: "real", now, triggers: { late: undefined } });
    expect(performance.now() - started).toBeGreaterThanOrEqual(65);
    expect(run.states).toEqual({ t: "success", late: "failed" });
    expect(run.outputs["t"]).toMatch(/^2030-01-01T00:00:0/);
    expect(run.task("late").error).toMatchObject({ code: "TW_WAIT_TIMEOUT" });
  });

  test("times out a run on the real clock and aborts its tasks", async () => {
    let reason: unknown;
    const slow = dag("slow", { runTimeout: "40ms" }, (d) => {
      d.task("t", async (_, ctx) => {
        await new Promise((resolve) => ctx.abort.addEventListener("abort", resolve));
        reason = ctx.abort.reason;
      });
      d.task("w", async (_, ctx) => void (await ctx.until("x", new TimeDeltaTrigger({ delta: "1d" }))));
    });
    const run = await runDag(slow, { clock: "real" });
    expect(run).toMatchObject({ state: "failed", reason: "timed_out" });
    expect(run.states).toEqual({ t: "failed", w: "failed" });
    expect(String(reason)).toContain("the run has ended");
  });
});

class Import extends Operator<{ path: string }, string> {
  override startFrom() {
    return this.defer({
      trigger: new FileTrigger({ path: this.args.path }),
      method: "load",
      kwargs: { n: 7 },
    });
  }
  execute(): never {
    throw new Error("begins by waiting");
  }
  load(ctx: TaskContext, file: { size: number }, kwargs: { n: number }) {
    return `${file.size} ${kwargs.n} ${ctx.tryNumber}`;
  }
}

describe("operators", () => {
  test("resumes a deferral in its method, with event, kwargs and inputs", async () => {
    class Export extends Operator<{ table: string }, string, { n: number }> {
      execute() {
        const trigger = new HttpTrigger({ url: `https://jobs.example/${this.args.table}` });
        return this.defer({ trigger, method: "half", kwargs: { job: 1 } });
      }
      half(_ctx: TaskContext, { status }: { status: number }, { job }: { job: number }) {
        const trigger = new TimeDeltaTrigger({ delta: "1h" });
        return this.defer({ trigger, method: "whole", kwargs: { job, status } });
      }
      whole(_ctx: TaskContext, _at: string, kw: { job: number; status: number }, inputs: { n: number }) {
        return `${kw.job} ${kw.status} ${inputs.n}`;
      }
    }
    const exported = dag("exported", (d) => {
      const n = d.task("n", () => 5);
      d.operator("export", new Export({ table: "sales" }), { inputs: { n } });
    });
    const urls: string[] = [];
    const run = await runDag(exported, {
      triggers: {
        "tradewind.http": ({ url, intervalMs }, { taskId, step, tryNumber }) => {
          urls.push(`${url} ${intervalMs} ${taskId} ${step} ${tryNumber}`);
          return { status: 204, body: null };
        },
      },
    });
    expect(run.outputs["export"]).toBe("1 204 5");
    expect(urls).toEqual(["https://jobs.example/sales 10000 export half 1"]);
  });

  test("runs no code before a start trigger fires, and waits again in each try", async () => {
    let looks = 0;
    const imports = dag("imports", (d) => {
      d.operator("import", new Import({ path: "/data/a.csv" }), { retries: 1, retryDelay: "1h" });
    });
    const run = await runDag(imports, {
      triggers: { "import/load": () => (++looks === 1 ? endWith.fail("spoiled") : after("2h", FILE)) },
    });
    expect(run.outputs["import"]).toBe("3 7 2");
    expect(steps(run)).toEqual([
      "0h import #1 deferred",
      "0h import #1 up_for_retry",
      "1h import #2 deferred",
      "3h import #2 running",
      "3h import #2 success",
    ]);
  });

  test("returns the event of d.trigger as output and runs its callbacks", async () => {
    const calls: string[] = [];
    const note = (ctx: CallbackContext) => calls.push(`${ctx.event} ${ctx.taskId} ${ctx.error?.code ?? ""}`);
    const callbacks = { onSuccess: note, onFailure: note, onRetry: note };
    const nodes = dag("nodes", (d) => {
      const file = d.operator("file", new FileSensor({ path: "/data/*.csv" }), callbacks);
      d.task("size", { inputs: { file } }, ({ file }) => file.size);
      d.operator("broken", new FileSensor({ path: "/data/b" }), { retries: 1, ...callbacks });
      d.operator("ruled_out", new FileSensor({ path: "/data/c" }), callbacks);
      d.operator("ended", new FileSensor({ path: "/data/d" }), callbacks);
    });
    const run = await runDag(nodes, {
      triggers: {
        "tradewind.file": FILE,
        broken: Object.assign(new Error("no such disk"), { code: "E_DISK" }),
        ruled_out: endWith.skip("not today"),
        ended: endWith.success({ path: "/elsewhere" }),
      },
    });
    expect(run.states).toEqual({
      file: "success",
      size: "success",
      broken: "failed",
      ruled_out: "skipped",
      ended: "success",
    });
    expect(run.outputs).toEqual({ file: FILE, size: 3, ended: { path: "/elsewhere" } });
    expect(run.task("broken")).toMatchObject({
      tries: 2,
      error: { message: "no such disk", code: "E_DISK" },
    });
    expect(run.task("ruled_out").reason).toBe("not today");
    expect(calls.sort()).toEqual([
      "failure broken E_DISK",
      "retry broken E_DISK",
      "success ended ",
      "success file ",
    ]);
  });
});

describe("the end of a wait", () => {
  test("rejects ctx.until once after a timeout or a failed trigger", async () => {
    const caught: unknown[] = [];
    const careful = dag("careful", (d) => {
      d.task("t", async (_, ctx) => {
        const hook = new WebhookTrigger({ name: "approvals" });
        const late = await ctx.until("first", hook, { timeout: "2h" }).catch((error) => error);
        const broken = await ctx.until("second", hook).catch((error) => error);
        if (ctx.attempt.endsWith("/3")) caught.push(late, broken);
        return late.afterMs;
      });
    });
    const run = await runDag(careful, {
      triggers: {
        "t/first": after("3h", { body: null, headers: {} }),
        "t/second": () => {
          throw new Error("no route");
        },
      },
    });
    expect(run.outputs["t"]).toBe(2 * HOUR);
    expect(caught[0]).toBeInstanceOf(DeferralTimeoutError);
    expect(caught[1]).toBeInstanceOf(TriggerFailedError);
    expect(caught[1]).toMatchObject({ error: { message: "no route" } });
    expect(run.timeline.at(-1)!.atMs).toBe(2 * HOUR);
  });

  test("fails, fails without a retry, or skips an operator after a timeout", async () => {
    class Waiting extends Operator<{ onTimeout: "fail" | "fatal" | "skip" }, string> {
      override startFrom(): StartFrom<string> {
        const trigger = new DateTimeTrigger({ moment: "2099-01-01" });
        return { trigger, timeout: "1h", onTimeout: this.args.onTimeout };
      }
      execute(): never {
        throw fail("not reached");
      }
    }
    const calls: string[] = [];
    const onFailure = (ctx: CallbackContext) => calls.push(`${ctx.taskId} ${ctx.error?.code}`);
    const timeouts = dag("timeouts", { defaults: { retries: 1, retryDelay: "1h", onFailure } }, (d) => {
      for (const onTimeout of ["fail", "fatal", "skip"] as const)
        d.operator(onTimeout, new Waiting({ onTimeout }));
    });
    const run = await runDag(timeouts, { now: "2026-03-01" });
    expect(run.states).toEqual({ fail: "failed", fatal: "failed", skip: "skipped" });
    expect(run.task("fail")).toMatchObject({ tries: 2, error: { code: "TASK_WAIT_TIMEOUT" } });
    expect(run.task("fatal")).toMatchObject({ tries: 1, error: { code: "TASK_WAIT_TIMEOUT" } });
    expect(calls).toEqual(["fatal TASK_WAIT_TIMEOUT", "fail TASK_WAIT_TIMEOUT"]);
    expect(run.timeline.at(-1)!.atMs).toBe(3 * HOUR);
  });

  test("counts the task's timeout over all waits of the try", async () => {
    const whole = dag("whole", (d) => {
      d.task("t", { timeout: "5h" }, async (_, ctx) => {
        await ctx.until("a", new TimeDeltaTrigger({ delta: "3h" }));
        await ctx.until("b", new TimeDeltaTrigger({ delta: "3h" }), { timeout: "4h" });
      });
    });
    const run = await runDag(whole);
    expect(run.task("t")).toMatchObject({ state: "failed", error: { code: "TASK_TIMEOUT" } });
    expect(run.timeline.at(-1)!.atMs).toBe(5 * HOUR);
  });

  test("prefers an event to a timeout at the same moment", async () => {
    const close = dag("close", (d) => {
      d.task("t", async (_, ctx) => {
        return (await ctx.until("x", new WebhookTrigger({ name: "x" }), { timeout: "1h" })).body;
      });
    });
    const run = await runDag(close, { triggers: { t: after("1h", { body: "in time", headers: {} }) } });
    expect(run.outputs["t"]).toBe("in time");
  });

  test("ends the waits of a run that times out", async () => {
    const slow = dag("slow", { runTimeout: "1d" }, (d) => {
      d.task("t", async (_, ctx) => void (await ctx.until("x", new WebhookTrigger({ name: "x" }))));
    });
    const run = await runDag(slow, { triggers: { "tradewind.webhook": undefined } });
    expect(run).toMatchObject({ state: "failed", reason: "timed_out", states: { t: "failed" } });
    expect(run.timeline.at(-1)!.atMs).toBe(24 * HOUR);
  });
});

describe("sensors that poll", () => {
  test("polls a rescheduled sensor at its interval, with a call of the entry each time", async () => {
    let looks = 0;
    const looking = dag("looking", (d) => {
      const url = "https://jobs.example/7";
      d.operator("poll", new HttpSensor({ url, mode: "reschedule", interval: "1h" }));
      d.operator("delta", new TimeDeltaSensor({ delta: "3h", mode: "reschedule", interval: "1h" }));
      const moment = "2026-03-01T02:00:00.000Z";
      d.operator("moment", new DateTimeSensor({ moment, mode: "reschedule", interval: "1h" }));
      d.operator(
        "late",
        new FileSensor({ path: "/a", mode: "reschedule", interval: "1h", softFail: true, timeout: "5h" }),
      );
    });
    const run = await runDag(looking, {
      now: "2026-03-01T00:00:00Z",
      triggers: {
        "tradewind.http": () => (++looks === 3 ? { status: 200, body: "done" } : undefined),
        late: after("6h", FILE),
      },
    });
    expect(run.states).toEqual({ poll: "success", delta: "success", moment: "success", late: "skipped" });
    expect(run.outputs).toMatchObject({
      poll: { status: 200, body: "done" },
      moment: "2026-03-01T02:00:00.000Z",
    });
    expect(steps(run).filter((step) => step.includes("poll"))).toEqual([
      "0h poll #1 running",
      "0h poll #1 up_for_reschedule",
      "1h poll #1 running",
      "1h poll #1 up_for_reschedule",
      "2h poll #1 running",
      "2h poll #1 success",
    ]);
    expect(run.task("poll").tries).toBe(1);
  });

  test("answers a poking sensor from the same entries, including errors", async () => {
    let looks = 0;
    const poking = dag("poking", (d) => {
      d.operator("file", new FileSensor({ path: "/a", mode: "poke", interval: "1ms" }));
      d.operator("broken", new FileSensor({ path: "/b", mode: "poke" }));
    });
    const run = await runDag(poking, {
      triggers: { file: () => (++looks === 3 ? FILE : undefined), broken: new Error("no such disk") },
    });
    expect(run.outputs).toEqual({ file: FILE });
    expect(run.task("broken").error).toMatchObject({ message: "no such disk" });
  });
});

test("records requested runs without creating them", async () => {
  const maker = dag("maker", (d) => {
    const conf = { region: "eu" };
    d.operator("report", new TriggerDagRunOperator({ dagId: "report", conf, runId: "r1", wait: true }));
    d.operator("again", new TriggerDagRunOperator({ dagId: "report", runId: "r1" }));
    d.operator(
      "failing",
      new TriggerDagRunOperator({ dagId: "other", logicalDate: "2026-03-01", wait: true }),
    );
  });
  const run = await runDag(maker, {
    concurrency: 1,
    triggers: {
      "tradewind.dagrun": ({ dagId, runId }) => {
        const state = dagId === "other" ? "failed" : "success";
        return { dagId, runId: runId!, logicalDate: null, state };
      },
    },
  });
  expect(run.triggeredRuns).toEqual([
    { dagId: "report", runId: "r1", conf: { region: "eu" }, logicalDate: null },
    { dagId: "other", runId: expect.any(String), conf: {}, logicalDate: "2026-03-01T00:00:00.000Z" },
  ]);
  expect(run.outputs).toEqual({
    report: { dagId: "report", runId: "r1", state: "success" },
    again: { dagId: "report", runId: "r1", state: null },
  });
  expect(run.task("failing").error).toMatchObject({ code: "TW_DAG_RUN_FAILED" });
  expect(run.logs["again"]).toMatchObject([{ message: "found run r1 of dag report" }]);
});

test("reports every wait when it begins", async () => {
  const events: RunProgress[] = [];
  const told = dag("told", (d) => {
    d.task(
      "t",
      async (_, ctx) => void (await ctx.until("x", new TimeDeltaTrigger({ delta: "1h" }), { timeout: "2h" })),
    );
    d.operator("s", new HttpSensor({ url: "https://x.example", mode: "reschedule", interval: "1h" }));
  });
  let looks = 0;
  await runDag(told, {
    now: "2026-03-01T00:00:00Z",
    triggers: { s: () => (++looks > 1 ? { status: 200, body: null } : undefined) },
    onEvent: (event) => events.push(event),
  });
  expect(events.filter(({ type }) => type === "waiting" || type === "started")).toEqual([
    { type: "started", taskId: "t", mapIndex: -1, tryNumber: 1, resumed: false },
    { type: "started", taskId: "s", mapIndex: -1, tryNumber: 1, resumed: false },
    {
      type: "waiting",
      taskId: "s",
      mapIndex: -1,
      tryNumber: 1,
      state: "up_for_reschedule",
      trigger: null,
      signal: null,
      step: null,
      until: "2026-03-01T01:00:00.000Z",
      timeoutAt: null,
    },
    {
      type: "waiting",
      taskId: "t",
      mapIndex: -1,
      tryNumber: 1,
      state: "deferred",
      trigger: "tradewind.timedelta",
      signal: null,
      step: "x",
      until: "2026-03-01T01:00:00.000Z",
      timeoutAt: "2026-03-01T02:00:00.000Z",
    },
    { type: "started", taskId: "t", mapIndex: -1, tryNumber: 1, resumed: true },
    { type: "started", taskId: "s", mapIndex: -1, tryNumber: 1, resumed: false },
  ]);
});

test("reports a wait with the timeout of its task if that is earlier", async () => {
  const events: RunProgress[] = [];
  const limited = dag("limited", (d) => {
    d.task(
      "t",
      { timeout: "90m" },
      async (_, ctx) => void (await ctx.until("x", new TimeDeltaTrigger({ delta: "1h" }), { timeout: "2h" })),
    );
  });
  await runDag(limited, { now: "2026-03-01T00:00:00Z", onEvent: (event) => events.push(event) });
  expect(events).toContainEqual(
    expect.objectContaining({ type: "waiting", timeoutAt: "2026-03-01T01:30:00.000Z" }),
  );
});
