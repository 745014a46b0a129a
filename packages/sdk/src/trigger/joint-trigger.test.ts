import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import {
  all,
  any,
  DagRunTrigger,
  DateTimeTrigger,
  dag,
  FileTrigger,
  Operator,
  on,
  PollTrigger,
  serialise,
  signal,
  start,
  type TaskContext,
  TimeDeltaTrigger,
  WebhookTrigger,
} from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const file = new FileTrigger({ path: "/data/in.csv" });
const hook = new WebhookTrigger({ name: "approval" });
const run = new DagRunTrigger({ dagId: "other", runId: "r1" });
const sold = signal("sold", z.object({ day: z.coerce.date<string>() }));
const refusal = (says: RegExp) =>
  expect.objectContaining({ code: "TW_BAD_TRIGGER", message: expect.stringMatching(says) });

class Job extends PollTrigger<{ id: string }, string> {
  static id = "acme.any_job";
  async poll() {
    return "done";
  }
  override async onCancel() {}
}

describe("any() of triggers", () => {
  test("stores its members by name, or by position", () => {
    expect(serialise(any({ file, hook }))).toMatchObject({
      kind: "tradewind.any",
      source: "builtin",
      args: {
        list: false,
        members: { file: { kind: "tradewind.file" }, hook: { kind: "tradewind.webhook" } },
      },
      wake: null,
      timed: null,
    });
    expect(serialise(any(file, new Job({ id: "7" })))).toMatchObject({
      source: "bundle",
      onCancel: true,
      args: { list: true, members: { 0: { kind: "tradewind.file" }, 1: { kind: "acme.any_job" } } },
    });
  });

  test("cannot fire before its first moment, and fixes the end of durations when the wait begins", () => {
    const [early, late] = ["2027-01-01", "2027-02-01"].map((moment) => new DateTimeTrigger({ moment }));
    expect(serialise(any(late!, early!)).wake).toEqual({ at: "2027-01-01T00:00:00.000Z" });
    expect(serialise(any(late!, file)).wake).toBeNull();
    const hour = serialise(any({ hour: new TimeDeltaTrigger({ delta: "1h" }), file }));
    expect(hour.args).toMatchObject({ members: { hour: { kind: "tradewind.datetime" } } });
  });

  test("is accepted by d.trigger, defer and the schedule", async () => {
    class Waiting extends Operator<void, string> {
      override async execute() {
        return this.defer({ trigger: any({ file, run }), method: "go" });
      }
      async go(_: TaskContext, first: { name: "file" | "run" }) {
        return first.name;
      }
    }
    const defined = dag("x", { schedule: on(any(file, new Job({ id: "7" }))) }, (d) => {
      d.trigger("node", any(file, hook));
      d.operator("operator", new Waiting());
    });
    const { schedule, tasks } = defined[PROGRAM].describe();
    expect(schedule).toMatchObject({ kind: "trigger", trigger: { kind: "tradewind.any" } });
    expect(tasks[0]!.startTrigger!.trigger.kind).toBe("tradewind.any");
    expect(await attempt(defined, "operator")).toMatchObject({
      kind: "deferred",
      trigger: { kind: "tradewind.any" },
    });
    const resumePoint = { method: "go", kwargs: {}, event: { name: "run", event: {} } };
    expect(await attempt(defined, "operator", { resumePoint })).toMatchObject({ output: "run" });
  });

  test("returns the member that fired, with the validated value of a signal", async () => {
    const host = new RecordingHost();
    const days: (Date | string)[] = [];
    const defined = dag("x", (d) => {
      d.task("t", async (_, ctx) => {
        const byName = await ctx.until("by name", any({ sold, file }));
        days.push(byName.name === "sold" ? byName.event.value.day : byName.event.path);
        const { index, event } = await ctx.until("by index", any(file, sold));
        days.push(index === 1 ? event.value.day : event.path);
        const { size } = (await ctx.until("file", any({ file }))).event;
        return size;
      });
    });
    const heard = (day: string, version: number) => ({ key: "sold", value: { day }, version });
    host.journal["by name"] = { kind: "event", value: { name: "sold", event: heard("2027-01-04", 1) } };
    host.journal["by index"] = { kind: "event", value: { index: 1, event: heard("2027-01-05", 2) } };
    host.journal["file"] = { kind: "event", value: { name: "file", event: { size: 3 } } };
    expect(await attempt(defined, "t", { host })).toMatchObject({ output: 3 });
    expect(days).toEqual([new Date("2027-01-04"), new Date("2027-01-05")]);
  });

  test("skips a signal with an invalid value and continues to wait", async () => {
    const host = new RecordingHost();
    host.journal["x"] = {
      kind: "event",
      value: { name: "sold", event: { key: "sold", value: { day: "never" }, version: 4 } },
    };
    const defined = dag("x", (d) => {
      d.task("t", async (_, ctx) => (await ctx.until("x", any({ sold, file }))).name);
    });
    expect(await attempt(defined, "t", { host })).toMatchObject({
      kind: "deferred",
      name: "x (2)",
      trigger: { args: { members: { sold: { args: { after: 4 } } } } },
    });
  });

  test("is also a condition if all members are signals", () => {
    const either = any(sold, signal("tick"));
    expect(on(either)).toMatchObject({ kind: "signal", when: { kind: "any" } });
    expect(serialise(either)).toMatchObject({ kind: "tradewind.any", args: { list: true } });
    const { tasks } = dag("x", (d) => void d.task("t", { on: [start(either)] }, () => 1))[PROGRAM].describe();
    expect(tasks[0]!.rules).toMatchObject([{ when: { kind: "any" } }]);
  });
});

