import { expect, test } from "vitest";
import { z } from "zod";
import { attempt, RecordingHost, success } from "../../test/attempt-call.ts";
import {
  type CallbackContext,
  type DagBuilder,
  dag,
  fail,
  Operator,
  skip,
  type TaskContext,
  type TaskError,
} from "../index.ts";

/** A DAG with one task "t" that runs `run`. */
function one(run: (inputs: never, ctx: TaskContext) => unknown) {
  return dag("x", (d) => void d.task("t", run as () => number));
}

test("returns the result of the handler as output", async () => {
  expect(
    await attempt(
      one(() => ({ a: [1, null] })),
      "t",
    ),
  ).toEqual({ kind: "success", output: { a: [1, null] }, skip: [] });
  expect(
    await attempt(
      one(async () => "late"),
      "t",
    ),
  ).toMatchObject({ output: "late" });
  expect(
    await attempt(
      one(() => {}),
      "t",
    ),
  ).toEqual({ kind: "success", output: undefined, skip: [] });
});

test("passes inputs by name, settled under any rule but allSuccess", async () => {
  const defined = dag("x", (d) => {
    const a = d.task("a", () => 1);
    const b = d.task("b", () => "b");
    d.task("plain", { inputs: { a, b } }, (inputs) => ({ ...inputs }));
    d.task("done", { inputs: { a, b }, rule: "allDone" }, (inputs) => ({ ...inputs }));
  });
  const inputs = { a: success(1), b: success("b") };
  expect(await attempt(defined, "plain", { inputs })).toMatchObject({ output: { a: 1, b: "b" } });
  const mixed = { a: success(1), b: { state: "upstream_failed", value: undefined } } as const;
  expect(await attempt(defined, "done", { inputs: mixed })).toMatchObject({
    output: { a: { state: "success", value: 1 }, b: { state: "upstream_failed" } },
  });
  expect(await attempt(defined, "done", {})).toMatchObject({
    output: { a: { state: "pending" }, b: { state: "pending" } },
  });
  expect(await attempt(defined, "plain", { inputs: mixed })).toMatchObject({
    kind: "failed",
    retry: false,
    error: {
      code: "TW_INPUT_MISSING",
      message: expect.stringContaining('input "b" needs task "b" to have succeeded'),
    },
  });
});

test("describes run, try and attempt in the context", async () => {
  const seen: TaskContext[] = [];
  const defined = one((_, ctx) => void seen.push(ctx));
  await attempt(defined, "t", {
    tryNumber: 2,
    maxTries: 3,
    mapIndex: 4,
    attempt: "token",
    conf: { region: "eu" },
  });
  expect(seen[0]).toMatchObject({
    taskId: "t",
    tryNumber: 2,
    maxTries: 3,
    mapIndex: 4,
    attempt: "token",
    params: { region: "eu" },
    run: {
      id: "manual__1",
      dagId: "x",
      type: "manual",
      logicalDate: new Date("2026-01-02T00:00:00Z"),
      dataInterval: { start: new Date("2026-01-01T00:00:00Z"), end: new Date("2026-01-02T00:00:00Z") },
      startedAt: null,
      version: 7,
    },
  });
  expect(Object.isFrozen(seen[0])).toBe(true);
});

test("validates params, also asynchronously, and fails without a retry if they are invalid", async () => {
  const params = z.object({
    region: z.string().default("eu"),
    n: z.number().refine(async (n) => n > 0, "must be positive"),
  });
  const defined = dag("x", { params }, (d) => void d.task("t", (_, ctx) => ctx.params));
  expect(await attempt(defined, "t", { conf: { n: 1 } })).toMatchObject({ output: { region: "eu", n: 1 } });
  expect(await attempt(defined, "t", { conf: { n: 0, region: 5 } })).toMatchObject({
    kind: "failed",
    retry: false,
    error: {
      code: "TW_PARAMS_INVALID",
      message: expect.stringMatching(/region: .*; n: must be positive; trigger a new run/),
    },
  });
  expect(
    await attempt(
      one(() => 1),
      "t",
      { conf: [1] },
    ),
  ).toMatchObject({ error: { code: "TW_PARAMS_INVALID" } });
  expect(
    await attempt(
      one((_, ctx) => ctx.params),
      "t",
      { conf: null },
    ),
  ).toMatchObject({ output: {} });
});

test("accepts skip and fail as return values and as thrown errors", async () => {
  const deep = () => {
    throw skip("deep");
  };
  expect(
    await attempt(
      one(() => skip("nothing to do")),
      "t",
    ),
  ).toEqual({ kind: "skipped", reason: "nothing to do" });
  expect(
    await attempt(
      one(() => skip()),
      "t",
    ),
  ).toEqual({ kind: "skipped", reason: null });
  expect(
    await attempt(
      one(async () => deep()),
      "t",
    ),
  ).toEqual({ kind: "skipped", reason: "deep" });
  const failed = { kind: "failed", retry: false, error: { name: "TaskFailed", message: "declined" } };
  expect(
    await attempt(
      one(() => fail("declined")),
      "t",
    ),
  ).toMatchObject(failed);
  expect(
    await attempt(
      one(() => {
        throw fail("declined");
      }),
      "t",
    ),
  ).toMatchObject(failed);
});

