import type { RedisStreamArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import type { ConnectionFacts, TriggerYield } from "@tradewind/sdk/program";
import { beforeAll, describe, expect, it } from "vitest";
import { redisServer, type TestRedis } from "../../test/support/redis-server.ts";
import { callOf, expectPromptStop, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { checkBuiltin } from "./index.ts";

const KEY = "tradewind.rediskey";
/** Other tests share the machine. */
const PATIENT = { timeout: 20_000, interval: 20 };
const STREAM = "tradewind.redisstream";
const PASSWORD = "correct-horse";
let redis: TestRedis;

beforeAll(async () => {
  redis = await redisServer({ password: PASSWORD });
});

const facts = (change: Partial<ConnectionFacts> = {}): Partial<ConnectionFacts> => ({
  type: "redis",
  host: "127.0.0.1",
  port: redis.port,
  password: PASSWORD,
  ...change,
});

const host = (change?: Partial<ConnectionFacts>) => new TestHost({ bus: facts(change) });

const key = (name: string, equals: string | null = null): Json => ({
  connection: "bus",
  key: name,
  equals,
  intervalMs: 20,
});

const stream = (name: string, settings: Partial<RedisStreamArgs> = {}): Json => ({
  connection: "bus",
  stream: name,
  group: null,
  from: "$",
  ...settings,
});

/** Open connections of triggers. */
async function clients(): Promise<number> {
  const list = String(await redis.client.call("CLIENT", "LIST"));
  return list.split("\n").filter((line) => line.includes("name=tradewind-trigger")).length;
}

/** Ids that were read and not acknowledged. */
async function unacknowledged(name: string, group: string): Promise<string[]> {
  return (await redis.client.xpending(name, group, "-", "+", 100)).map(
    (entry) => (entry as string[])[0] as string,
  );
}

const text = (yielded: TriggerYield | undefined) =>
  yielded?.kind === "event" ? (yielded.payload as { fields: { n: string } }).fields.n : undefined;

describe("a key", () => {
  it("fires when it appears, not before", async () => {
    const here = host();
    const pending = (await startTrigger(KEY, key("plain"), here)).begin();
    await here.morePolls(3);
    expect(pending.hasFired).toBe(false);
    await redis.client.set("plain", "x");
    expect(await pending.outcome).toEqual({
      kind: "event",
      payload: { key: "plain", value: "x" },
      key: null,
    });
  });

  it("fires when it has the expected value, not before", async () => {
    await redis.client.set("state", "building");
    const here = host();
    const pending = (await startTrigger(KEY, key("state", "ready"), here)).begin();
    await here.morePolls(3);
    expect(pending.hasFired).toBe(false);
    await redis.client.set("state", "ready");
    expect(await pending.outcome).toMatchObject({ payload: { value: "ready" } });
  });

  it("may be of a type other than string", async () => {
    await redis.client.rpush("list", "a");
    expect(await checkBuiltin(callOf(KEY, key("list")), host())).toEqual({ key: "list", value: null });
    expect(await checkBuiltin(callOf(KEY, key("list", "a")), host())).toBeUndefined();
  });

  it("is polled over one connection by all triggers, which closes with the last", async () => {
    const triggers = [];
    for (let at = 0; at < 10; at++) {
      const here = host();
      const trigger = await startTrigger(KEY, key(`absent-${at}`), here);
      trigger.begin();
      await here.morePolls(1);
      triggers.push(trigger);
    }
    expect(await clients()).toBe(1);
    await Promise.all(triggers.map((trigger) => trigger.stop()));
    await expect.poll(clients, PATIENT).toBe(0);
  });

  it("survives an outage of its server", async () => {
    const here = host();
    const pending = (await startTrigger(KEY, key("later"), here)).begin();
    await here.morePolls(2);
    await redis.down();
    await here.logged(/ECONNREFUSED.*; attempt \d of 10/);
    expect(pending.hasFired).toBe(false);
    await redis.up();
    await redis.client.set("later", "1");
    expect(await pending.outcome).toMatchObject({ payload: { key: "later" } });
    await here.logged(/poll succeeded again/);
  });

  it("fails at once with the reason if retrying would not help, without secrets", async () => {
    const cases: [Partial<ConnectionFacts>, string, RegExp][] = [
      [{ password: "wrong-horse" }, "TRIGGER_REFUSED", /WRONGPASS/],
      [{ password: null }, "TRIGGER_REFUSED", /NOAUTH/],
      [{ schema: "99" }, "TRIGGER_REFUSED", /DB index/],
      [{ schema: "name" }, "TRIGGER_CONNECTION_INVALID", /number/],
      [{ type: "postgres" }, "TRIGGER_CONNECTION_INVALID", /postgres/],
      [{ host: null }, "TRIGGER_CONNECTION_INVALID", /no host/],
    ];
    for (const [change, code, message] of cases) {
      for (const [kind, args] of [
        [KEY, key("x")],
        [STREAM, stream("x")],
      ] as const) {
        const here = host(change);
        const error = await (await startTrigger(kind, args, here)).next().catch((thrown: Error) => thrown);
        expect(error, kind).toMatchObject({ code, message: expect.stringMatching(message) });
        expect(`${(error as Error).stack}${here.text}`).not.toMatch(/wrong-horse|correct-horse/);
        expect(here.polls).toBeLessThanOrEqual(1);
      }
    }
  });
});

/** Waits until a trigger blocks at the server for new entries. */
async function waiting(count = 1): Promise<void> {
  const blocked = async () => {
    const list = String(await redis.client.call("CLIENT", "LIST"));
    return list.split("\n").filter((line) => /name=tradewind-trigger .*flags=b.* cmd=xread/.test(line))
      .length;
  };
  await expect.poll(blocked, PATIENT).toBe(count);
}

async function add(name: string, n: string): Promise<string> {
  return String(await redis.client.xadd(name, "*", "n", n));
}

describe("a stream without a group", () => {
  it("fires with every new entry, in order, not before", async () => {
    await add("news", "old");
    const trigger = await startTrigger(STREAM, stream("news"), host());
    const pending = trigger.begin();
    await waiting();
    expect(pending.hasFired).toBe(false);
    const id = await redis.client.xadd("news", "*", "n", "1", "m", "x");
    await add("news", "2");
    expect(await pending.outcome).toEqual({
      kind: "event",
      payload: { id, fields: { n: "1", m: "x" } },
      key: id,
    });
    expect(text(await trigger.next())).toBe("2");
  });

  it("begins at the given position", async () => {
    const ids = [await add("tale", "1"), await add("tale", "2"), await add("tale", "3")];
    const all = await startTrigger(STREAM, stream("tale", { from: "0" }), host());
    expect([await all.next(), await all.next(), await all.next()].map(text)).toEqual(["1", "2", "3"]);
    const some = await startTrigger(STREAM, stream("tale", { from: ids[1] as string }), host());
    expect(text(await some.next())).toBe("3");
    expect(await checkBuiltin(callOf(STREAM, stream("tale", { from: "0" })), host())).toMatchObject({
      id: ids[0],
    });
    expect(await checkBuiltin(callOf(STREAM, stream("tale")), host())).toBeUndefined();
  });

  it("continues after the last event of an earlier start, if known", async () => {
    const first = await redis.client.xadd("former", "*", "n", "1");
    await redis.client.xadd("former", "*", "n", "2");
    const lastEvent = { id: String(first), fields: { n: "1" } };
    const running = await startTrigger(STREAM, stream("former"), Object.assign(host(), { lastEvent }));
    expect(text(await running.next())).toBe("2");
  });

  it("misses no entry that is added while its server is unreachable", async () => {
    const here = host();
    const trigger = await startTrigger(STREAM, stream("gaps"), here);
    const pending = trigger.begin();
    await waiting();
    await redis.client.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await add("gaps", "meanwhile");
    expect(text(await pending.outcome)).toBe("meanwhile");
    await here.logged(/; attempt 1 of 10/);
  });

  it("stops at the abort within 100 ms, and closes its connection", { retry: 2 }, async () => {
    const trigger = await startTrigger(STREAM, stream("quiet"), host());
    const { outcome } = trigger.begin();
    await waiting();
    await expectPromptStop(trigger, outcome);
    await expect.poll(clients, PATIENT).toBe(0);
  });
});

describe("a stream with a group", () => {
  const grouped = (name: string, from = "0") => stream(name, { group: "g", from });

  it("acknowledges an entry when its event is stored, not before", async () => {
    const ids = [await add("orders", "1"), await add("orders", "2")];
    const trigger = await startTrigger(STREAM, grouped("orders"), host());
    expect(text(await trigger.next())).toBe("1");
    expect(await unacknowledged("orders", "g")).toEqual(ids);
    expect(text(await trigger.next())).toBe("2");
    expect(await unacknowledged("orders", "g")).toEqual([ids[1]]);
    trigger.begin();
    await waiting();
    expect(await unacknowledged("orders", "g")).toEqual([]);
  });

  it("delivers an entry again that was not stored before the trigger moved", async () => {
    for (const n of ["1", "2", "3"]) await add("moves", n);
    const first = await startTrigger(STREAM, grouped("moves"), host());
    expect(text(await first.next())).toBe("1");
    expect(text(await first.next())).toBe("2");
    await first.stop();
    expect(await unacknowledged("moves", "g")).toHaveLength(2);
    const second = await startTrigger(STREAM, grouped("moves"), host());
    expect(text(await second.next())).toBe("2");
    expect(text(await second.next())).toBe("3");
    const pending = second.begin();
    await waiting();
    expect(await unacknowledged("moves", "g")).toEqual([]);
    await add("moves", "4");
    expect(text(await pending.outcome)).toBe("4");
  });

  it("survives a kill of its server between event and acknowledgement", async () => {
    for (const n of ["1", "2"]) await add("crash", n);
    const here = host();
    const trigger = await startTrigger(STREAM, grouped("crash"), here);
    expect(text(await trigger.next())).toBe("1");
    await redis.down();
    const pending = trigger.begin();
    await here.logged(/ECONNREFUSED.*; attempt \d of 10/);
    expect(pending.hasFired).toBe(false);
    await redis.up();
    expect(text(await pending.outcome)).toBe("2");
    trigger.begin();
    await waiting();
    expect(await unacknowledged("crash", "g")).toEqual([]);
  });

  it("creates its group again after the stream was deleted", async () => {
    await add("wiped", "1");
    const here = host();
    const trigger = await startTrigger(STREAM, grouped("wiped"), here);
    expect(text(await trigger.next())).toBe("1");
    const pending = trigger.begin();
    await waiting();
    await redis.client.del("wiped");
    await here.logged(/(?:NOGROUP|UNBLOCKED).*; attempt 1 of 10/);
    await add("wiped", "2");
    expect(text(await pending.outcome)).toBe("2");
  });

  it("skips entries that were deleted before they were stored", async () => {
    const ids = [await add("holes", "1"), await add("holes", "2")];
    const first = await startTrigger(STREAM, grouped("holes"), host());
    expect(text(await first.next())).toBe("1");
    await first.stop();
    await redis.client.xdel("holes", ids[0] as string);
    const here = host();
    const second = await startTrigger(STREAM, grouped("holes"), here);
    expect(text(await second.next())).toBe("2");
    await here.logged(new RegExp(`entry ${ids[0]} was deleted`));
    expect(await unacknowledged("holes", "g")).toEqual([ids[1]]);
  });

  it("returns the next entry to each check, and acknowledges it", async () => {
    for (const n of ["1", "2"]) await add("checks", n);
    const call = callOf(STREAM, grouped("checks"));
    expect(await checkBuiltin(call, host())).toMatchObject({ fields: { n: "1" } });
    expect(await checkBuiltin(call, host())).toMatchObject({ fields: { n: "2" } });
    expect(await checkBuiltin(call, host())).toBeUndefined();
    expect(await unacknowledged("checks", "g")).toEqual([]);
  });
});
