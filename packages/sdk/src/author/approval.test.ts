import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import { type Approval, type DagBuilder, dag, type Output } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

const Target = z.object({ region: z.enum(["eu", "us"]), rows: z.number().default(10) });
const request = (changes: object = {}) => ({
  ...{ title: "ask", message: null, assignees: [], problem: null },
  ...changes,
});
const taskOf = (build: (d: DagBuilder) => void, options = {}) =>
  dag("x", options, (d) => void build(d))
    [PROGRAM].describe()
    .tasks.at(-1)!;
const answered = (event: object, kwargs: object = request()) => ({
  resumePoint: { method: "answered", kwargs: kwargs as never, event: event as never },
});

describe("the manifest of an approval", () => {
  test("begins with the wait if its parts are constant, and has no limit but its own", () => {
    const task = taskOf((d) => d.approval("ask", { timeout: "2d" }), { defaults: { timeout: "1m" } });
    expect(task).toMatchObject({
      operator: "approval",
      timeoutMs: null,
      approval: { form: null, onReject: "skip", onTimeout: "fail", timeoutMs: 172_800_000 },
      startTrigger: { method: null, kwargs: request(), timeoutMs: 172_800_000, onTimeout: "fatal" },
    });
    const { message: _, ...args } = request();
    expect(task.startTrigger!.trigger).toEqual({
      ...{ kind: "tradewind.approval", args, source: "builtin", queue: "default", replicas: 1 },
      ...{ wake: null, timed: null },
    });
  });

  test("resumes with the answer to a form, whose JSON Schema it has", () => {
    const { approval, startTrigger } = taskOf((d) =>
      d.approval("ask", { title: "Where?", form: Target, assignees: ["ann"], onReject: "fail" }),
    );
    expect(startTrigger).toMatchObject({
      method: "answered",
      kwargs: request({ title: "Where?", assignees: ["ann"] }),
    });
    expect(approval).toMatchObject({ onReject: "fail", form: { schema: { type: "object" } } });
  });

  test("fires by itself if the timeout answers", () => {
    const { approval, startTrigger } = taskOf((d) =>
      d.approval("ask", { form: Target, timeout: "1h", onTimeout: { answer: { region: "eu" } } }),
    );
    expect(approval?.onTimeout).toBe("answer");
    expect(startTrigger).toMatchObject({
      timeoutMs: null,
      trigger: {
        wake: { afterMs: 3_600_000 },
        timed: { payload: { answer: { region: "eu" }, by: null, comment: null } },
      },
    });
    const plain = taskOf((d) => d.approval("ask", { timeout: "1h", onTimeout: "approve" }));
    expect(plain.startTrigger?.trigger.timed).toEqual({ payload: { by: null, comment: null } });
    const skip = taskOf((d) => d.approval("ask", { timeout: "1h", onTimeout: "skip" }));
    expect(skip.startTrigger).toMatchObject({ onTimeout: "skip", timeoutMs: 3_600_000 });
  });

  test("begins with an attempt if a part is a function", () => {
    expect(taskOf((d) => d.approval("ask", { message: () => "m" })).startTrigger).toBeUndefined();
  });
});

describe("an attempt of an approval", () => {
  const both = dag("x", (d) => {
    const size = d.task("size", () => 7);
    const title = (given: { size: number }) => `Publish ${given.size}?`;
    d.approval("ask", { inputs: { size }, title, assignees: (_, ctx) => [ctx.run.id], form: Target });
    d.approval("bad", { title: () => "a\0b" });
    d.approval("plain", { title: () => "ok?" });
    const form = z.object({ n: z.number() }).refine(({ n }) => n > 0, "n must be positive");
    d.approval("refined", { form });
  });

  test("computes the request from inputs and context", async () => {
    const inputs = { size: { state: "success" as const, value: 7 } };
    const host = new RecordingHost();
    const outcome = await attempt(both, "ask", { inputs, host });
    expect(outcome).toMatchObject({
      ...{ kind: "deferred", method: "answered", timeoutMs: null, onTimeout: "fatal" },
      kwargs: { title: "Publish 7?", message: null, problem: null },
    });
    expect((outcome as unknown as { kwargs: { assignees: string[] } }).kwargs.assignees).toHaveLength(1);
  });

  test("fails if a function returns what cannot be stored", async () => {
    expect(await attempt(both, "bad")).toMatchObject({
      ...{ kind: "failed", error: { code: "TW_APPROVAL_INVALID" } },
    });
  });

  test("returns the value of the validator, and who approved without a form", async () => {
    const answer = { answer: { region: "us" }, by: "ann", comment: null };
    const inputs = { size: { state: "success" as const, value: 7 } };
    expect(await attempt(both, "ask", { inputs, ...answered(answer) })).toMatchObject({
      ...{ kind: "success", output: { region: "us", rows: 10 } },
    });
    expect(await attempt(both, "plain", answered({ by: "ann", comment: "c" }))).toMatchObject({
      ...{ kind: "success", output: { by: "ann", comment: "c" } },
    });
  });

  test("asks again if the validator rejects a person's answer, and fails for that of onTimeout", async () => {
    const again = await attempt(both, "refined", answered({ answer: { n: 0 }, by: "ann", comment: null }));
    expect(again).toMatchObject({
      kind: "deferred",
      kwargs: { title: "ask", problem: "n must be positive" },
    });
    const silent = await attempt(both, "refined", answered({ answer: { n: 0 }, by: null, comment: null }));
    expect(silent).toMatchObject({ kind: "failed", error: { code: "TW_APPROVAL_INVALID" } });
  });
});

test.each([
  [
    "the answer of onTimeout does not satisfy the form",
    { timeout: "1h", form: Target, onTimeout: { answer: {} } },
  ],
  [
    'onTimeout must be "fail", "skip" or { answer: … }',
    { timeout: "1h", form: Target, onTimeout: "approve" },
  ],
  ["title must be a text of 1 to 500 characters", { title: "" }],
  ["message must be a text of 1 to 20000 characters", { message: "x".repeat(20_001) }],
  ["assignees must be a list of at most 100 names", { assignees: "ann" }],
  ["form must be a Standard Schema validator", { form: { type: "object" } }],
  ['onReject must be one of "skip", "fail"', { onReject: "retry" }],
  ["onTimeout has no effect without a timeout", { onTimeout: "skip" }],
  ['onTimeout must be "fail", "skip" or "approve"', { timeout: "1h", onTimeout: { answer: 1 } }],
  ['unknown option "assignee"', { assignee: "ann" }],
  ["options must be an object", 7],
])("rejects with: %s", (message, options) => {
  expect(() => taskOf((d) => d.approval("ask", options as never))).toThrow(message);
});

test("the output has the type of the form", () => {
  dag("x", (d) => {
    expectTypeOf(d.approval("a")).toEqualTypeOf<Output<Approval>>();
    const target = d.approval("b", { form: Target, timeout: "1h", onTimeout: { answer: { region: "eu" } } });
    expectTypeOf(target).toEqualTypeOf<Output<{ region: "eu" | "us"; rows: number }>>();
    // @ts-expect-error a date is not JSON
    d.approval("c", { form: z.object({ at: z.string().transform((text) => new Date(text)) }) });
  });
});
