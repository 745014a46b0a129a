import { expect, test } from "vitest";
import { attempt, RecordingHost, success } from "../../test/attempt-call.ts";
import { dag, type FileEvent, FileTrigger, Operator, type TaskContext } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

class Export extends Operator<{ table: string }, string, { rows: number }> {
  override async execute(ctx: TaskContext, { rows }: { rows: number }) {
    if (rows === 0) return "nothing";
    const trigger = new FileTrigger({ path: `/data/${this.args.table}.csv` });
    return this.defer({
      trigger,
      method: "written",
      kwargs: { try: ctx.tryNumber },
      timeout: "2h",
      onTimeout: "skip",
    });
  }
  written(ctx: TaskContext, event: FileEvent, kwargs: { try: number }, { rows }: { rows: number }) {
    ctx.log.info("written");
    if (event.size === 0)
      return this.defer({ trigger: new FileTrigger({ path: event.path }), method: "grown" });
    return `${event.path} ${event.size} ${kwargs.try} ${rows}`;
  }
  async grown(_ctx: TaskContext, event: FileEvent) {
    return `grown to ${event.size}`;
  }
}

const defined = dag("x", (d) => {
  const rows = d.task("rows", () => 3);
  d.operator("export", new Export({ table: "sales" }), { inputs: { rows } });
  d.task("function", () => 1);
});
const inputs = { rows: success(3) };

function resumePoint(method: string, event: object = { path: "/a", size: 1, mtime: "" }) {
  return { method, event: event as never, kwargs: { try: 1 } };
}

test("lets an operator defer conditionally", async () => {
  expect(await attempt(defined, "export", { inputs: { rows: success(0) } })).toMatchObject({
    output: "nothing",
  });
  expect(await attempt(defined, "export", { inputs })).toEqual({
    kind: "deferred",
    trigger: {
      kind: "tradewind.file",
      args: { path: "/data/sales.csv", intervalMs: 10_000 },
      source: "builtin",
      queue: "default",
      replicas: 1,
      wake: null,
      timed: null,
    },
    method: "written",
    name: null,
    kwargs: { try: 1 },
    timeoutMs: 7_200_000,
    onTimeout: "skip",
    onFailure: "fail",
  });
});

test("resumes with the named method, which may defer again", async () => {
  expect(await attempt(defined, "export", { inputs, resumePoint: resumePoint("written") })).toEqual({
    kind: "success",
    output: "/a 1 1 3",
    skip: [],
  });
  const again = await attempt(defined, "export", {
    inputs,
    resumePoint: resumePoint("written", { path: "/b", size: 0 }),
  });
  expect(again).toMatchObject({
    kind: "deferred",
    method: "grown",
    kwargs: {},
    timeoutMs: null,
    onTimeout: "fail",
  });
  expect(await attempt(defined, "export", { inputs, resumePoint: resumePoint("grown") })).toMatchObject({
    output: "grown to 1",
  });
});

test.each([
  ["export", "gone", /the operator of task "export" has no method "gone"/],
  ["export", "defer", /has no method "defer"/],
  ["export", "args", /has no method "args"/],
  ["function", "written", /task "function" is a function: it has no method "written"/],
])("fails task %s without a retry if it cannot resume with %s", async (taskId, method, says) => {
  expect(await attempt(defined, taskId, { inputs, resumePoint: resumePoint(method) })).toMatchObject({
    kind: "failed",
    retry: false,
    error: { code: "TW_STEP_UNKNOWN", message: expect.stringMatching(says) },
  });
});

test("rejects a deferral to a missing method, and a deferral from a function", async () => {
  class Lost extends Operator<void, number> {
    override execute() {
      return this.defer({ trigger: new FileTrigger({ path: "/a" }), method: "nowhere" as "execute" });
    }
  }
  const wrong = dag("x", (d) => {
    d.operator("lost", new Lost());
    d.task("function", () => new Lost().execute() as never);
  });
  for (const id of ["lost", "function"]) {
    expect(await attempt(wrong, id)).toMatchObject({
      kind: "failed",
      retry: false,
      error: { code: "TW_STEP_UNKNOWN" },
    });
  }
});

