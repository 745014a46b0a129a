import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import {
  DagRunSensor,
  DateTimeSensor,
  dag,
  ExternalTaskSensor,
  FileSensor,
  FileTrigger,
  HttpSensor,
  type Operator,
  ProcessSensor,
  RedisKeySensor,
  RedisStreamSensor,
  S3KeySensor,
  S3PrefixSensor,
  Sensor,
  type SensorOptions,
  SqlSensor,
  skip,
  TimeDeltaSensor,
  WebhookSensor,
} from "../index.ts";
import { PROGRAM, type TaskCall } from "../runtime/program.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] }));
afterEach(() => void vi.useRealTimers());

/** Returns the next value of its list at each poll. */
class Looking extends Sensor<{ finds: unknown[] }, number> {
  looks: number[] = [];
  override async poke() {
    this.looks.push(performance.now());
    return this.args.finds.shift() as number | undefined;
  }
  pauses() {
    return this.looks.slice(1).map((at, i) => Math.round(at - this.looks[i]!));
  }
}

function of(sensor: Operator<unknown, unknown>) {
  return dag("x", (d) => void d.operator("t", sensor));
}

async function run(sensor: Operator<unknown, unknown>, call: Partial<TaskCall> = {}) {
  const outcome = attempt(of(sensor), "t", call);
  await vi.runAllTimersAsync();
  return outcome;
}

function manifest(sensor: Operator<unknown, unknown>) {
  return of(sensor)[PROGRAM].describe().tasks[0]!;
}

test("keeps the process in poke mode and polls after each interval", async () => {
  const sensor = new Looking({ finds: [undefined, false, 0], interval: "3s" });
  expect(await run(sensor)).toEqual({ kind: "success", output: 0, skip: [] });
  expect(sensor.pauses()).toEqual([3_000, 3_000]);
});

test("releases the process between polls in reschedule mode", async () => {
  const sensor = new Looking({ finds: [undefined], mode: "reschedule" });
  expect(await run(sensor)).toEqual({ kind: "rescheduled", afterMs: 10_000 });
  expect(await run(new Looking({ finds: [5], mode: "reschedule" }), { elapsedMs: 60_000 })).toMatchObject({
    output: 5,
  });
});

test("doubles its pauses over all reschedules, up to an hour", async () => {
  const sensor = new Looking({ finds: [false, false, false, 1], interval: 1_000, exponentialBackoff: true });
  await run(sensor);
  expect(sensor.pauses()).toEqual([1_000, 2_000, 4_000]);
  const options = {
    finds: [undefined],
    mode: "reschedule",
    interval: "1m",
    exponentialBackoff: true,
  } as const;
  expect(await run(new Looking({ ...options, finds: [] }), { elapsedMs: 180_000 })).toMatchObject({
    afterMs: 240_000,
  });
  expect(await run(new Looking({ ...options, finds: [] }), { elapsedMs: 86_400_000 })).toMatchObject({
    afterMs: 3_600_000,
  });
});

test("fails without a retry, or is skipped, after its timeout since the first start of the try", async () => {
  const message = "Looking found nothing within 5 s";
  const poking = new Looking({ finds: [], timeout: "5s", interval: "2s" });
  expect(await run(poking, { maxTries: 3 })).toMatchObject({
    kind: "failed",
    retry: false,
    error: { code: "TW_SENSOR_TIMEOUT", message },
  });
  expect(poking.pauses()).toEqual([2_000, 2_000, 1_000]);
  const options = { timeout: "5s", mode: "reschedule" } as const;
  expect(await run(new Looking({ ...options, finds: [] }), { elapsedMs: 4_000 })).toEqual({
    kind: "rescheduled",
    afterMs: 1_000,
  });
  expect(await run(new Looking({ ...options, finds: [] }), { elapsedMs: 5_000 })).toMatchObject({
    kind: "failed",
    retry: false,
  });
  expect(await run(new Looking({ ...options, finds: [7] }), { elapsedMs: 9_000 })).toMatchObject({
    output: 7,
  });
  expect(await run(new Looking({ ...options, finds: [], softFail: true }), { elapsedMs: 5_000 })).toEqual({
    kind: "skipped",
    reason: message,
  });
});

