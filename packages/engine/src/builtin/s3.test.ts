import type { Json } from "@tradewind/sdk/manifest";
import { beforeAll, describe, expect, it } from "vitest";
import { httpServer } from "../../test/support/http-server.ts";
import { s3Server, type TestS3Server } from "../../test/support/s3-server.ts";
import { callOf, expectPromptStop, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { checkBuiltin } from "./index.ts";

let server: TestS3Server;

beforeAll(async () => {
  server = await s3Server(["exports", "many"]);
});

const host = () => new TestHost({ lake: server.connection });

const key = (name: string, more: { bucket?: string; wildcard?: boolean } = {}): Json => ({
  bucket: "exports",
  key: name,
  wildcard: false,
  connection: "lake",
  intervalMs: 20,
  ...more,
});

const prefix = (name: string, minCount: number, bucket = "exports"): Json => ({
  bucket,
  prefix: name,
  minCount,
  connection: "lake",
  intervalMs: 20,
});

describe("an object", () => {
  it("fires when it appears, not before", async () => {
    const here = host();
    const pending = (await startTrigger("tradewind.s3key", key("in/sales.csv"), here)).begin();
    await here.morePolls(3);
    expect(pending.hasFired).toBe(false);
    await server.put("exports", "in/sales.csv", "1,2,3");
    expect(await pending.outcome).toMatchObject({
      kind: "event",
      payload: {
        bucket: "exports",
        key: "in/sales.csv",
        size: 5,
        lastModified: expect.stringMatching(/^20.*Z$/),
      },
    });
  });

  it("by a pattern returns the first match in order, across folders and pages", async () => {
    const call = (name: string) => callOf("tradewind.s3key", key(name, { bucket: "many", wildcard: true }));
    expect(await checkBuiltin(call("p/*.parquet"), host())).toBeUndefined();
    const names = Array.from({ length: 1_050 }, (_, at) => `p/${String(at).padStart(5, "0")}.csv`);
    for (let at = 0; at < names.length; at += 50) {
      await Promise.all(names.slice(at, at + 50).map((name) => server.put("many", name, "")));
    }
    await server.put("many", "p/x/b.parquet", "12");
    await server.put("many", "p/x/a.parquet", "1");
    expect(await checkBuiltin(call("p/*.parquet"), host())).toMatchObject({ key: "p/x/a.parquet", size: 1 });
    expect(await checkBuiltin(call("p/0000?.csv"), host())).toMatchObject({ key: "p/00000.csv" });
    // Without `wildcard`, a star is a literal.
    const literal = callOf("tradewind.s3key", key("p/*.parquet", { bucket: "many" }));
    expect(await checkBuiltin(literal, host())).toBeUndefined();

    const all = (await checkBuiltin(callOf("tradewind.s3prefix", prefix("p/", 1_052, "many")), host())) as {
      keys: string[];
    };
    expect(all.keys).toEqual(names.slice(0, 1_000));
    expect(
      await checkBuiltin(callOf("tradewind.s3prefix", prefix("p/", 1_053, "many")), host()),
    ).toBeUndefined();
  });

  it("by a prefix fires when there are enough keys", async () => {
    const here = host();
    const pending = (await startTrigger("tradewind.s3prefix", prefix("parts/", 2), here)).begin();
    await server.put("exports", "parts/b", "");
    await server.put("exports", "party", "");
    await here.logged(/1 of 2 keys/);
    await here.morePolls(2);
    expect(pending.hasFired).toBe(false);
    await server.put("exports", "parts/a", "");
    expect(await pending.outcome).toMatchObject({
      payload: { bucket: "exports", prefix: "parts/", keys: ["parts/a", "parts/b"] },
    });
  });

  it("survives an outage of its server", async () => {
    const server = await s3Server(["exports"]);
    const here = new TestHost({ lake: server.connection });
    const pending = (await startTrigger("tradewind.s3key", key("late"), here)).begin();
    await here.morePolls(2);
    await server.down();
    await here.logged(/ECONNREFUSED.*; attempt \d of 10/);
    expect(pending.hasFired).toBe(false);
    await server.up();
    await server.put("exports", "late", "x");
    expect(await pending.outcome).toMatchObject({ payload: { key: "late" } });
    await here.logged(/poll succeeded again/);
  });

  it("fails at once with the reason if retrying would not help, without secrets", async () => {
    const connection = { ...server.connection, extra: { endpoint_url: "http://[" } };
    const cases: [string, Json, Parameters<typeof withChange>[0], string, RegExp][] = [
      ["tradewind.s3key", key("x", { bucket: "nowhere" }), {}, "TRIGGER_REFUSED", /nowhere/],
      ["tradewind.s3prefix", prefix("x", 1, "nowhere"), {}, "TRIGGER_REFUSED", /NoSuchBucket/],
      ["tradewind.s3key", key("x"), { login: "stranger" }, "TRIGGER_REFUSED", /403/],
      [
        "tradewind.s3prefix",
        prefix("x", 1),
        { login: "stranger", password: "wrong-horse" },
        "TRIGGER_REFUSED",
        /InvalidAccessKeyId/,
      ],
      ["tradewind.s3key", key("x"), { password: null }, "TRIGGER_CONNECTION_INVALID", /one is missing/],
      [
        "tradewind.s3key",
        key("x"),
        { extra: connection.extra },
        "TRIGGER_CONNECTION_INVALID",
        /endpoint_url/,
      ],
      ["tradewind.s3key", key("x"), { extra: { role_arn: "a" } }, "TRIGGER_CONNECTION_INVALID", /role_arn/],
    ];
    for (const [kind, given, change, code, message] of cases) {
      const here = withChange(change);
      const error = await (await startTrigger(kind, given, here)).next().catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
      expect(`${(error as Error).stack}${here.text}`).not.toContain("wrong-horse");
      expect(here.polls).toBeLessThanOrEqual(1);
    }
  });

  it("stops at the abort within 100 ms, even without an answer", { retry: 2 }, async () => {
    const asked = Promise.withResolvers<void>();
    const silent = await httpServer(() => asked.resolve());
    const here = withChange({ extra: { endpoint_url: silent.url } });
    const trigger = await startTrigger("tradewind.s3key", key("x"), here);
    const { outcome } = trigger.begin();
    await asked.promise;
    await expectPromptStop(trigger, outcome);
  });
});

function withChange(change: TestS3Server["connection"]): TestHost {
  return new TestHost({ lake: { ...server.connection, ...change } });
}
