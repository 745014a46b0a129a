import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import { beforeAll, describe, expect, it } from "vitest";
import { afterFile } from "../../test/support/after-file.ts";
import { postgresFacts } from "../../test/support/postgres-facts.ts";
import { redisServer, type TestRedis } from "../../test/support/redis-server.ts";
import { testDatabase } from "../../test/support/test-database.ts";
import { testConnection } from "./connection-test.ts";

const FACTS: ConnectionFacts = {
  id: "probe",
  type: "generic",
  host: "127.0.0.1",
  port: null,
  login: null,
  password: null,
  schema: null,
  extra: null,
};

function probe(facts: Partial<ConnectionFacts>, timeoutMs = 20_000) {
  return testConnection({ ...FACTS, ...facts }, { timeoutMs, signal: new AbortController().signal });
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterFile(async () => server.close());
  return (server.address() as AddressInfo).port;
}

async function closedPort(): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port)),
  );
  await new Promise((resolve) => server.close(resolve));
  return port;
}

describe("PostgreSQL", () => {
  let facts: Partial<ConnectionFacts>;

  beforeAll(async () => {
    const { url } = await testDatabase({ empty: true });
    facts = postgresFacts(url);
  });

  it("accepts the credentials", async () => {
    expect(await probe(facts)).toEqual({
      tested: "credentials",
      address: `${facts.host}:${facts.port}`,
      answer: `SELECT 1 succeeded as ${facts.login}`,
    });
  });

  it("rejects an unknown login or database", async () => {
    for (const change of [{ login: "stranger", password: "wrong-word" }, { schema: "no_such_database" }]) {
      const error = await probe({ ...facts, ...change }).catch((thrown: Error) => thrown);
      expect(error).toMatchObject({ code: "CONNECTION_REJECTED" });
      expect((error as Error).message).not.toContain("wrong-word");
    }
  });

  it("is unreachable where nothing listens, and needs a host", async () => {
    await expect(probe({ ...facts, port: await closedPort() })).rejects.toMatchObject({
      code: "CONNECTION_UNREACHABLE",
      message: expect.stringContaining("ECONNREFUSED"),
    });
    await expect(probe({ ...facts, host: null })).rejects.toMatchObject({
      code: "TRIGGER_CONNECTION_INVALID",
    });
  });
});

describe("Redis", () => {
  let redis: TestRedis;

  beforeAll(async () => {
    redis = await redisServer({ password: "correct-horse" });
  });

  it("accepts the password, and rejects another", async () => {
    const facts = { type: "redis", port: redis.port, password: "correct-horse" };
    expect(await probe(facts)).toMatchObject({ tested: "credentials" });
    await expect(probe({ ...facts, password: "other" })).rejects.toMatchObject({
      code: "CONNECTION_REJECTED",
    });
    await expect(probe({ ...facts, port: await closedPort() })).rejects.toMatchObject({
      code: "CONNECTION_UNREACHABLE",
    });
  });
});

describe("HTTP", () => {
  const requests: IncomingMessage[] = [];
  let port: number;

  beforeAll(async () => {
    const server = createHttpServer((request, response) => {
      requests.push(request);
      const isKnown = request.headers.authorization === `Basic ${Buffer.from("ann:pw").toString("base64")}`;
      const place = request.headers["x-answer"];
      response.statusCode = typeof place === "string" ? Number(place) : isKnown ? 200 : 401;
      if (response.statusCode === 302) response.setHeader("location", "/elsewhere");
      response.end();
    });
    port = await listening(server);
  });

  it("accepts or rejects the credentials", async () => {
    const facts = { type: "http", port, login: "ann", password: "pw" };
    expect(await probe(facts)).toEqual({
      tested: "credentials",
      address: `127.0.0.1:${port}`,
      answer: `GET http://127.0.0.1:${port}/ was answered with 200`,
    });
    await expect(probe({ ...facts, password: "other" })).rejects.toMatchObject({
      code: "CONNECTION_REJECTED",
      message: expect.stringContaining("401"),
    });
  });

  it("reports only what it tested, and follows no redirect", async () => {
    const answering = (status: number) => ({
      type: "http",
      port,
      login: "a",
      extra: { headers: { "x-answer": status } },
    });
    requests.length = 0;
    expect(await probe(answering(302))).toMatchObject({ tested: "reachability" });
    expect(requests).toHaveLength(1);
    expect(await probe(answering(404))).toMatchObject({ tested: "reachability" });
    expect(await probe({ ...answering(200), login: null })).toMatchObject({ tested: "reachability" });
    await expect(probe(answering(503))).rejects.toMatchObject({ code: "CONNECTION_REJECTED" });
  });
});

describe("other types", () => {
  it("are connected to, without credentials", async () => {
    const port = await listening(createServer((socket) => socket.end()));
    expect(await probe({ type: "mysql", port })).toEqual({
      tested: "reachability",
      address: `127.0.0.1:${port}`,
      answer: "it accepts connections",
    });
    await expect(probe({ type: "mysql", port: await closedPort() })).rejects.toMatchObject({
      code: "CONNECTION_UNREACHABLE",
    });
    await expect(probe({ type: "odd" })).rejects.toMatchObject({ code: "TRIGGER_CONNECTION_INVALID" });
  });

  it("end after the time limit if the server does not answer", async () => {
    const silent = await listening(createServer());
    await expect(probe({ type: "postgres", port: silent, login: "a" }, 200)).rejects.toMatchObject({
      code: "CONNECTION_UNREACHABLE",
      message: expect.stringContaining("no answer within 0.2 s"),
    });
  });
});