test("ends its sleep at once on abort", async () => {
  const host = new RecordingHost();
  const outcome = attempt(of(new Looking({ finds: [], interval: "1h" })), "t", { host });
  await vi.advanceTimersByTimeAsync(1_000);
  host.controller.abort(new Error("cancelled"));
  expect(await outcome).toMatchObject({ kind: "failed", error: { message: "cancelled" } });
  expect(vi.getTimerCount()).toBe(0);
});

test("lets a poll end the task", async () => {
  expect(await run(new Looking({ finds: [undefined, skip("gone")] }))).toEqual({
    kind: "skipped",
    reason: "gone",
  });
});

test("defers with a trigger for the remaining time", async () => {
  class Mine extends Sensor<{ path: string }, number> {
    override trigger() {
      return new FileTrigger({ path: this.args.path }) as never;
    }
    override fired(_ctx: unknown, event: number) {
      return event + 1;
    }
  }
  const wait = { kind: "deferred", trigger: { kind: "tradewind.file" }, method: "fired", onFailure: "fail" };
  expect(await run(new Mine({ path: "/a" }))).toMatchObject({
    ...wait,
    timeoutMs: 604_800_000,
    onTimeout: "fatal",
  });
  const soft = new Mine({ path: "/a", timeout: "1h", softFail: true });
  expect(await run(soft, { elapsedMs: 600_000 })).toMatchObject({
    ...wait,
    timeoutMs: 3_000_000,
    onTimeout: "skip",
  });
  const resumePoint = { method: "fired", event: 1, kwargs: {} };
  expect(await run(soft, { resumePoint })).toMatchObject({ kind: "success", output: 2 });
});

test.each<[says: RegExp, make: () => unknown]>([
  [
    /sensor Looking: mode "defer" needs a trigger\(\) method/,
    () => new Looking({ finds: [], mode: "defer" }),
  ],
  [
    /sensor Empty: mode "poke" needs a poke\(\) method/,
    () => new (class Empty extends Sensor<void, number> {})(),
  ],
  [/sensor Looking: mode must be one of/, () => new Looking({ finds: [], mode: "pok" as never })],
  [
    /sensor Looking: interval: "soon" is not a duration/,
    () => new Looking({ finds: [], interval: "soon" as never }),
  ],
  [/sensor Looking: softFail must be true or false/, () => new Looking({ finds: [], softFail: 1 as never })],
])("%s", (says, make) => {
  expect(make).toThrow(says);
});

const builtin: Record<string, (options: SensorOptions) => Operator<unknown, unknown>> = {
  file: (o) => new FileSensor({ path: "/a", ...o }),
  http: (o) => new HttpSensor({ url: "http://a.example", ...o }),
  sql: (o) => new SqlSensor({ connection: "db", query: "SELECT 1", ...o }),
  dagrun: (o) => new DagRunSensor({ dagId: "d", runId: "r", ...o }),
  externaltask: (o) => new ExternalTaskSensor({ dagId: "d", taskId: "t", runId: "r", ...o }),
  s3key: (o) => new S3KeySensor({ bucket: "b", key: "k", ...o }),
  s3prefix: (o) => new S3PrefixSensor({ bucket: "b", prefix: "p", ...o }),
  process: (o) => new ProcessSensor({ pid: 1, ...o }),
  webhook: (o) => new WebhookSensor({ name: "hook", ...o }),
  rediskey: (o) => new RedisKeySensor({ connection: "r", key: "k", ...o }),
  redisstream: (o) => new RedisStreamSensor({ connection: "r", stream: "s", ...o }),
};

