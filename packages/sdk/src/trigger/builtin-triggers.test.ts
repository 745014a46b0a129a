import { expect, test } from "vitest";
import {
  all,
  DagRunTrigger,
  DateTimeTrigger,
  dag,
  ExternalTaskTrigger,
  FileTrigger,
  HttpTrigger,
  on,
  PollTrigger,
  ProcessTrigger,
  RedisKeyTrigger,
  RedisStreamTrigger,
  S3KeyTrigger,
  S3PrefixTrigger,
  SqlTrigger,
  serialise,
  TimeDeltaTrigger,
  type Waitable,
  WebhookTrigger,
} from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

class Mine extends PollTrigger<void, number> {
  static id = "test.mine";
  override poll() {
    return 1;
  }
}

const stored: [make: () => Waitable<unknown>, kind: string, args: object][] = [
  [
    () => new FileTrigger({ path: "/a/*.csv", interval: "1m" }),
    "tradewind.file",
    { path: "/a/*.csv", intervalMs: 60_000 },
  ],
  [
    () => new HttpTrigger({ url: "https://a.example/x" }),
    "tradewind.http",
    {
      url: "https://a.example/x",
      method: "GET",
      headers: {},
      connection: null,
      status: null,
      json: null,
      body: null,
      intervalMs: 10_000,
    },
  ],
  [
    () =>
      new HttpTrigger({
        url: "/jobs",
        connection: "api",
        method: "post",
        headers: { "X-Key": "v" },
        status: [404, 200, 404],
        json: { path: "jobs[0].state", equals: "done" },
        body: { a: 1 },
      }),
    "tradewind.http",
    {
      url: "/jobs",
      method: "POST",
      headers: { "x-key": "v", "content-type": "application/json" },
      connection: "api",
      status: [200, 404],
      json: { path: ["jobs", 0, "state"], equals: "done" },
      body: '{"a":1}',
      intervalMs: 10_000,
    },
  ],
  [
    () => new SqlTrigger({ connection: "db", query: "SELECT $1::int", parameters: [1] }),
    "tradewind.sql",
    { connection: "db", query: "SELECT $1::int", parameters: [1], intervalMs: 10_000 },
  ],
  [
    () => new DagRunTrigger({ dagId: "d", runId: "r" }),
    "tradewind.dagrun",
    { dagId: "d", runId: "r", logicalDate: null, states: ["failed", "success"] },
  ],
  [
    () => new ExternalTaskTrigger({ dagId: "d", taskId: "t", logicalDate: new Date(0) }),
    "tradewind.externaltask",
    {
      dagId: "d",
      taskId: "t",
      runId: null,
      logicalDate: "1970-01-01T00:00:00.000Z",
      mapIndex: null,
      states: ["success"],
      failedStates: ["failed", "upstream_failed"],
    },
  ],
  [
    () => new ExternalTaskTrigger({ dagId: "d", taskId: "t", runId: "r", mapIndex: 2, states: ["failed"] }),
    "tradewind.externaltask",
    {
      dagId: "d",
      taskId: "t",
      runId: "r",
      logicalDate: null,
      mapIndex: 2,
      states: ["failed"],
      failedStates: ["upstream_failed"],
    },
  ],
  [
    () => new ExternalTaskTrigger({ dagId: "d", taskId: "t", runId: "r", failedStates: [] }),
    "tradewind.externaltask",
    {
      dagId: "d",
      taskId: "t",
      runId: "r",
      logicalDate: null,
      mapIndex: null,
      states: ["success"],
      failedStates: [],
    },
  ],
  [
    () => new S3KeyTrigger({ bucket: "b", key: "k*", wildcard: true }),
    "tradewind.s3key",
    { bucket: "b", key: "k*", wildcard: true, connection: null, intervalMs: 10_000 },
  ],
  [
    () => new S3PrefixTrigger({ bucket: "b", prefix: "p/", connection: "s3" }),
    "tradewind.s3prefix",
    { bucket: "b", prefix: "p/", minCount: 1, connection: "s3", intervalMs: 10_000 },
  ],
  [() => new ProcessTrigger({ pid: 7 }), "tradewind.process", { pid: 7, startedAt: null }],
  [
    () => new WebhookTrigger({ name: "hook", after: "2026-01-01" }),
    "tradewind.webhook",
    { name: "hook", after: "2026-01-01T00:00:00.000Z" },
  ],
  [
    () => new RedisKeyTrigger({ connection: "r", key: "k", equals: "" }),
    "tradewind.rediskey",
    { connection: "r", key: "k", equals: "", intervalMs: 10_000 },
  ],
  [
    () => new RedisStreamTrigger({ connection: "r", stream: "s" }),
    "tradewind.redisstream",
    { connection: "r", stream: "s", group: null, from: "$" },
  ],
];

