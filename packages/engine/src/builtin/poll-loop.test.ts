import type { Json } from "@tradewind/sdk/manifest";
import type { RunningTrigger, TriggerHost } from "@tradewind/sdk/program";
import { describe, expect, it } from "vitest";
import { callOf, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { anyText, members, whole } from "./argument-readers.ts";
import { builtinTrigger, checkBuiltin } from "./index.ts";
import { listedKind, polledKind } from "./poll-loop.ts";
import { refused } from "./trigger-error.ts";
import type { Sight, Thing, View } from "./watches.ts";

/** A kind whose polls the test controls. */
function kindOf(look: View["poll"], more: Partial<View> & { again?: "changed" | "again" | "never" } = {}) {
  const { again = "changed", ...view } = more;
  return polledKind("tradewind.file", {
    args: members({ path: anyText, intervalMs: whole(1) }),
    intervalMs: ({ intervalMs }) => intervalMs,
    again,
    open: async (_args, _host, hide) => {
      hide("open-sesame");
      return { place: "somewhere", limit: 3, poll: look, ...view };
    },
  });
}

const start = (kind: ReturnType<typeof kindOf>, host: TriggerHost, intervalMs = 1): Promise<RunningTrigger> =>
  kind.program.start({ path: "", intervalMs }, host);

/** Polls that return these results, one after the other, then the last forever. */
function seeing(...sights: (Sight | Error)[]): View["poll"] {
  let at = 0;
  return async () => {
    const sight = sights[Math.min(at++, sights.length - 1)] as Sight | Error;
    if (sight instanceof Error) throw sight;
    return sight;
  };
}

const nothing: Sight = { note: "nothing yet" };

describe("a polling trigger", () => {
  it("polls at once, then every interval, within the limit of its place, until it fires", async () => {
    const host = new TestHost();
    const trigger = await start(kindOf(seeing(nothing, nothing, { event: "now" })), host);
    expect(await trigger.next()).toEqual({ kind: "event", payload: "now", key: null });
    expect(host.polls).toBe(3);
    expect(host.limits).toEqual(Array(3).fill({ key: "somewhere", limit: 3 }));
    // A result is logged when it changes, not at every poll.
    expect(host.lines.filter(({ message }) => message === "nothing yet")).toHaveLength(1);
    host.stop();
    await trigger.cleanup();
  });

  it("does not wait an interval for its first poll", async () => {
    const host = new TestHost();
    const trigger = await start(kindOf(seeing({ event: 1 })), host, 3_600_000);
    expect(await trigger.next()).toMatchObject({ payload: 1 });
    host.stop();
    await trigger.cleanup();
  });

  it("fires again if the state has changed, or was gone in between", async () => {
    const host = new TestHost();
    const sights = [{ event: 1 }, { event: 1 }, { event: 2 }, nothing, { event: 2 }, { event: 3 }];
    const changing = await start(kindOf(seeing(...sights)), host);
    const events = [];
    for (let i = 0; i < 4; i++) events.push(await changing.next());
    expect(events.map((event) => event.kind === "event" && event.payload)).toEqual([1, 2, 2, 3]);

    const again = await start(kindOf(seeing(...sights), { again: "again" }), host);
    expect([await again.next(), await again.next()]).toMatchObject([{ payload: 1 }, { payload: 2 }]);

    const once = await start(kindOf(seeing(...sights), { again: "never" }), host);
    expect([await once.next(), await once.next()]).toMatchObject([{ payload: 1 }, { kind: "done" }]);
    host.stop();
  });

  it("retries after a failure, opens again, and resets the count after a success", async () => {
    const host = new TestHost();
    let closed = 0;
    const failures = Array(8).fill(new Error("away"));
    const sights = [...failures, nothing, ...failures, { event: "back" }];
    const kind = kindOf(seeing(...sights), { close: () => void closed++ });
    const trigger = await start(kind, host);
    expect(await trigger.next()).toMatchObject({ payload: "back" });
    expect(closed).toBe(16);
    const warnings = host.lines.filter(({ level }) => level === "warn");
    expect(warnings).toHaveLength(16);
    expect(warnings[7]).toMatchObject({ message: "away; attempt 8 of 10", fields: { failures: 8 } });
    const pauses = warnings.slice(0, 8).map(({ fields }) => fields.retryInMs as number);
    expect(pauses[7]).toBeGreaterThanOrEqual(115);
    expect(pauses[7]).toBeLessThanOrEqual(141);
    expect(host.lines.filter(({ message }) => message === "poll succeeded again")).toHaveLength(2);
    host.stop();
    await trigger.cleanup();
    expect(closed).toBe(17);
  });

  it("gives up after ten failures in a row, with the last reason and without secrets", async () => {
    const host = new TestHost();
    const reason = new Error("outer", { cause: new AggregateError([new Error("rejected open-sesame")]) });
    const trigger = await start(kindOf(seeing(reason)), host);
    await expect(trigger.next()).rejects.toMatchObject({
      code: "TRIGGER_GAVE_UP",
      message: "Failed 10 times in a row, last with: outer: rejected ***",
    });
    expect(host.polls).toBe(10);
    expect(host.text).not.toContain("open-sesame");
    expect(host.lines.at(-1)).toMatchObject({ level: "error" });
  });

  it("fails at once on a refusal", async () => {
    const host = new TestHost();
    const trigger = await start(kindOf(seeing(refused("not for you, open-sesame"))), host);
    const error = await trigger.next().catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: "TRIGGER_REFUSED", message: "not for you, ***" });
    expect((error as Error).stack).not.toContain("open-sesame");
    expect(host.polls).toBe(1);
  });

  it("ends at the abort even if its poll ignores it, and closes what it opened", async () => {
    const host = new TestHost();
    let closed = 0;
    const looking = Promise.withResolvers<void>();
    const look = () => {
      looking.resolve();
      return new Promise<never>(() => {});
    };
    const trigger = await start(kindOf(look, { close: () => void closed++ }), host);
    const next = trigger.next();
    await looking.promise;
    host.stop();
    expect(await next).toEqual({ kind: "done" });
    await trigger.cleanup();
    expect(closed).toBe(1);
  });

  it("polls before the interval has passed on a hurry", async () => {
    const host = new TestHost();
    let hurry = () => {};
    const watch: View["watch"] = (call) => {
      hurry = () => call(null);
    };
    const trigger = await start(kindOf(seeing(nothing, { event: "quick" }), { watch }), host, 3_600_000);
    const next = trigger.next();
    await host.morePolls(1);
    hurry();
    expect(await next).toMatchObject({ payload: "quick" });
    host.stop();
    await trigger.cleanup();
  });
});