describe("a nested joint wait", () => {
  test.each([
    [
      "any in all, of triggers that are run",
      () => all({ file, first: any({ a: file, b: new Job({ id: "1" }) }) }),
    ],
    ["any in all, of what the engine observes", () => all({ sold, first: any({ hook, run }) })],
    ["all in any", () => any({ both: all({ sold, hook }), run })],
    ["inside it only what the engine observes", () => all({ file, first: any({ hook, sold }) })],
    ["inside it only what is run", () => any({ both: all({ file, job: new Job({ id: "1" }) }), run })],
  ])("is accepted: %s", (_, make) => {
    expect(() => serialise(make())).not.toThrow();
  });

  test.each([
    [
      "all in any",
      () => any({ both: all({ file, sold }), run }),
      /^both: .*"tradewind.signal" and "tradewind.file"/,
    ],
    [
      "any in all",
      () => all({ file, first: any({ hook, job: new Job({ id: "1" }) }) }),
      /^first: .*one ctx.until after/,
    ],
  ])(
    "is rejected if it mixes triggers that the engine observes with triggers that are run: %s",
    (_, make, says) => {
      expect(() => serialise(make())).toThrowError(refusal(says));
    },
  );
});

test.each([
  ["nothing", () => any({}), /any\(\) takes triggers and signals/],
  ["something else", () => any({ file, x: 5 as never }), /got 5 for x/],
  ["a condition of a list", () => any(file, all(sold, sold) as never), /for 1; a condition is for rules/],
  ["a webhook in a schedule", () => on(any(file, hook)), /"tradewind.webhook" cannot be one of several/],
])("rejects any() of %s", (_, make, says) => {
  expect(make).toThrowError(refusal(says));
});

test("names the remedy for a condition of signals in ctx.until", async () => {
  const defined = dag("x", (d) => {
    d.task("t", (_, ctx) => ctx.until("x", all(sold, signal("tick")) as never).then(() => 1));
  });
  expect(await attempt(defined, "t")).toMatchObject({
    retry: false,
    error: { code: "TW_BAD_TRIGGER", message: expect.stringContaining("all({ a, b })") },
  });
});