test.each(stored)("stores %s as %s with all defaults", (make, kind, args) => {
  const rest = { source: "builtin", queue: "default", replicas: 1, wake: null, timed: null };
  expect(serialise(make())).toEqual({ kind, args, ...rest });
});

test("stores the moment of time triggers, which are never run", () => {
  const at = "2027-01-04T07:00:00.000Z";
  expect(serialise(new DateTimeTrigger({ moment: "2027-01-04T08:00:00+01:00" }))).toMatchObject({
    kind: "tradewind.datetime",
    args: { moment: at },
    wake: { at },
    timed: { payload: at },
  });
  expect(serialise(new TimeDeltaTrigger({ delta: "2h" }))).toMatchObject({
    kind: "tradewind.timedelta",
    args: { deltaMs: 7_200_000 },
    wake: { afterMs: 7_200_000 },
    timed: { payload: null },
  });
});

test("accepts a queue for every trigger", () => {
  expect(serialise(new ProcessTrigger({ pid: 1, queue: "etl" })).queue).toBe("etl");
});

test.each<[says: RegExp, make: () => unknown]>([
  [/FileTrigger: path is required: a non-empty text, got undefined/, () => new FileTrigger({} as never)],
  [/FileTrigger: takes an object of options, got "\/a"/, () => new FileTrigger("/a" as never)],
  [/FileTrigger: path may have \* and \? in its last part only/, () => new FileTrigger({ path: "/a*/b" })],
  [
    /FileTrigger: unknown option "pth"; known options: interval, path, queue/,
    () => new FileTrigger({ path: "/a", pth: 1 } as never),
  ],
  [/HttpTrigger: url must be an absolute http or https URL/, () => new HttpTrigger({ url: "orders" })],
  [/HttpTrigger: url must be/, () => new HttpTrigger({ url: "ftp://a/b", connection: "c" })],
  [/HttpTrigger: status must be/, () => new HttpTrigger({ url: "http://a", status: 20 })],
  [
    /HttpTrigger: json must be/,
    () => new HttpTrigger({ url: "http://a", json: { path: "a..b", equals: 1 } }),
  ],
  [
    /HttpTrigger: headers must be an object of texts/,
    () => new HttpTrigger({ url: "http://a", headers: { a: 1 } as never }),
  ],
  [
    /HttpTrigger: body\.at is a Date/,
    () => new HttpTrigger({ url: "http://a", body: { at: new Date() } as never }),
  ],
  [
    /SqlTrigger: parameters must be an array/,
    () => new SqlTrigger({ connection: "a", query: "b", parameters: "c" as never }),
  ],
  [/SqlTrigger: connection is required/, () => new SqlTrigger({ query: "b" } as never)],
  [/DagRunTrigger: give either runId or logicalDate/, () => new DagRunTrigger({ dagId: "d" } as never)],
  [
    /DagRunTrigger: give either/,
    () => new DagRunTrigger({ dagId: "d", runId: "r", logicalDate: "2026-01-01" } as never),
  ],
  [
    /DagRunTrigger: states must be a list of "queued"/,
    () => new DagRunTrigger({ dagId: "d", runId: "r", states: ["done" as never] }),
  ],
  [/DagRunTrigger: logicalDate must be a Date/, () => new DagRunTrigger({ dagId: "d", logicalDate: "soon" })],
  [
    /failedStates must not have a state/,
    () => new ExternalTaskTrigger({ dagId: "d", taskId: "t", runId: "r", failedStates: ["success"] }),
  ],
  [
    /mapIndex must be a whole number of 0/,
    () => new ExternalTaskTrigger({ dagId: "d", taskId: "t", runId: "r", mapIndex: -1 }),
  ],
  [
    /S3KeyTrigger: wildcard must be true or false/,
    () => new S3KeyTrigger({ bucket: "b", key: "k", wildcard: 1 as never }),
  ],
  [/S3PrefixTrigger: minCount must be/, () => new S3PrefixTrigger({ bucket: "b", prefix: "p", minCount: 0 })],
  [/ProcessTrigger: pid must be/, () => new ProcessTrigger({ pid: 1.5 })],
  [/WebhookTrigger: name must be/, () => new WebhookTrigger({ name: "a b" })],
  [
    /RedisKeyTrigger: equals must be a text/,
    () => new RedisKeyTrigger({ connection: "c", key: "k", equals: 1 as never }),
  ],
  [
    /RedisStreamTrigger: from must be/,
    () => new RedisStreamTrigger({ connection: "c", stream: "s", from: "now" }),
  ],
  [/DateTimeTrigger: moment must be a Date/, () => new DateTimeTrigger({ moment: "2027-01-04T08:00:00" })],
  [/of the years 1 to 9999/, () => new DateTimeTrigger({ moment: new Date(8.64e15) })],
  [/of the years 1 to 9999/, () => new DateTimeTrigger({ moment: new Date(-8.64e15) })],
  [/FileTrigger: queue must be a text of 1 to 250/, () => new FileTrigger({ path: "/a", queue: "\u0000" })],
])("%s", (says, make) => {
  expect(make).toThrow(
    expect.objectContaining({ code: "TW_TRIGGER_ARGS", message: expect.stringMatching(says) }),
  );
});