describe("one check", () => {
  it("returns the event or undefined, and closes what it opened", async () => {
    const host = new TestHost();
    let closed = 0;
    const kind = kindOf(seeing(nothing, { event: [1] }), { close: () => void closed++ });
    const args = { path: "", intervalMs: 1 };
    expect(await kind.check(args, host)).toBeUndefined();
    expect(await kind.check(args, host)).toEqual([1]);
    expect(closed).toBe(2);
  });

  it("fails at the first failure, without secrets", async () => {
    const kind = kindOf(seeing(new Error("open-sesame did not open")));
    await expect(kind.check({ path: "", intervalMs: 1 }, new TestHost())).rejects.toMatchObject({
      code: "TRIGGER_CHECK_FAILED",
      message: "*** did not open",
    });
  });
});

describe("the kinds", () => {
  it("are found by their ids, except those of the triggerer", async () => {
    expect((await builtinTrigger("tradewind.sql"))?.id).toBe("tradewind.sql");
    for (const kind of ["tradewind.dagrun", "tradewind.webhook", "toString", "mine"]) {
      expect(await builtinTrigger(kind)).toBeUndefined();
    }
    await expect(checkBuiltin(callOf("tradewind.webhook", {}), new TestHost())).rejects.toMatchObject({
      code: "TRIGGER_NOT_CHECKABLE",
    });
  });

  it("reject invalid arguments by name, without their values", async () => {
    const error = await startTrigger(
      "tradewind.http",
      { url: 5, method: "GET", bode: "s3cr3t" },
      new TestHost(),
    ).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: "TRIGGER_ARGS_INVALID" });
    expect((error as Error).message).toMatch(/^tradewind\.http: .*url: has to be a text/);
    expect((error as Error).message).toContain("bode: is not known");
    expect((error as Error).message).not.toContain("s3cr3t");
  });
});

describe("moments", () => {
  it("with a past date fires at once, with a future date at that time", async () => {
    const host = new TestHost();
    const past = "2026-01-01T00:00:00.000Z";
    expect(await checkBuiltin(callOf("tradewind.datetime", { moment: past }), host)).toBe(past);
    const soon = new Date(Date.now() + 80).toISOString();
    expect(await checkBuiltin(callOf("tradewind.datetime", { moment: soon }), host)).toBeUndefined();
    const trigger = await startTrigger("tradewind.datetime", { moment: soon }, host);
    expect(await trigger.next()).toEqual({ kind: "event", payload: soon, key: null });
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(soon));
    expect(await trigger.next()).toEqual({ kind: "done" });
  });

  it("with a duration fires with the time of its end", async () => {
    const begun = Date.now();
    const trigger = await startTrigger("tradewind.timedelta", { deltaMs: 50 }, new TestHost());
    const event = await trigger.next();
    expect(event).toMatchObject({ kind: "event" });
    if (event.kind === "event") expect(Date.parse(String(event.payload))).toBeGreaterThanOrEqual(begun + 50);
  });

  it("stop at the abort", async () => {
    const host = new TestHost();
    const trigger = await startTrigger("tradewind.timedelta", { deltaMs: 3_600_000 }, host);
    const { outcome } = trigger.begin();
    await trigger.stop();
    expect(await outcome).toEqual({ kind: "done" });
  });
});