test.each(Object.keys(builtin))(
  "starts the sensor of %s from its trigger without a worker, or polls in a worker",
  async (name) => {
    const make = builtin[name]!;
    const options = { timeout: "1h", softFail: true, exponentialBackoff: false, interval: "5s" } as const;
    const kind = `tradewind.${name}`;
    expect(manifest(make(options)).startTrigger).toMatchObject({
      trigger: { kind, source: "builtin" },
      method: null,
      timeoutMs: 3_600_000,
      onTimeout: "skip",
    });
    const args = manifest(make(options)).startTrigger?.trigger.args;
    if (args && "intervalMs" in (args as object)) expect(args).toMatchObject({ intervalMs: 5_000 });
    expect(manifest(make({ mode: "poke" }))).not.toHaveProperty("startTrigger");
    const host = new RecordingHost();
    host.checkAnswers.push(undefined, { found: true });
    expect(await run(make({ mode: "poke" }), { host })).toMatchObject({
      kind: "success",
      output: { found: true },
    });
    expect(host.checks.map((call) => call.kind)).toEqual([kind, kind]);
  },
);

test("waits with sensors of time", async () => {
  const moment = new Date(Date.now() + 60_000);
  expect(manifest(new DateTimeSensor({ moment })).startTrigger).toMatchObject({
    trigger: { kind: "tradewind.datetime", wake: { at: moment.toISOString() } },
  });
  expect(manifest(new TimeDeltaSensor({ delta: "1m" })).startTrigger).toMatchObject({
    trigger: { wake: { afterMs: 60_000 } },
  });
  const waiting = new DateTimeSensor({ moment, mode: "poke" });
  expect(await run(waiting)).toMatchObject({ kind: "success", output: moment.toISOString() });
  expect(Date.now()).toBeGreaterThanOrEqual(moment.getTime());
  const poking = new TimeDeltaSensor({ delta: "1m", mode: "reschedule" });
  expect(await run(poking, { elapsedMs: 59_000 })).toMatchObject({ kind: "rescheduled" });
  expect(await run(poking, { elapsedMs: 60_000 })).toMatchObject({
    kind: "success",
    output: new Date().toISOString(),
  });
});

test("resolves arguments that depend on the run in a worker, which then defers", async () => {
  const later = new DateTimeSensor({ moment: (run) => new Date(run.runAfter.getTime() + 1_000) });
  expect(manifest(later)).not.toHaveProperty("startTrigger");
  expect(await run(later)).toMatchObject({
    kind: "deferred",
    trigger: { args: { moment: "2026-01-02T00:00:01.000Z" } },
  });
  const same = new ExternalTaskSensor({ dagId: "d", taskId: "t" });
  expect(manifest(same)).not.toHaveProperty("startTrigger");
  const args = { dagId: "d", logicalDate: "2026-01-02T00:00:00.000Z", runId: null };
  expect(await run(same)).toMatchObject({
    kind: "deferred",
    method: "fired",
    trigger: { args: { ...args, taskId: "t" } },
  });
  const before = new DagRunSensor({
    dagId: "d",
    logicalDate: (run) => new Date(run.logicalDate!.getTime() - 86_400_000),
  });
  expect(await run(before)).toMatchObject({ trigger: { args: { logicalDate: "2026-01-01T00:00:00.000Z" } } });
});

test("requires a logical date or a run id for a sensor of another run", async () => {
  const defined = of(new DagRunSensor({ dagId: "d" }));
  const facts = {
    dagId: "x",
    runId: "m",
    runType: "manual",
    logicalDate: null,
    intervalStart: null,
    intervalEnd: null,
  };
  const call = { run: { ...facts, runAfter: "2026-01-02T00:00:00.000Z", startedAt: null, version: 1 } };
  expect(await attempt(defined, "t", call)).toMatchObject({
    kind: "failed",
    retry: false,
    error: { message: expect.stringContaining("has no logical date to look for") },
  });
  expect(() => manifest(new DagRunSensor({ dagId: "d", runId: "r", logicalDate: "2026-01-01" }))).toThrow(
    /either runId or logicalDate/,
  );
});