test("rejects an invalid duration", () => {
  expect(() => new TimeDeltaTrigger({ delta: "soon" as never })).toThrow(
    expect.objectContaining({ code: "TW_BAD_DURATION" }),
  );
});

test("keeps the members of a joint wait and fixes the end of durations", () => {
  const before = Date.now();
  const call = serialise(
    all({ late: new DateTimeTrigger({ moment: "2200-01-01" }), soon: new TimeDeltaTrigger({ delta: "1h" }) }),
  );
  const after = Date.now();
  const { members } = call.args as unknown as { members: Record<string, ReturnType<typeof serialise>> };
  expect(call).toMatchObject({
    kind: "tradewind.all",
    source: "builtin",
    wake: { at: "2200-01-01T00:00:00.000Z" },
    timed: null,
  });
  expect(members["late"]?.kind).toBe("tradewind.datetime");
  const moment = (members["soon"]!.args as { moment: string }).moment;
  expect(members["soon"]).toMatchObject({
    kind: "tradewind.datetime",
    wake: { at: moment },
    timed: { payload: moment },
  });
  expect(Date.parse(moment)).toBeGreaterThanOrEqual(before + 3_600_000);
  expect(Date.parse(moment)).toBeLessThanOrEqual(after + 3_600_000);
});

test("computes wake time and bundle of a joint wait from its members", () => {
  expect(serialise(all({ a: new DateTimeTrigger({ moment: "2200-01-01" }), b: new Mine() }))).toMatchObject({
    source: "bundle",
    wake: null,
    args: { members: { b: { kind: "test.mine", source: "bundle" } } },
  });
});

test.each<[says: RegExp, members: object]>([
  [/takes a trigger, a signal, or an object of these, got an empty object/, {}],
  [/got 1 for a/, { a: 1 }],
  [/need one queue, got default, etl/, { a: new Mine(), b: new ProcessTrigger({ pid: 1, queue: "etl" }) }],
])("rejects a joint wait: %s", (says, members) => {
  expect(() => serialise(all(members as { a: Mine }))).toThrow(
    expect.objectContaining({ code: "TW_BAD_TRIGGER", message: expect.stringMatching(says) }),
  );
});

test("rejects a duration in a joint wait that begins without a worker", () => {
  const soon = all({ soon: new TimeDeltaTrigger({ delta: "1h" }) });
  expect(() => dag("x", (d) => void d.trigger("t", soon))).toThrow(
    /soon: a duration cannot be part of a joint wait/,
  );
});

test("schedules a DAG on a trigger", () => {
  const schedule = on(new RedisStreamTrigger({ connection: "bus", stream: "orders" }));
  const manifest = dag("x", { schedule }, (d) => void d.task("t", (_, ctx) => ctx.params.event?.id ?? ""))[
    PROGRAM
  ].describe();
  expect(manifest.schedule).toMatchObject({ kind: "trigger", trigger: { kind: "tradewind.redisstream" } });
  expect(on(new DateTimeTrigger({ moment: "2027-01-01" }))).toMatchObject({ trigger: { timed: {} } });
  expect(() => on("orders" as never)).toThrow(expect.objectContaining({ code: "TW_BAD_TRIGGER" }));
});
