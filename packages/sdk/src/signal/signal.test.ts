import { describe, expect, test } from "vitest";
import { z } from "zod";
import { attempt } from "../../test/attempt-call.ts";
import {
  all,
  any,
  conf,
  cron,
  type Dag,
  DagDefinitionError,
  dag,
  every,
  FileTrigger,
  on,
  restart,
  signal,
  start,
  stop,
} from "../index.ts";
import type { DagManifest, SignalCondition } from "../manifest.ts";
import { PROGRAM } from "../runtime/program.ts";

const a = signal("a");
const b = signal("b", z.object({ region: z.string(), n: z.number(), tags: z.array(z.string()) }), {
  namespace: "team",
});

const leaf = (key: string, more: Partial<Extract<SignalCondition, { kind: "signal" }>> = {}) =>
  ({ kind: "signal", namespace: "default", key, where: null, equals: null, inRun: false, ...more }) as const;

function manifest(dag: Dag): DagManifest {
  // As it is stored.
  return JSON.parse(JSON.stringify(dag[PROGRAM].describe()));
}

describe("a manifest", () => {
  test("has the rules of a task in the order written, with all their options", () => {
    const { tasks } = manifest(
      dag("rules", (d) => {
        const first = d.task("first", () => 1);
        d.group("g", (g) => {
          g.task(
            "driven",
            {
              after: first,
              on: [
                start(all(a, first, any(b, a.inRun()))),
                restart(
                  b
                    .where({ region: conf("shop.region"), tags: ["x"] })
                    .equals({ region: "", n: 1, tags: [] }),
                ),
                stop(signal("*.closed"), { once: true }),
              ],
              lifetime: "streaming",
              grace: "30s",
              every: "10m",
            },
            () => 1,
          );
        });
      }),
    );
    const { rules, lifetime, graceMs, every, upstream } = tasks[1]!;
    expect({ lifetime, graceMs, every, upstream }).toEqual({
      lifetime: "streaming",
      graceMs: 30_000,
      every: { kind: "interval", everyMs: 600_000, style: "trigger" },
      upstream: ["first"],
    });
    const [where, equals] = [
      { region: { $conf: "shop.region" }, tags: ["x"] },
      { region: "", n: 1, tags: [] },
    ];
    expect(rules).toEqual([
      {
        action: "start",
        when: {
          kind: "all",
          of: [
            leaf("a"),
            { kind: "task", taskId: "first" },
            { kind: "any", of: [leaf("b", { namespace: "team" }), leaf("a", { inRun: true })] },
          ],
        },
        once: false,
      },
      {
        action: "restart",
        when: leaf("b", { namespace: "team", where, equals: { value: equals } }),
        once: false,
      },
      { action: "stop", when: leaf("*.closed"), once: true },
    ]);
  });

  test("is unchanged without rules", () => {
    const plain = dag("plain", { endWhen: "stopped" }, (d) => {
      d.task("t", { lifetime: "batch", on: [] }, () => 1);
    });
    const { tasks, ...rest } = plain[PROGRAM].describe();
    for (const name of ["rules", "lifetime", "graceMs", "every", "reacts"])
      expect(tasks[0]).not.toHaveProperty(name);
    for (const name of ["stop", "endWhen"]) expect(rest).not.toHaveProperty(name);
  });

  test("describes how a run is closed", () => {
    const closing = dag("closing", { stop: all(a, b.where({ n: 1 })), endWhen: "batchDone" }, (d) => {
      d.task("t", { on: start(a), every: cron("0 * * * *", "Europe/Berlin") }, () => 1);
    });
    const { stop, endWhen, tasks } = manifest(closing);
    expect({ stop, endWhen, every: tasks[0]!.every }).toEqual({
      stop: { kind: "all", of: [leaf("a"), leaf("b", { namespace: "team", where: { n: 1 } })] },
      endWhen: "batchDone",
      every: { kind: "cron", expression: "0 * * * *", timezone: "Europe/Berlin", style: "trigger" },
    });
  });

  test("retries a streaming task without a limit by default", () => {
    const { tasks } = manifest(
      dag("streaming", (d) => {
        d.task("endless", { lifetime: "streaming" }, () => 1);
        d.task("thrice", { lifetime: "streaming", retries: 3, maxRetryDelay: "5s" }, () => 1);
      }),
    );
    const retry = tasks.map(({ retries, retryDelayMs, retryBackoff, maxRetryDelayMs }) => [
      retries,
      retryDelayMs,
      retryBackoff,
      maxRetryDelayMs,
    ]);
    expect(retry).toEqual([
      [1_000_000_000, 1_000, 2, 60_000],
      [3, 1_000, 2, 5_000],
    ]);
  });

  test("takes grace from the task before the defaults", () => {
    const { tasks } = manifest(
      dag("grace", { defaults: { grace: "1m" } }, (d) => {
        d.task("one", () => 1);
        d.task("two", { grace: 0 }, () => 1);
      }),
    );
    expect(tasks.map(({ graceMs }) => graceMs)).toEqual([60_000, 0]);
  });
});