test("rejects kwargs that are not JSON, without a retry", async () => {
  class Dated extends Operator<void, number> {
    override execute() {
      return this.defer({
        trigger: new FileTrigger({ path: "/a" }),
        method: "on",
        kwargs: { at: new Date() } as object,
      });
    }
    on() {
      return 1;
    }
  }
  expect(
    await attempt(
      dag("x", (d) => void d.operator("t", new Dated())),
      "t",
    ),
  ).toMatchObject({
    kind: "failed",
    retry: false,
    error: { code: "TW_STEP_NOT_JSON", message: "kwargs.at is a Date; return date.toISOString() instead" },
  });
});

test("rejects ctx.until in a method after a deferral, and accepts ctx.step", async () => {
  class Mixed extends Operator<void, number> {
    override execute() {
      return this.defer({ trigger: new FileTrigger({ path: "/a" }), method: "next" });
    }
    async next(ctx: TaskContext, event: FileEvent) {
      const size = await ctx.step("size", () => event.size);
      return size === 0 ? (await ctx.until("more", new FileTrigger({ path: "/b" }))).size : size;
    }
  }
  const mixed = dag("x", (d) => void d.operator("t", new Mixed()));
  const host = new RecordingHost();
  expect(await attempt(mixed, "t", { host, resumePoint: resumePoint("next") })).toMatchObject({
    kind: "success",
    output: 1,
  });
  expect(await attempt(mixed, "t", { resumePoint: resumePoint("next", { size: 0 }) })).toMatchObject({
    retry: false,
    error: {
      code: "TW_STEP_NESTED",
      message: expect.stringContaining("in next(), which runs after a deferral"),
    },
  });
});

test("writes startFrom to the manifest: with a method, without a method, or not at all", () => {
  class Begins extends Operator<{ how: "defer" | "event" | "object" | "never" }, number> {
    override startFrom() {
      const trigger = new FileTrigger({ path: "/a" });
      switch (this.args.how) {
        case "defer":
          return this.defer({ trigger, method: "go", kwargs: { n: 1 }, timeout: "1m" });
        case "object":
          return { trigger, method: "go", onTimeout: "skip" } as const;
        case "event":
          return { trigger: trigger as never };
        default:
          return null;
      }
    }
    override execute() {
      return 1;
    }
    go() {
      return 2;
    }
  }
  const manifest = (operator: Begins) =>
    dag("x", (d) => void d.operator("t", operator))[PROGRAM].describe().tasks[0];
  const trigger = expect.objectContaining({ kind: "tradewind.file" });
  expect(manifest(new Begins({ how: "defer" }))?.startTrigger).toEqual({
    trigger,
    method: "go",
    kwargs: { n: 1 },
    timeoutMs: 60_000,
    onTimeout: "fail",
  });
  expect(manifest(new Begins({ how: "object" }))?.startTrigger).toMatchObject({
    method: "go",
    onTimeout: "skip",
  });
  expect(manifest(new Begins({ how: "event" }))?.startTrigger).toMatchObject({
    trigger,
    method: null,
    kwargs: {},
  });
  expect(manifest(new Begins({ how: "never" }))).not.toHaveProperty("startTrigger");
  class Wrong extends Operator<void, number> {
    override startFrom() {
      return { trigger: new FileTrigger({ path: "/a" }), method: "gone" };
    }
    override execute() {
      return 1;
    }
  }
  expect(() => dag("x", (d) => void d.operator("t", new Wrong()))[PROGRAM].describe()).toThrow(
    'dag "x", task "t": startFrom names the method "gone", which its operator does not have',
  );
});

test("fails to run a task that is a trigger, which has no code", async () => {
  const node = dag("x", (d) => void d.trigger("t", new FileTrigger({ path: "/a" })));
  expect(await attempt(node, "t")).toMatchObject({
    kind: "failed",
    retry: false,
    error: { code: "TW_STEP_UNKNOWN" },
  });
});