test("flattens an error with its code and causes, without frames of the SDK", async () => {
  async function authorsFunction() {
    await null;
    throw Object.assign(new TypeError("broken", { cause: new Error("root") }), { code: "E_BROKEN" });
  }
  const outcome = await attempt(
    one(async () => authorsFunction()),
    "t",
  );
  expect(outcome).toMatchObject({
    kind: "failed",
    retry: true,
    error: { name: "TypeError", message: "broken (cause: root)", code: "E_BROKEN" },
  });
  const stack = outcome.kind === "failed" ? outcome.error.stack! : "";
  expect(stack).toMatch(/^TypeError: broken\n\s+at authorsFunction .*attempt\.test\.ts/);
  expect(stack).toMatch(/\nCaused by: Error: root\n/);
  expect(stack).not.toMatch(/tradewindCallsUserCode|attempt\.ts:|node:internal/);
});

test("limits the stack of a synchronous error to the author's code", async () => {
  const outcome = await attempt(
    one(() => {
      throw new Error("now");
    }),
    "t",
  );
  const frames = (outcome.kind === "failed" ? outcome.error.stack! : "").split("\n").slice(1);
  expect(frames).toHaveLength(1);
  expect(frames[0]).toContain("attempt.test.ts");
});

test.each<[thrown: unknown, error: object]>([
  ["text", { name: "NonError", message: "thrown value: text" }],
  [undefined, { name: "NonError", message: "thrown value: undefined" }],
  [{ a: 1 }, { name: "NonError", message: 'thrown value: {"a":1}' }],
  [Symbol("s"), { message: "thrown value: Symbol(s)" }],
  [Object.create(null), { name: "NonError" }],
  [
    { name: "Foreign", message: "other realm" },
    { name: "Foreign", message: "other realm" },
  ],
  [
    new Proxy(
      {},
      {
        has: () => {
          throw new Error("trap");
        },
      },
    ),
    { name: "NonError" },
  ],
])("fails the attempt, without rejecting, if user code throws %s", async (thrown, error) => {
  const outcome = await attempt(
    one(() => {
      throw thrown;
    }),
    "t",
  );
  expect(outcome).toMatchObject({ kind: "failed", retry: true, error });
});

test.each(["variable", "connection"] as const)("fails without a retry if a %s is missing", async (kind) => {
  const defined = dag("d", (d) => void d.task("t", async (_, ctx) => void (await ctx[kind]("no"))));
  const outcome = await attempt(defined, "t", { host: new RecordingHost() });
  expect(outcome).toMatchObject({ kind: "failed", retry: false });
});

test("keeps the messages and stacks of an AggregateError's errors", async () => {
  const loads = async (name: string) => {
    throw new Error(`cannot load ${name}`, { cause: new Error("disk full") });
  };
  const outcome = await attempt(
    one(() => Promise.any([loads("a"), loads("b"), Promise.reject("text")])),
    "t",
  );
  expect(outcome).toMatchObject({
    kind: "failed",
    error: {
      name: "AggregateError",
      message:
        "All promises were rejected: cannot load a (cause: disk full); cannot load b (cause: disk full); text",
      stack: expect.stringMatching(
        /Error 1 of 3: Error: cannot load a\n +at loads [^\n]*attempt\.test\.ts.*Caused by: Error: disk full.*Error 2 of 3: Error: cannot load b.*Error 3 of 3: text$/s,
      ),
    },
  });
  const circular = new AggregateError([]);
  circular.errors.push(circular, ...Array.from({ length: 12 }, (_, n) => new Error(`${n}`)));
  expect(
    await attempt(
      one(() => Promise.reject(circular)),
      "t",
    ),
  ).toMatchObject({ error: { message: expect.stringMatching(/; 8; and 3 more$/) } });
});

test("fails without a retry if the output is not JSON or too large", async () => {
  expect(
    await attempt(
      one(() => ({ rows: [1, { at: new Date() }] })),
      "t",
    ),
  ).toMatchObject({
    kind: "failed",
    retry: false,
    error: {
      code: "TW_OUTPUT_NOT_JSON",
      message: "output.rows[1].at is a Date; return date.toISOString() instead",
    },
  });
  expect(
    await attempt(
      one(() => "x".repeat(100)),
      "t",
      { maxOutputBytes: 50 },
    ),
  ).toMatchObject({
    kind: "failed",
    retry: false,
    error: { code: "TW_OUTPUT_TOO_LARGE", message: expect.stringContaining("102 bytes, at most 50") },
  });
});