describe("the last event of an earlier start", () => {
  const held = (lastEvent: Json) => {
    const host = new TestHost();
    const ceased: number[] = [];
    return Object.assign(host, { lastEvent, ceased: () => void ceased.push(host.polls), times: ceased });
  };

  it("is not reported again while it holds, but after a change, or when it has ended and returned", async () => {
    const host = held(1);
    const trigger = await start(
      kindOf(seeing({ event: 1 }, { event: 2 }, nothing, nothing, { event: 2 })),
      host,
    );
    expect([await trigger.next(), await trigger.next()]).toMatchObject([{ payload: 2 }, { payload: 2 }]);
    expect(host.times).toEqual([2]);
    const again = held("Monday");
    const sights = [{ event: "Tuesday" }, nothing, { event: "Wednesday" }];
    const other = await start(kindOf(seeing(...sights), { again: "again" }), again);
    expect(await other.next()).toMatchObject({ payload: "Wednesday" });
    host.stop();
    again.stop();
  });

  it("ends a trigger that fires once", async () => {
    const trigger = await start(kindOf(seeing({ event: 1 }), { again: "never" }), held(1));
    expect(await trigger.next()).toEqual({ kind: "done" });
  });
});

describe("several things", () => {
  /** Polls that find these things, one after the other, then the last forever; counts what was read of each. */
  function listing(...looks: (readonly (readonly [name: string, key: string])[])[]) {
    const taken: number[] = [];
    const kind = listedKind("tradewind.file", {
      args: members({ path: anyText, intervalMs: whole(1) }),
      intervalMs: ({ intervalMs }) => intervalMs,
      open: async () => ({
        ...{ place: "somewhere", limit: 3, none: "nothing there" },
        things: async function* (): AsyncGenerator<Thing> {
          const found = looks[Math.min(taken.length, looks.length - 1)] ?? [];
          const look = taken.push(0) - 1;
          for (const [name, key] of found) {
            taken[look]!++;
            yield { name, event: `${name} ${key}`, key };
          }
        },
      }),
    });
    return { kind, taken };
  }

  it("are one event each, with their keys, in order; the first is found without reading the others", async () => {
    const host = new TestHost();
    const all = Array.from({ length: 250 }, (_, n) => [`f${n}`, `k${n}`] as const);
    const { kind, taken } = listing([], all);
    const trigger = await start(kind, host);
    const first = await trigger.next();
    expect(first).toEqual({ kind: "event", payload: "f0 k0", key: "k0" });
    expect(taken).toEqual([0, 1]);
    const keys = ["k0"];
    while (keys.length < 250) keys.push(((await trigger.next()) as { key: string }).key);
    expect(keys).toEqual(all.map(([, key]) => key));
    expect(host.lines.map(({ message }) => message)).toEqual(["nothing there"]);
    host.stop();
    await trigger.cleanup();
  });

  it("are not reported again if the last start reported them, as far as known", async () => {
    const host = Object.assign(new TestHost(), { lastEvent: "b 1" });
    const { kind } = listing([["a", "1"] as const, ["b", "1"] as const, ["c", "1"] as const]);
    const trigger = await start(kind, host);
    expect([await trigger.next(), await trigger.next()]).toMatchObject([
      { payload: "a 1" },
      { payload: "c 1" },
    ]);
    host.stop();
    await trigger.cleanup();
  });

  it("are reported again after a change, and after an absence", async () => {
    const host = new TestHost();
    const [first, changed, other] = [["a", "1"] as const, ["a", "2"] as const, ["b", "1"] as const];
    const { kind } = listing([first], [first], [changed], [other], [changed]);
    const trigger = await start(kind, host);
    const payloads = [];
    for (let n = 0; n < 4; n++) payloads.push(((await trigger.next()) as { payload: Json }).payload);
    expect(payloads).toEqual(["a 1", "a 2", "b 1", "a 2"]);
    host.stop();
    await trigger.cleanup();
  });
});
