import { expect, test } from "vitest";
import { z } from "zod";
import { programOf, RecordingTriggerHost, start } from "../../test/trigger-call.ts";
import { dag, endWith, serialise, Trigger, type TriggerContext } from "../index.ts";
import { PROGRAM } from "../runtime/program.ts";

class Numbers extends Trigger<{ upTo: number }, { n: number }> {
  static id = "test.numbers";
  static schema = z.object({ upTo: z.number().max(9) });
  static seen: string[] = [];
  override async *run(ctx: TriggerContext) {
    for (let n = 1; n <= this.args.upTo; n++) {
      yield { n };
      Numbers.seen.push(`stored ${n}`);
    }
    ctx.log.info("no more");
  }
  override key(event: { n: number }) {
    return `n${event.n}`;
  }
  override cleanup() {
    Numbers.seen.push("cleanup");
  }
}

/** A trigger that yields the given values. */
function yielding(...values: unknown[]) {
  return class Yielding extends Trigger<void, unknown> {
    static id = "test.yielding";
    override async *run() {
      yield* values;
    }
  };
}

test("stores a trigger as its id and arguments", () => {
  expect(serialise(new Numbers({ upTo: 3 }))).toEqual({
    kind: "test.numbers",
    args: { upTo: 3 },
    source: "bundle",
    queue: "default",
    replicas: 1,
    wake: null,
    timed: null,
  });
  class Special extends Trigger<void, void> {
    static id = "test.special";
    static queue = "gpu";
    static replicas = 2;
    override wakeAt() {
      return new Date("2027-01-01T00:00:00Z");
    }
    override async *run() {}
  }
  expect(serialise(new Special())).toMatchObject({
    args: null,
    queue: "gpu",
    replicas: 2,
    wake: { at: "2027-01-01T00:00:00.000Z" },
  });
});

test("yields one event at a time and confirms the last with the next call", async () => {
  Numbers.seen = [];
  const host = new RecordingTriggerHost();
  const running = await start(Numbers, { upTo: 2 }, host);
  expect(await running.next()).toEqual({ kind: "event", payload: { n: 1 }, key: "n1" });
  expect(Numbers.seen).toEqual([]);
  expect(await running.next()).toEqual({ kind: "event", payload: { n: 2 }, key: "n2" });
  expect(Numbers.seen).toEqual(["stored 1"]);
  expect(await running.next()).toEqual({ kind: "done" });
  await running.cleanup();
  expect(Numbers.seen).toEqual(["stored 1", "stored 2", "cleanup"]);
  expect(host.lines).toEqual([{ level: "info", message: "no more" }]);
});

test("has a program only with an id of its own", () => {
  class Child extends Numbers {}
  abstract class Base extends Trigger<void, void> {}
  expect(programOf(Numbers).id).toBe("test.numbers");
  expect(programOf(Child)).toBeUndefined();
  expect(programOf(Base)).toBeUndefined();
  expect(programOf(Trigger)).toBeUndefined();
  expect(() => serialise(new Child({ upTo: 1 }))).toThrow(/trigger class Child: static id must be/);
});

test.each([
  ["id", { id: "two words" }, /static id must be .*got "two words"/],
  ["id of ours", { id: "tradewind.file" }, /not begin with "tradewind\."/],
  ["queue", { queue: "" }, /static queue must be a text of 1 to 250 characters, .*got ""/],
  ["name of a queue", { queue: "a\u0000b" }, /static queue must be .* without U\+0000/],
  ["long queue", { queue: "q".repeat(251) }, /static queue must be a text of 1 to 250 characters/],
  ["replicas", { replicas: 3 }, /static replicas must be 1 or 2, got 3/],
  ["schema", { schema: {} }, /static schema must be a Standard Schema/],
])("rejects a class with an invalid %s where it is used and where it runs", async (_, statics, says) => {
  const kind = Object.assign(yielding(), statics);
  const refusal = { code: "TW_BAD_TRIGGER", message: expect.stringMatching(says) };
  expect(() => serialise(new kind())).toThrow(expect.objectContaining(refusal));
  await expect(start(kind, null, new RecordingTriggerHost())).rejects.toMatchObject(refusal);
});

test("rejects arguments that are not JSON or do not satisfy the schema where the trigger is used", () => {
  class Open extends Trigger<unknown, void> {
    static id = "test.open";
    override async *run() {}
  }
  expect(() => serialise(new Open({ at: new Date() }))).toThrow(
    expect.objectContaining({
      code: "TW_TRIGGER_ARGS",
      message: expect.stringContaining("trigger test.open: args.at is a Date"),
    }),
  );
  expect(() => serialise(new Numbers({ upTo: 10 }))).toThrow(
    expect.objectContaining({
      code: "TW_TRIGGER_ARGS",
      message: expect.stringContaining("trigger test.numbers: args: upTo:"),
    }),
  );
  expect(() => serialise({} as never)).toThrow(expect.objectContaining({ code: "TW_BAD_TRIGGER" }));
});

test("validates stored arguments again where it runs, also asynchronously, and fills in defaults", async () => {
  const schema = z.object({
    n: z.number().refine(async (n) => n > 0, "must be positive"),
    unit: z.string().default("s"),
  });
  const made: unknown[] = [];
  class Slow extends Trigger<{ n: number }, number> {
    static id = "test.slow";
    static schema = schema;
    override async *run() {
      yield made.push(this.args);
    }
  }
  expect(serialise(new Slow({ n: 0 }))).toMatchObject({ args: { n: 0 } });
  await expect(start(Slow, { n: 0 }, new RecordingTriggerHost())).rejects.toMatchObject({
    code: "TW_TRIGGER_ARGS",
    message: "trigger test.slow: args: n: must be positive",
  });
  await (await start(Slow, { n: 1 }, new RecordingTriggerHost())).next();
  expect(made).toEqual([{ n: 1, unit: "s" }]);
});