test("runs an operator with its arguments and inputs", async () => {
  class Join extends Operator<{ by: string }, string, { parts: string[] }> {
    override execute(ctx: TaskContext, { parts }: { parts: string[] }) {
      return `${ctx.taskId}:${parts.join(this.args.by)}`;
    }
  }
  const defined = dag("x", (d) => {
    const parts = d.task("parts", () => ["a", "b"]);
    d.operator("join", new Join({ by: "-" }), { inputs: { parts } });
  });
  expect(await attempt(defined, "join", { inputs: { parts: success(["a", "b"]) } })).toMatchObject({
    output: "join:a-b",
  });
});

test("fails without a retry if the bundle lacks the task or the step", async () => {
  expect(
    await attempt(
      one(() => 1),
      "gone",
    ),
  ).toMatchObject({
    retry: false,
    error: { code: "TW_TASK_UNKNOWN", message: 'dag "x" of this bundle has no task "gone"' },
  });
  const resumePoint = { method: "collect", kwargs: {}, event: null };
  expect(
    await attempt(
      one(() => 1),
      "t",
      { resumePoint },
    ),
  ).toMatchObject({ retry: false, error: { code: "TW_STEP_UNKNOWN" } });
});

test("reads outputs, variables and connections from the host, and names the remedy for a missing one", async () => {
  const host = new RecordingHost();
  const warehouse = {
    id: "wh",
    type: "postgres",
    host: "db",
    port: 5432,
    login: "u",
    password: "p",
    schema: "s",
    extra: {},
  };
  Object.assign(host.outputs, { a: 5 });
  Object.assign(host.variables, { url: "http://x" });
  Object.assign(host.connections, { wh: warehouse });
  const problems = async (...questions: Promise<unknown>[]) =>
    (await Promise.allSettled(questions)).map((answer) =>
      answer.status === "rejected" ? answer.reason : "answered",
    );
  let foreign: Parameters<DagBuilder["group"]>[0] | object = {};
  dag("other", (d) => {
    foreign = d.task("a", () => 1);
  });
  const seen: unknown[] = [];
  const defined = dag("x", (d) => {
    const a = d.task("a", () => 1);
    d.task("t", { after: a }, async (_, ctx) => {
      seen.push(
        await ctx.output(a),
        await ctx.output("a"),
        await ctx.variable("url"),
        await ctx.variable("no", "fallback"),
      );
      seen.push(await ctx.connection("wh"));
      seen.push(
        ...(await problems(
          ctx.variable("no"),
          ctx.connection("no"),
          ctx.output("no"),
          ctx.output(foreign as typeof a),
        )),
      );
    });
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success" });
  expect(seen.slice(0, 5)).toEqual([5, 5, "http://x", "fallback", warehouse]);
  expect(seen.slice(5).map((error) => (error as TaskError).code)).toEqual([
    "TW_VARIABLE_MISSING",
    "TW_CONNECTION_MISSING",
    "TW_TASK_UNKNOWN",
    "TW_FOREIGN_HANDLE",
  ]);
  expect((seen[5] as Error).message).toBe(
    'variable "no" is not set; set it with `tradewind variables set no <value>`, or give ctx.variable a default; for dags test, with --variable',
  );
});

test("logs any value without failing the task", async () => {
  const host = new RecordingHost();
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  const defined = one((_, ctx) => {
    ctx.log.info("plain");
    ctx.log.warn("fields", {
      n: 1n,
      at: new Date(0),
      error: new Error("inner"),
      nan: Number.NaN,
      none: undefined,
    });
    ctx.log.error("odd", {
      circular,
      map: new Map([["a", 1]]),
      bad: {
        get x() {
          throw new Error("getter");
        },
      },
    });
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "success" });
  expect(host.lines[0]).toEqual({ level: "info", message: "plain", fields: undefined });
  expect(host.lines[1]).toMatchObject({
    level: "warn",
    fields: {
      n: "1",
      at: "1970-01-01T00:00:00.000Z",
      error: expect.stringContaining("Error: inner"),
      nan: "NaN",
      none: "undefined",
    },
  });
  expect(host.lines[2]).toMatchObject({
    level: "error",
    fields: { map: [["a", 1]], bad: expect.stringContaining("getter") },
  });
  expect(() => JSON.stringify(host.lines)).not.toThrow();
});

test("runs no callback before the outcome is stored", async () => {
  const host = new RecordingHost();
  const calls: string[] = [];
  const note = (ctx: CallbackContext) => calls.push(ctx.event);
  const defined = dag("x", { defaults: { onSuccess: note, onFailure: note, onRetry: note } }, (d) => {
    d.task("good", () => 1);
    d.task("bad", { retries: 1 }, () => {
      throw new Error("oh");
    });
  });
  expect(await attempt(defined, "good", { host })).toEqual({ kind: "success", output: 1, skip: [] });
  expect(await attempt(defined, "bad", { host, maxTries: 1 })).toMatchObject({ kind: "failed", retry: true });
  expect(calls).toEqual([]);
  expect(host.lines).toEqual([]);
});
