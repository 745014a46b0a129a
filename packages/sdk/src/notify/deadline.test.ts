import { describe, expect, test } from "vitest";
import { RecordingHost, taskCall } from "../../test/attempt-call.ts";
import {
  averageOf,
  type Deadline,
  type DeadlineContext,
  type DeadlineFunction,
  type DeadlineOptions,
  dag,
  deadline,
  email,
  type Notice,
  sendSignal,
  signal,
  webhook,
} from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

/** A helper, because the linter rejects an object literal with a member `then`. */
function made(after: DeadlineOptions["after"], actions?: readonly (DeadlineFunction | Notice)[]): Deadline {
  const options = Object.fromEntries([
    ["after", after],
    ["within", "30m"],
    ...(actions ? [["then", actions]] : []),
  ]);
  return deadline(options as unknown as DeadlineOptions);
}

const describeDag = (of: Deadline | readonly Deadline[], task?: Deadline) =>
  dag("x", { deadline: of }, (d) => {
    d.task("t", task ? { deadline: task } : {}, () => 1);
  })[PROGRAM].describe();

describe("a deadline", () => {
  test("is in the manifest of its DAG or task, with its actions", () => {
    const late = signal<{ why: string }>("late");
    const told = made("queued", [
      () => {},
      webhook("https://hooks.example.com/x"),
      webhook("pager"),
      email({ to: "ops@example.com", connection: "mail" }),
      email({ to: ["a@example.com", "b@example.com"], connection: "mail" }),
      sendSignal(late, { why: "slow" }),
      sendSignal(late),
    ]);
    const manifest = describeDag([told, made(averageOf(10))], made("logicalDate"));
    expect(manifest.deadlines).toEqual([
      {
        after: "queued",
        withinMs: 1_800_000,
        actions: [
          { kind: "function" },
          { kind: "webhook", to: "https://hooks.example.com/x" },
          { kind: "webhook", to: "pager" },
          { kind: "email", to: ["ops@example.com"], connection: "mail" },
          { kind: "email", to: ["a@example.com", "b@example.com"], connection: "mail" },
          { kind: "signal", namespace: "default", key: "late", value: { why: "slow" } },
          { kind: "signal", namespace: "default", key: "late" },
        ],
      },
      { after: { averageOf: 10, atLeast: 3 }, withinMs: 1_800_000, actions: [] },
    ]);
    expect(manifest.tasks[0]?.deadlines).toEqual([
      { after: "logicalDate", withinMs: 1_800_000, actions: [] },
    ]);
    expect(JSON.parse(JSON.stringify(manifest))).toEqual(manifest);
  });

  test("leaves the manifest of a DAG without a deadline unchanged", () => {
    const manifest = dag("x", (d) => void d.task("t", () => 1))[PROGRAM].describe();
    expect(manifest).not.toHaveProperty("deadlines");
    expect(manifest.tasks[0]).not.toHaveProperty("deadlines");
    expect(describeDag([])).not.toHaveProperty("deadlines");
  });

  test("calls the function at its position with the missed deadline", async () => {
    const seen: [string, DeadlineContext][] = [];
    const note = (name: string) => (ctx: DeadlineContext) => void seen.push([name, ctx]);
    const defined = dag(
      "x",
      { deadline: [made("queued"), made("start", [webhook("pager"), note("run")])] },
      (d) => {
        d.task("t", { deadline: made("start", [note("task")]) }, () => 1);
      },
    );
    const { conf, run } = taskCall(defined, "t");
    const call = (taskId: string | null, ordinal: number, action: number) =>
      defined[PROGRAM].callback({
        taskId,
        event: "deadline",
        deadline: { ordinal, action, dueAt: "2026-01-01T00:00:00.000Z" },
        run,
        tryNumber: 0,
        error: null,
        conf,
        host: new RecordingHost(),
      });
    for (const [taskId, ordinal, action] of [
      [null, 1, 1],
      ["t", 0, 0],
      [null, 0, 0],
      [null, 1, 0],
      ["gone", 0, 0],
    ] as const) {
      expect(await call(taskId, ordinal, action)).toEqual({ ok: true });
    }
    expect(seen.map(([name]) => name)).toEqual(["run", "task"]);
    expect(seen[0]?.[1]).toMatchObject({
      event: "deadline",
      taskId: null,
      run: { id: "manual__1" },
      deadline: { ordinal: 1, dueAt: new Date("2026-01-01T00:00:00Z") },
    });
    expect(seen[1]?.[1]).toMatchObject({ taskId: "t", deadline: { ordinal: 0 } });
  });
});

describe("an invalid deadline", () => {
  const refusals: readonly [string, () => unknown, string][] = [
    [
      "no moment",
      () => made("later" as never),
      'after must be "queued", "logicalDate", "start" or averageOf(10)',
    ],
    ["no time", () => deadline({ after: "queued", within: 0 }), "within must be more than 0"],
    ["no duration", () => deadline({ after: "queued", within: "soon" as never }), "is not a duration"],
    [
      "another option",
      () => deadline({ after: "queued", within: 1, than: [] } as never),
      'unknown option "than"',
    ],
    ["no list", () => made("queued", (() => {}) as never), "then takes a list"],
    ["no action", () => made("queued", ["me" as never]), "then takes functions, webhook(), email()"],
    ["no runs", () => averageOf(0), "from 1 to 1000"],
    ["more than all", () => averageOf(5, { atLeast: 6 }), "atLeast is a whole number from 1 to 5"],
    ["no receiver", () => webhook(""), "takes an http address or the id of a connection"],
    ["another protocol", () => webhook("ftp://x"), "begins with http:// or https://"],
    ["no address", () => email({ to: "ops", connection: "mail" }), "email(): to takes one address"],
    [
      "two lines",
      () => email({ to: "a@b.example\r\nx", connection: "mail" }),
      "email(): to takes one address",
    ],
    ["no recipient", () => email({ to: [], connection: "mail" }), "email(): to takes one address"],
    ["no connection", () => email({ to: "a@b.example", connection: "" }), "email(): connection is the id"],
    ["no signal", () => sendSignal("late" as never), "takes the result of signal()"],
    ["many signals", () => sendSignal(signal("late.*")), '"*" can be listened to, not sent'],
    [
      "the engine's",
      () => sendSignal(signal("x", undefined, { namespace: "deadline" })),
      "belongs to the engine",
    ],
    ["no JSON", () => sendSignal(signal<unknown>("x"), new Date()), "sendSignal(): value is a Date"],
    ["no deadline", () => describeDag({} as never), 'dag "x": deadline takes results of deadline()'],
  ];
  for (const [name, wrong, message] of refusals) test(name, () => expect(wrong).toThrow(message));
});