describe("a schedule on signals", () => {
  test("contains the condition and the route", () => {
    expect(on(a)).toEqual({ kind: "signal", when: leaf("a"), route: null });
    expect(on(any(a, b.where({ n: 1 })), { route: "order.id" })).toEqual({
      kind: "signal",
      when: { kind: "any", of: [leaf("a"), leaf("b", { namespace: "team", where: { n: 1 } })] },
      route: "order.id",
    });
    expect(on(new FileTrigger({ path: "/x" }))).toMatchObject({ kind: "trigger" });
  });

  test("validates signal values before they become the run's params", async () => {
    const seen: unknown[] = [];
    const date = signal("date", z.object({ day: z.coerce.date() }));
    const scheduled = dag("scheduled", { schedule: on(all(date, a)) }, (d) => {
      d.task("t", (_, ctx) => {
        seen.push(ctx.params.signal, ctx.params.signals?.["date"]?.value);
      });
    });
    const event = (key: string, value: unknown) => ({ key, value, version: 3 });
    const conf = {
      signal: event("a", 1),
      signals: { date: event("date", { day: "2027-01-04" }), a: event("a", 1) },
    };
    expect(await attempt(scheduled, "t", { conf: conf as never })).toMatchObject({ kind: "success" });
    expect(seen).toEqual([event("a", 1), { day: new Date("2027-01-04") }]);
    const wrong = { signal: event("date", { day: "soon" }) };
    expect(await attempt(scheduled, "t", { conf: wrong as never })).toMatchObject({
      kind: "failed",
      error: { code: "TW_PARAMS_INVALID", message: expect.stringContaining("signal.value.day") },
    });
    expect(await attempt(scheduled, "t", { conf: {} })).toMatchObject({ kind: "success" });
    expect(scheduled[PROGRAM].describe()).toMatchObject({ hasParams: false, paramsSchema: null });
  });
});