test("distinguishes an ending from an event", async () => {
  const kind = yielding(
    endWith.success({ rows: 1 }),
    endWith.fail("gone", { retry: false }),
    endWith.fail("later"),
    endWith.skip(),
    undefined,
  );
  const running = await start(kind, null, new RecordingTriggerHost());
  expect(await running.next()).toEqual({ kind: "ending", ending: { kind: "success", output: { rows: 1 } } });
  expect(await running.next()).toEqual({
    kind: "ending",
    ending: { kind: "failed", reason: "gone", retry: false },
  });
  expect(await running.next()).toEqual({
    kind: "ending",
    ending: { kind: "failed", reason: "later", retry: true },
  });
  expect(await running.next()).toEqual({ kind: "ending", ending: { kind: "skipped", reason: null } });
  expect(await running.next()).toEqual({ kind: "event", payload: null, key: null });
});

test.each([
  ["is not JSON", { at: new Date() }, "TW_EVENT_NOT_JSON", /trigger test\.yielding: event\.at is a Date/],
  ["is too large", "é".repeat(600_000), "TW_EVENT_TOO_LARGE", /event has 1200002 bytes, at most 1048576/],
  ["ends with what is not JSON", endWith.success(1n as never), "TW_EVENT_NOT_JSON", /output is a bigint/],
])("fails the trigger if an event %s", async (_, value, code, says) => {
  const running = await start(yielding(value), null, new RecordingTriggerHost());
  await expect(running.next()).rejects.toMatchObject({ code, message: expect.stringMatching(says) });
});

test("rejects next with the error of user code, and with an invalid key", async () => {
  class Broken extends Trigger<void, number> {
    static id = "test.broken";
    // biome-ignore lint/correctness/useYield: it fails before.
    override async *run(): AsyncGenerator<number> {
      throw new RangeError("no such box");
    }
  }
  await expect((await start(Broken, null, new RecordingTriggerHost())).next()).rejects.toThrow("no such box");
  class Keyed extends Trigger<void, number> {
    static id = "test.keyed";
    override async *run() {
      yield 1;
    }
    override key() {
      return 1 as never;
    }
  }
  await expect((await start(Keyed, null, new RecordingTriggerHost())).next()).rejects.toMatchObject({
    code: "TW_BAD_TRIGGER",
  });
});

test("ends the generator before cleanup and logs an error of cleanup", async () => {
  const seen: string[] = [];
  class Held extends Trigger<void, number> {
    static id = "test.held";
    override async *run() {
      try {
        yield 1;
        yield 2;
      } finally {
        seen.push("finally");
      }
    }
    override cleanup(ctx: TriggerContext) {
      seen.push("cleanup");
      ctx.abort.throwIfAborted();
      throw new Error("box is locked");
    }
  }
  const host = new RecordingTriggerHost();
  const running = await start(Held, null, host);
  await running.next();
  await running.cleanup();
  expect(seen).toEqual(["finally", "cleanup"]);
  expect(host.lines).toEqual([
    { level: "error", message: "cleanup of trigger test.held failed: box is locked" },
  ]);
});

test("waits for a running trigger to end before its cleanup", async () => {
  const seen: string[] = [];
  class Listening extends Trigger<void, number> {
    static id = "test.listening";
    override async *run({ abort }: TriggerContext) {
      await new Promise((resolve) => abort.addEventListener("abort", resolve));
      seen.push("aborted");
      yield 1;
      seen.push("never");
    }
    override cleanup() {
      seen.push("cleanup");
    }
  }
  const host = new RecordingTriggerHost();
  const running = await start(Listening, null, host);
  const next = running.next();
  host.controller.abort();
  await running.cleanup();
  await next;
  expect(seen).toEqual(["aborted", "cleanup"]);
});

test("adds a task without code with d.trigger", () => {
  const defined = dag("x", (d) => {
    const number = d.trigger("number", new Numbers({ upTo: 1 }), { timeout: "1h", retries: 2 });
    d.task("use", { inputs: { number } }, ({ number }) => number.n);
  });
  const [trigger, use] = defined[PROGRAM].describe().tasks;
  expect(trigger).toMatchObject({
    taskId: "number",
    operator: "test.numbers",
    timeoutMs: 3_600_000,
    retries: 2,
    startTrigger: {
      trigger: { kind: "test.numbers", args: { upTo: 1 } },
      method: null,
      kwargs: {},
      timeoutMs: null,
      onTimeout: "fail",
    },
  });
  expect(use).toMatchObject({ upstream: ["number"] });
  expect(use).not.toHaveProperty("startTrigger");
  expect(() => dag("y", (d) => void d.trigger("t", { run() {} } as never))).toThrow(/is not a trigger/);
  expect(() =>
    dag("y", (d) => void d.trigger("t", new Numbers({ upTo: 1 }), { inputs: {} } as never)),
  ).toThrow(/takes no inputs/);
});

test("finds a trigger of another copy of the SDK by symbol", async () => {
  const call = serialise(new Numbers({ upTo: 1 }));
  const foreign = { [Symbol.for("tradewind.triggerCall")]: () => call };
  expect(serialise(foreign as never)).toBe(call);
  const ending = { [Symbol.for("tradewind.ending")]: { kind: "skipped", reason: "theirs" } };
  const running = await start(yielding(ending), null, new RecordingTriggerHost());
  expect(await running.next()).toEqual({ kind: "ending", ending: { kind: "skipped", reason: "theirs" } });
});
