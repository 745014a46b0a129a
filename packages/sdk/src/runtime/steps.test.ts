import { expect, test } from "vitest";
import { attempt, RecordingHost } from "../../test/attempt-call.ts";
import {
  DateTimeTrigger,
  DeferralTimeoutError,
  dag,
  FileTrigger,
  fail,
  Operator,
  skip,
  type TaskContext,
  TimeDeltaTrigger,
  TriggerFailedError,
} from "../index.ts";
import type { ErrorFacts, TaskOutcome } from "./program.ts";

const file = () => new FileTrigger({ path: "/data/in.csv" });

/** A DAG with one task "t" that runs `run`. */
function one(run: (ctx: TaskContext) => unknown) {
  return dag("x", (d) => void d.task("t", (_, ctx) => run(ctx) as Promise<number>));
}

/** A promise with a function that resolves it. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: resolve };
}

test("runs the work of a once only one time per try, and returns the journal's result after a wait", async () => {
  const host = new RecordingHost();
  const calls: string[] = [];
  const defined = one(async (ctx) => {
    const job = await ctx.step("submit", async () => {
      calls.push("submit");
      return { job: 7 };
    });
    const { size } = await ctx.until("export", file(), { timeout: "6h" });
    const nothing = await ctx.step("note", () => void calls.push("note"));
    return [job, size, nothing];
  });
  expect(await attempt(defined, "t", { host })).toEqual({
    kind: "deferred",
    trigger: expect.objectContaining({ kind: "tradewind.file", source: "builtin" }),
    method: null,
    name: "export",
    kwargs: {},
    timeoutMs: 21_600_000,
    onTimeout: "resume",
    onFailure: "resume",
  });
  expect(host.journal).toEqual({ submit: { kind: "step", value: { job: 7 } } });
  host.journal["export"] = { kind: "event", value: { path: "/data/in.csv", size: 3, mtime: "" } };
  expect(await attempt(defined, "t", { host })).toMatchObject({
    kind: "success",
    output: [{ job: 7 }, 3, null],
  });
  expect(calls).toEqual(["submit", "note"]);
  expect(host.recalls).toBe(2);
});

test("does not read the journal for a task without steps", async () => {
  const host = new RecordingHost();
  await attempt(
    one(() => 1),
    "t",
    { host },
  );
  expect(host.recalls).toBe(0);
});

test("returns a copy with null for undefined already in the first run", async () => {
  const host = new RecordingHost();
  const shared = { list: [1] };
  const defined = one(async (ctx) => {
    const copy = await ctx.step("copy", () => shared);
    copy.list.push(2);
    return [shared.list, await ctx.step("nothing", () => undefined)];
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({ output: [[1], null] });
});

test("runs neither catch nor finally of the author when a wait begins", async () => {
  const seen: string[] = [];
  const defined = one(async (ctx) => {
    try {
      await ctx.until("file", file());
      seen.push("went on");
    } catch {
      seen.push("caught");
    } finally {
      seen.push("finally");
    }
    return 1;
  });
  expect(await attempt(defined, "t")).toMatchObject({ kind: "deferred", name: "file" });
  expect(seen).toEqual([]);
});

test("defers for a wait that is not awaited", async () => {
  const defined = one((ctx) => {
    void ctx.until("file", file());
    return 1;
  });
  expect(await attempt(defined, "t")).toMatchObject({ kind: "deferred", name: "file" });
});

test("defers only after every running once has ended, including those that begin meanwhile", async () => {
  const host = new RecordingHost();
  const work = gate();
  const defined = one(async (ctx) => {
    const chain = async () => {
      await ctx.step("first", () => work.passed.then(() => 1));
      await ctx.step("second", async () => 2);
    };
    await Promise.all([ctx.until("file", file()), chain()]);
  });
  const outcome = attempt(defined, "t", { host });
  let isSettled = false;
  outcome.then(() => {
    isSettled = true;
  });
  for (let turns = 0; turns < 10; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(isSettled).toBe(false);
  work.open();
  expect(await outcome).toMatchObject({ kind: "deferred", name: "file" });
  expect(host.journal).toEqual({ first: { kind: "step", value: 1 }, second: { kind: "step", value: 2 } });
});

test("fails the attempt if a once fails beside a wait", async () => {
  const defined = one((ctx) =>
    Promise.all([
      ctx.until("file", file()),
      ctx.step("send", async () => {
        throw new RangeError("refused");
      }),
    ]),
  );
  expect(await attempt(defined, "t")).toMatchObject({
    kind: "failed",
    error: { message: "refused" },
    retry: true,
  });
});

test("starts no further step beside a wait", async () => {
  const host = new RecordingHost();
  const later = gate();
  const reached = gate();
  const calls: string[] = [];
  const defined = one(async (ctx) => {
    void later.passed.then(() => {
      reached.open();
      return ctx.step("late", () => void calls.push("late"));
    });
    await ctx.until("file", file());
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "deferred" });
  later.open();
  await reached.passed;
  await new Promise((resolve) => setImmediate(resolve));
  expect(calls).toEqual([]);
});

test("returns the events of a joint wait by name", async () => {
  const host = new RecordingHost();
  const defined = one(async (ctx) => {
    const both = await ctx.until("both", { a: file(), b: new DateTimeTrigger({ moment: "2027-01-01" }) });
    return [both.a.size, both.b];
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({
    kind: "deferred",
    trigger: {
      kind: "tradewind.all",
      args: { members: { a: { kind: "tradewind.file" }, b: { kind: "tradewind.datetime" } } },
    },
  });
  host.journal["both"] = { kind: "event", value: { a: { size: 5 }, b: "2027-01-01T00:00:00.000Z" } };
  expect(await attempt(defined, "t", { host })).toMatchObject({ output: [5, "2027-01-01T00:00:00.000Z"] });
});

const hour = () => new TimeDeltaTrigger({ delta: "1h" });

const together: Record<string, (ctx: TaskContext) => unknown> = {
  "Promise.all": (ctx) => Promise.all([ctx.until("a", hour()), ctx.until("b", hour())]),
  "Promise.race": (ctx) => Promise.race([ctx.until("a", hour()), ctx.until("b", hour())]),
  "Promise.allSettled": (ctx) => Promise.allSettled([ctx.until("a", hour()), ctx.until("b", hour())]),
  "a wait that is not awaited": (ctx) => {
    void ctx.until("a", hour());
    return ctx.until("b", hour()).catch(() => {});
  },
};

test.each(Object.keys(together))("rejects two pending waits without a retry: %s", async (name) => {
  expect(await attempt(one(together[name]!), "t")).toMatchObject({
    kind: "failed",
    retry: false,
    error: {
      code: "TW_STEP_CONCURRENT",
      message: expect.stringMatching(/ctx\.until\("b"\).*ctx\.until\("a"\).*\{ a, b \}.*any\(a, b\)/),
    },
  });
});

test.each(["Promise.all", "Promise.race", "Promise.allSettled"])(
  "accepts concurrent waits of which at most one is not in the journal: %s",
  async (name) => {
    const host = new RecordingHost();
    host.journal["a"] = { kind: "event", value: "then" };
    const first = await attempt(one(together[name]!), "t", { host });
    // The stored event decides the race, but the wait beside it has begun.
    expect(first).toMatchObject({ kind: "deferred", name: "b" });
    host.journal["b"] = { kind: "event", value: "later" };
    expect(await attempt(one(together[name]!), "t", { host })).toMatchObject({ kind: "success" });
  },
);

test("rejects wait names that change on every resume, after three of them", async () => {
  const host = new RecordingHost();
  let resumes = 0;
  const defined = one((ctx) => ctx.until(`wait-${resumes}`, hour()));
  for (; resumes < 3; resumes++) {
    expect(await attempt(defined, "t", { host })).toMatchObject({
      kind: "deferred",
      name: `wait-${resumes}`,
    });
    host.journal[`wait-${resumes}`] = { kind: "event", value: "then" };
  }
  expect(await attempt(defined, "t", { host })).toMatchObject({
    kind: "failed",
    retry: false,
    error: {
      code: "TW_STEP_UNSTABLE",
      message: expect.stringMatching(/"wait-3".*"wait-0", "wait-1", "wait-2"\. A wait needs the same name/),
    },
  });
});

test("accepts an endless loop of waits with an index in the name", async () => {
  const host = new RecordingHost();
  const defined = one(async (ctx) => {
    for (let i = 0; ; i++) await ctx.until(`tick-${i}`, hour(), { timeout: "2h" }).catch(() => {});
  });
  for (let i = 0; i < 20; i++) {
    expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "deferred", name: `tick-${i}` });
    host.journal[`tick-${i}`] =
      i % 2 === 0 ? { kind: "event", value: "then" } : { kind: "timeout", afterMs: 7_200_000 };
  }
});

test("counts waits of a branch that is slower than a new wait as used", async () => {
  const host = new RecordingHost();
  for (const name of ["a", "b", "c"]) host.journal[name] = { kind: "event", value: "then" };
  const defined = one(async (ctx) => {
    const slow = async () => {
      await ctx.step("slow", () => new Promise<void>((resolve) => setImmediate(resolve)));
      for (const name of ["a", "b", "c"]) await ctx.until(name, hour());
    };
    await Promise.all([ctx.until("new", hour()), slow()]);
  });
  expect(await attempt(defined, "t", { host })).toMatchObject({ kind: "deferred", name: "new" });
});

test("rejects a wait that timed out or whose trigger failed, and fails the try with a retry if uncaught", async () => {
  const host = new RecordingHost();
  const error: ErrorFacts = { name: "Error", message: "no such host", stack: null, code: "X" };
  const seen: unknown[] = [];
  const defined = one(async (ctx) => {
    await ctx.until("slow", file(), { timeout: "2s" }).catch((thrown) => seen.push(thrown));
    await ctx.until("at once", file(), { timeout: "0s" }).catch((thrown) => seen.push(thrown));
    await ctx.until("broken", file());
  });
  // Counted from the time when the wait was stored.
  host.journal["slow"] = { kind: "timeout", afterMs: 1_813 };
  host.journal["at once"] = { kind: "timeout", afterMs: -12 };
  host.journal["broken"] = { kind: "failed", error };
  expect(await attempt(defined, "t", { host })).toMatchObject({
    kind: "failed",
    retry: true,
    error: { code: "TW_TRIGGER_FAILED", message: 'the trigger of ctx.until("broken") failed: no such host' },
  });
  expect(seen[0]).toBeInstanceOf(DeferralTimeoutError);
  expect(seen[0]).toMatchObject({ code: "TW_WAIT_TIMEOUT", step: "slow", afterMs: 2_000 });
  expect((seen[1] as Error).message).toBe(`ctx.until("at once") timed out after 0 ms`);
  expect(new TriggerFailedError("s", error)).toMatchObject({ step: "s", error });
});

const refused: Record<string, { run: (ctx: TaskContext) => unknown; code: string; says: RegExp }> = {
  "a name twice": {
    run: async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.step("a", () => 2);
    },
    code: "TW_STEP_NAME",
    says: /ctx\.step\("a"\): the name was used before/,
  },
  "the name of a once for a wait": {
    run: async (ctx) => {
      await ctx.step("a", () => 1);
      await ctx.until("a", file());
    },
    code: "TW_STEP_NAME",
    says: /ctx\.until\("a"\): the name was used before/,
  },
  "an empty name": {
    run: (ctx) => ctx.step("", () => 1),
    code: "TW_STEP_NAME",
    says: /1 to 250 characters, .*got ""/,
  },
  "a step in a step": {
    run: (ctx) => ctx.step("a", () => ctx.step("b", () => 1)),
    code: "TW_STEP_NESTED",
    says: /ctx\.step\("b"\) inside ctx\.step\("a"\)/,
  },
  "a wait in a step": {
    run: (ctx) => ctx.step("a", async () => (await ctx.until("b", file())).size),
    code: "TW_STEP_NESTED",
    says: /ctx\.until\("b"\) inside ctx\.step\("a"\)/,
  },
  "a name that cannot be stored": {
    run: (ctx) => ctx.until("a\u0000b", file()),
    code: "TW_STEP_NAME",
    says: /without U\+0000/,
  },
  // Stored as another text, it would never be found again, and the wait would repeat after every event.
  "half a character as a name": {
    run: (ctx) => ctx.until("\ud83d", file()),
    code: "TW_STEP_NAME",
    says: /a step's name is a text/,
  },
  "a once that was a wait": {
    run: (ctx) => ctx.step("event", () => 1),
    code: "TW_STEP_KIND",
    says: /"event" was ctx\.until/,
  },
  "a wait that was a step": {
    run: (ctx) => ctx.until("done", file()),
    code: "TW_STEP_KIND",
    says: /"done" was ctx\.step/,
  },
  "a result that is not JSON": {
    run: (ctx) => ctx.step("a", () => ({ at: new Date() }) as never),
    code: "TW_STEP_NOT_JSON",
    says: /result of ctx\.step\("a"\)\.at is a Date/,
  },
  "a result that is too large": {
    run: (ctx) => ctx.step("a", () => "x".repeat(2_000_000)),
    code: "TW_STEP_TOO_LARGE",
    says: /has 2000002 bytes/,
  },
};

test.each(Object.keys(refused))(
  "rejects %s without a retry, also if the author catches the error",
  async (name) => {
    const { run, code, says } = refused[name]!;
    const journal = { event: { kind: "event", value: 1 }, done: { kind: "step", value: 1 } } as const;
    const expected = { kind: "failed", retry: false, error: { code, message: expect.stringMatching(says) } };
    for (const swallow of [false, true]) {
      const host = new RecordingHost();
      Object.assign(host.journal, journal);
      const defined = one(async (ctx) => {
        const work = (async () => run(ctx))();
        await (swallow ? work.catch(() => {}) : work);
        if (swallow) await ctx.until("other", file());
        return 1;
      });
      expect(await attempt(defined, "t", { host })).toMatchObject(expected);
    }
  },
);

test("rejects an invalid trigger without a retry", async () => {
  const wrong = one((ctx) => ctx.until("a", new FileTrigger({ path: "" })));
  expect(await attempt(wrong, "t")).toMatchObject({ retry: false, error: { code: "TW_TRIGGER_ARGS" } });
  const none = one((ctx) => ctx.until("a", {} as never));
  expect(await attempt(none, "t")).toMatchObject({ retry: false, error: { code: "TW_BAD_TRIGGER" } });
});

test("does not record a failed once, and ends the task on skip or fail in it", async () => {
  const host = new RecordingHost();
  const outcomes: TaskOutcome[] = [];
  for (const value of [skip("none"), fail("never")]) {
    outcomes.push(
      await attempt(
        one((ctx) => ctx.step("a", () => value)),
        "t",
        { host },
      ),
    );
  }
  expect(outcomes).toMatchObject([
    { kind: "skipped", reason: "none" },
    { kind: "failed", retry: false },
  ]);
  const flaky = one((ctx) => ctx.step("a", () => Promise.reject(new Error("flaky"))));
  expect(await attempt(flaky, "t", { host })).toMatchObject({ kind: "failed", retry: true });
  expect(host.journal).toEqual({});
});

test("lets a branch, a short-circuit and the execute of an operator wait", async () => {
  class Waiting extends Operator<void, number> {
    override async execute(ctx: TaskContext) {
      return (await ctx.until("file", file())).size;
    }
  }
  const defined = dag("x", (d) => {
    const branch = d.branch("branch", async (_, ctx) =>
      (await ctx.until("file", file())).size > 1 ? "big" : null,
    );
    d.task("big", { after: branch }, () => 1);
    d.shortCircuit("short", async (_, ctx) => (await ctx.until("file", file())).size > 1);
    d.operator("operator", new Waiting());
  });
  const host = new RecordingHost();
  for (const id of ["branch", "short", "operator"]) {
    expect(await attempt(defined, id, { host })).toMatchObject({
      kind: "deferred",
      name: "file",
      method: null,
    });
  }
  host.journal["file"] = { kind: "event", value: { size: 2 } };
  expect(await attempt(defined, "branch", { host })).toMatchObject({ output: ["big"] });
  expect(await attempt(defined, "short", { host })).toMatchObject({ output: true });
  expect(await attempt(defined, "operator", { host })).toMatchObject({ output: 2 });
});

test("runs no callbacks for a wait", async () => {
  const events: string[] = [];
  const note = ({ event }: { event: string }) => events.push(event);
  const defined = dag("x", (d) => {
    d.task("t", { onSuccess: note, onFailure: note, onRetry: note }, (_, ctx) => ctx.until("file", file()));
  });
  expect(await attempt(defined, "t")).toMatchObject({ kind: "deferred" });
  expect(events).toEqual([]);
});
