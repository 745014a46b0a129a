import { createServer } from "node:net";
import type { HttpArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import { describe, expect, it } from "vitest";
import { httpServer } from "../../test/support/http-server.ts";
import { callOf, expectPromptStop, startTrigger, TestHost } from "../../test/support/trigger-host.ts";
import { checkBuiltin } from "./index.ts";

const KIND = "tradewind.http";
/** Other tests share the machine. */
const PATIENT = { timeout: 20_000, interval: 20 };

const args = (settings: Partial<HttpArgs>): Json =>
  ({
    url: "/",
    method: "GET",
    headers: {},
    connection: null,
    status: null,
    json: null,
    body: null,
    intervalMs: 20,
    ...settings,
  }) as unknown as Json;

describe("an HTTP answer", () => {
  it("fires when the status is right, not before", async () => {
    const server = await httpServer((_, response) => response.writeHead(404).end("not yet"));
    const host = new TestHost();
    const pending = (
      await startTrigger(KIND, args({ url: `${server.url}/ready?token=s3cr3t` }), host)
    ).begin();
    await host.morePolls(3);
    expect(pending.hasFired).toBe(false);
    server.answer = (_, response) => response.writeHead(200, { "content-type": "text/plain" }).end("here");
    expect(await pending.outcome).toEqual({
      kind: "event",
      payload: { status: 200, body: "here" },
      key: null,
    });
    expect(host.text).toContain(`${server.url}/ready answered 404`);
    expect(host.text).not.toContain("s3cr3t");
  });

  it("fires when the JSON matches, with the JSON", async () => {
    let job: Json = { state: "running" };
    const server = await httpServer((_, response) =>
      response
        .setHeader("content-type", "application/json; charset=utf-8")
        .end(JSON.stringify({ jobs: [job] })),
    );
    const host = new TestHost();
    const json = { path: ["jobs", 0, "state"], equals: "done" };
    const pending = (await startTrigger(KIND, args({ url: server.url, json }), host)).begin();
    await host.morePolls(3);
    expect(pending.hasFired).toBe(false);
    job = { state: "done", rows: 7 };
    expect(await pending.outcome).toMatchObject({ payload: { status: 200, body: { jobs: [job] } } });
    const inherited = callOf(
      KIND,
      args({ url: server.url, json: { path: ["constructor", "name"], equals: "Object" } }),
    );
    expect(await checkBuiltin(inherited, host)).toBeUndefined();
  });

  it("can wait for an error status", async () => {
    const server = await httpServer((_, response) => response.writeHead(503).end());
    const trigger = await startTrigger(KIND, args({ url: server.url, status: [404, 503] }), new TestHost());
    expect(await trigger.next()).toMatchObject({ payload: { status: 503, body: null } });
  });

  it("sends the configured request, with the connection's headers and credentials", async () => {
    const server = await httpServer((_, response) => response.end());
    const host = new TestHost({
      api: {
        type: "http",
        host: "127.0.0.1",
        port: server.port,
        login: "ada",
        password: "lovelace",
        extra: { headers: { "X-Key": "sesame" } },
      },
    });
    const settings = {
      url: "/jobs",
      method: "POST",
      body: "{}",
      headers: { "content-type": "a/b" },
      connection: "api",
    };
    expect(await checkBuiltin(callOf(KIND, args(settings)), host)).toEqual({ status: 200, body: null });
    expect(server.requests[0]).toMatchObject({
      method: "POST",
      url: "/jobs",
      body: "{}",
      headers: {
        "x-key": "sesame",
        "content-type": "a/b",
        authorization: `Basic ${Buffer.from("ada:lovelace").toString("base64")}`,
      },
    });
  });

  it("follows redirects, without credentials and headers for another origin", async () => {
    const other = await httpServer((_, response) => response.end("there"));
    const server = await httpServer((request, response) =>
      response.writeHead(302, { location: request.url === "/a" ? "/b" : `${other.url}/c` }).end(),
    );
    const host = new TestHost({ api: { type: "http", host: server.url, password: "lovelace" } });
    const call = callOf(KIND, args({ url: "/a", connection: "api", headers: { "x-key": "sesame" } }));
    expect(await checkBuiltin(call, host)).toEqual({ status: 200, body: "there" });
    expect(server.requests.map(({ url }) => url)).toEqual(["/a", "/b"]);
    expect(server.requests[1]?.headers).toMatchObject({ "x-key": "sesame" });
    expect(server.requests[1]?.headers.authorization).toBeDefined();
    expect(other.requests[0]?.headers).not.toHaveProperty("x-key");
    expect(other.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  it("limits the event to 256 KB", async () => {
    const long = JSON.stringify(["ü".repeat(300_000)]);
    const server = await httpServer((_, response) =>
      response.setHeader("content-type", "application/json").end(long),
    );
    const host = new TestHost();
    const json = { path: [0], equals: "ü".repeat(300_000) };
    const event = (await checkBuiltin(callOf(KIND, args({ url: server.url, json })), host)) as {
      body: string;
    };
    expect(Buffer.byteLength(event.body)).toBeLessThanOrEqual(256 * 1024);
    expect(Buffer.byteLength(event.body)).toBeGreaterThan(256 * 1024 - 4);
    expect(long.startsWith(event.body)).toBe(true);
    await host.logged(/longer than/);
  });

  it("does not read an endless answer to its end", async () => {
    let isCancelled = false;
    const server = await httpServer((_, response) => {
      const more = (): void => {
        while (response.write("x".repeat(65_536)));
        response.once("drain", more);
      };
      response.on("close", () => {
        isCancelled = true;
      });
      more();
    });
    const event = (await checkBuiltin(callOf(KIND, args({ url: server.url })), new TestHost())) as {
      body: string;
    };
    expect(event.body).toHaveLength(256 * 1024);
    await expect.poll(() => isCancelled, PATIENT).toBe(true);
  });

  it("survives errors and outages of its server", async () => {
    const server = await httpServer((_, response) => response.writeHead(503).end());
    const host = new TestHost();
    const pending = (await startTrigger(KIND, args({ url: server.url }), host)).begin();
    await host.logged(/answered 503; attempt 1 of 10/);
    await server.down();
    await host.logged(/ECONNREFUSED.*; attempt \d of 10/);
    expect(pending.hasFired).toBe(false);
    server.answer = (_, response) => response.end("back");
    await server.up();
    expect(await pending.outcome).toMatchObject({ payload: { body: "back" } });
    await host.logged(/poll succeeded again/);
  });

  it("fails at once if it is rejected or invalid", async () => {
    const server = await httpServer((_, response) => response.writeHead(401).end());
    const connections = {
      api: { type: "http", host: server.url, login: "ada", password: "lovelace" },
      bad: { type: "http", host: "http://[" },
    };
    const cases: [Partial<HttpArgs>, string][] = [
      [{ url: "/", connection: "api" }, "TRIGGER_REFUSED"],
      [{ url: "/", connection: "bad" }, "TRIGGER_CONNECTION_INVALID"],
      [{ url: "/", connection: "none" }, "TRIGGER_CONNECTION_MISSING"],
      [{ url: "/" }, "TRIGGER_ARGS_INVALID"],
      [{ url: "ftp://example.com/" }, "TRIGGER_ARGS_INVALID"],
      [{ url: "http://ada:lovelace@example.com/" }, "TRIGGER_ARGS_INVALID"],
      [{ url: "http://elsewhere.example/", connection: "api" }, "TRIGGER_ARGS_INVALID"],
      [{ url: server.url, body: "{}" }, "TRIGGER_ARGS_INVALID"],
    ];
    for (const [settings, code] of cases) {
      const host = new TestHost(connections);
      const error = await (await startTrigger(KIND, args(settings), host))
        .next()
        .catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ code });
      expect(`${(error as Error).stack}${host.text}`).not.toContain("lovelace");
      expect(host.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    }
  });

  it("stops at the abort within 100 ms, even without an answer", { retry: 2 }, async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    const asked = Promise.withResolvers<void>();
    silent.on("connection", (socket) => {
      socket.on("error", () => {});
      socket.once("data", () => asked.resolve());
    });
    await new Promise((resolve) => silent.once("listening", resolve));
    const { port } = silent.address() as { port: number };
    const trigger = await startTrigger(KIND, args({ url: `http://127.0.0.1:${port}` }), new TestHost());
    const { outcome } = trigger.begin();
    await asked.promise;
    await expectPromptStop(trigger, outcome);
    silent.close();
  });
});