describe("an invalid signal or condition", () => {
  const task = (options: object) => () => dag("x", (d) => void d.task("t", options, () => 1));
  const foreign = (() => {
    let handle: unknown;
    dag("other", (d) => {
      handle = d.task("o", () => 1);
    });
    return handle as never;
  })();
  const group = (() => {
    let handle: unknown;
    dag("grouped", (d) => {
      handle = d.group("g", (g) => g.task("o", () => 1));
    });
    return handle as never;
  })();

  test.each<[string, () => unknown, string, RegExp]>([
    ["a key that is empty", () => signal(""), "TW_BAD_SIGNAL", /1 to 250 characters/],
    ["a key with a line break", () => signal("a\nb"), "TW_BAD_SIGNAL", /no control characters/],
    [
      "a namespace that is not a text",
      () => signal("a", undefined, { namespace: 1 as never }),
      "TW_BAD_SIGNAL",
      /namespace/,
    ],
    [
      "an unknown option",
      () => signal("a", undefined, { namespce: "b" } as never),
      "TW_UNKNOWN_OPTION",
      /namespace/,
    ],
    ["an invalid schema", () => signal("a", {} as never), "TW_BAD_SIGNAL", /Standard Schema/],
    ["where without a value", () => a.where(undefined as never), "TW_BAD_SIGNAL", /equals\(null\)/],
    ["where called twice", () => a.where({}).where({}), "TW_BAD_SIGNAL", /called twice/],
    ["equals called twice", () => a.equals(1).equals(2), "TW_BAD_SIGNAL", /any\(\)/],
    ["where with a Date", () => a.where({ at: new Date() } as never), "TW_BAD_SIGNAL", /match\.at is a Date/],
    [
      "where with the name of a reference",
      () => a.where({ x: { $conf: "y" } }),
      "TW_BAD_SIGNAL",
      /use conf\(\)/,
    ],
    ["equals with a function", () => a.equals((() => 1) as never), "TW_BAD_SIGNAL", /value is a function/],
    ["a path with nothing between dots", () => conf("a..b"), "TW_BAD_SIGNAL", /names with dots/],
    ["all() of nothing", () => (all as () => unknown)(), "TW_BAD_SIGNAL", /all\(\): a condition is made of/],
    ["any() of a text", () => any("a" as never), "TW_BAD_SIGNAL", /got "a"/],
    [
      "start() of a trigger",
      () => start(new FileTrigger({ path: "/x" }) as never),
      "TW_BAD_SIGNAL",
      /start\(\)/,
    ],
    ["start() of a group", () => start(group), "TW_BAD_SIGNAL", /handles of tasks/],
    ["an unknown option of a rule", () => start(a, { ones: true } as never), "TW_UNKNOWN_OPTION", /"once"/],
    ["a value that is not a rule", task({ on: [a] }), "TW_BAD_OPTION", /on takes start\(\)/],
    ["a task of another DAG", task({ on: [start(foreign)] }), "TW_FOREIGN_HANDLE", /dag "other"/],
    ["an unknown lifetime", task({ lifetime: "stream" }), "TW_BAD_OPTION", /"batch", "streaming"/],
    ["every of nothing", task({ every: 0 }), "TW_BAD_SCHEDULE", /more than 0/],
    ["every of a preset", task({ every: "@daily" }), "TW_BAD_DURATION", /every: "@daily"/],
    [
      "every of a period",
      task({ every: every("1h", { style: "interval" }) }),
      "TW_BAD_OPTION",
      /without a style/,
    ],
    ["every of signals", task({ every: on(a) }), "TW_BAD_OPTION", /cron\(\)/],
    [
      "a rule in the defaults",
      () => dag("x", { defaults: { on: [] } as never }, () => {}),
      "TW_UNKNOWN_OPTION",
      /"on"/,
    ],
    [
      "a trigger that streams",
      () => dag("x", (d) => void d.trigger("t", new FileTrigger({ path: "/x" }), { lifetime: "streaming" })),
      "TW_BAD_OPTION",
      /no code/,
    ],
    [
      "a task in the run's stop",
      () => dag("x", { stop: foreign }, () => {}),
      "TW_BAD_SIGNAL",
      /let it send a signal/,
    ],
    ["a task in a schedule", () => on(all(a, foreign)), "TW_BAD_SIGNAL", /on\(\): a task/],
    ["inRun in a schedule", () => on(any(a, b.inRun())), "TW_BAD_SCHEDULE", /no run yet/],
    ["conf in a schedule", () => on(b.where({ region: conf("x") })), "TW_BAD_SCHEDULE", /no run yet/],
    ["a route of all()", () => on(any(a, all(a, b)), { route: "x" }), "TW_BAD_SCHEDULE", /different runs/],
    ["an invalid route", () => on(a, { route: "" }), "TW_BAD_SIGNAL", /route/],
  ])("rejects %s", (_, define, code, says) => {
    let refusal: unknown;
    try {
      define();
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toBeInstanceOf(DagDefinitionError);
    expect(refusal).toMatchObject({ code, message: expect.stringMatching(says) });
  });
});

test("rejects an object that only looks like a handle", () => {
  const forged = { kind: "output", dagId: "x", taskId: "nowhere" } as never;
  const define = () => dag("x", (d) => void d.task("t", { on: [start(forged)] }, () => 1));
  expect(define).toThrowError(expect.objectContaining({ code: "TW_BAD_HANDLE" }));
});
