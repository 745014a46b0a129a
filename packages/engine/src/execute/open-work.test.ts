/** Work that a task leaves open fails its try; idle connections in a pool do not. With the real clients, bundled. */
import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, inject, onTestFinished, test } from "vitest";
import { ExecutorUnderTest } from "../../test/execute/executor-under-test.ts";
import { httpServer } from "../../test/support/http-server.ts";
import { redisServer } from "../../test/support/redis-server.ts";
import { s3Server } from "../../test/support/s3-server.ts";

/** The tests expect its line numbers in errors. */
const SOURCE = `
import { execFile, spawn } from "node:child_process";
import { connect as http2Connect } from "node:http2";
import { appendFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { gzip, gzipSync } from "node:zlib";
import { scryptSync } from "node:crypto";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { dag, Operator, skip, TimeDeltaTrigger } from "@tradewind/sdk";
import { Redis } from "ioredis";
import pg from "pg";
import { Agent, request } from "undici";

let warm;
function clients({ http2, s3, redisPort, postgres }) {
  warm ??= {
    agent: new Agent({ pipelining: 1 }),
    session: http2Connect(http2),
    pool: new pg.Pool({ connectionString: postgres }),
    redis: new Redis(redisPort, "127.0.0.1"),
    s3: new S3Client({ endpoint: s3, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" } }),
  };
  return warm;
}
async function overHttp2(session, path) {
  const stream = session.request({ ":path": path });
  let size = 0;
  for await (const chunk of stream) size += chunk.length;
  return size;
}
async function load(file) {
  await sleep(200);
  await writeFile(file, "loaded");
}
class Submit extends Operator {
  async execute(ctx) {
    void load(ctx.params.file);
    return this.defer({ trigger: new TimeDeltaTrigger({ delta: "1s" }), method: "done" });
  }
  done() {}
}

export default dag("testing", (d) => {
  d.task("forgotten", (_, ctx) => { void load(ctx.params.file); });
  d.task("allowed", { openWork: "allow" }, (_, ctx) => { void load(ctx.params.file); });
  d.task("skips", (_, ctx) => { void load(ctx.params.file); return skip(); });
  d.operator("submits", new Submit());
  d.task("process", () => { spawn("sleep", ["5"]); });
  d.task("deferredWork", () => { setTimeout(() => console.log("later"), 5_000); });
  d.task("unref", () => { setTimeout(() => console.log("later"), 5_000).unref(); AbortSignal.timeout(5_000); });
  d.task("quick", () => { void appendFile("/dev/null", "x"); void Promise.resolve().then(() => {}); });
  d.task("sync", () => { gzipSync("x"); scryptSync("x", "y", 8); });
  d.task("fetchForgotten", async (_, ctx) => { void fetch(ctx.params.http + "/slow"); });
  d.task("undiciForgotten", async (_, ctx) => {
    const dispatcher = clients(ctx.params).agent;
    await (await request(ctx.params.http + "/fast", { dispatcher })).body.text();
    void request(ctx.params.http + "/slow", { dispatcher });
  });
  d.task("http2Forgotten", async (_, ctx) => {
    const { session } = clients(ctx.params);
    await overHttp2(session, "/fast");
    void overHttp2(session, "/slow");
  });
  d.task("poolForgotten", async (_, ctx) => {
    const { pool } = clients(ctx.params);
    await pool.query("SELECT 1");
    void pool.query("SELECT pg_sleep(1)");
  });
  d.task("redisForgotten", async (_, ctx) => {
    const { redis } = clients(ctx.params);
    await redis.set("a", 1);
    void redis.blpop("nothing", 1);
  });
  d.task("awaited", async (_, ctx) => {
    const { params } = ctx;
    const { agent, pool, redis, s3, session } = clients(params);
    const answers = ["/fast", "/fast"].map((path) => request(params.http + path, { dispatcher: agent }));
    for (const { body } of await Promise.all(answers)) await body.text();
    await Promise.all([overHttp2(session, "/fast"), overHttp2(session, "/fast")]);
    await Promise.all(["1", "2", "3"].map((n) => pool.query("SELECT " + n)));
    await redis.set("a", 1);
    await redis.pipeline().get("a").get("b").exec();
    await s3.send(new PutObjectCommand({ Bucket: "rows", Key: "k", Body: "x".repeat(100_000) }));
    await (await fetch(params.http + "/fast")).text();
    // Only its head is read.
    await fetch(params.http + "/fast");
    await promisify(execFile)("true");
    await promisify(gzip)("x");
    const client = new pg.Client(params.postgres);
    await client.connect();
    await client.query("SELECT 1");
    // Being closed is not work.
    void client.end();
    return process.pid;
  });
  d.task("notifies", { onSuccess: (ctx) => { void fetch(ctx.params.http + "/slow"); } }, () => {});
});
`;

async function bundled(under: ExecutorUnderTest) {
  const bundleHash = await under.bundle(SOURCE, {
    banner: {
      js: 'import { createRequire as tw$require } from "node:module"; const require = tw$require(import.meta.url);',
    },
    external: ["pg-native"],
    nodePaths: [fileURLToPath(new URL("../../../../node_modules", import.meta.url))],
    sourcemap: "linked",
  });
  return { bundleHash };
}

async function http2Server(onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void) {
  const server = createServer().on("stream", onStream).listen(0, "127.0.0.1");
  await once(server, "listening");
  const sessions = new Set<ServerHttp2Session>();
  server.on("session", (session) => sessions.add(session));
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return `http://127.0.0.1:${port}`;
}

const open = (what: string) => ({
  kind: "failed",
  retry: true,
  error: { code: "TW_WORK_LEFT_OPEN", message: expect.stringContaining(what) },
});

test("a task that returns while its work is open fails, and its process is not reused", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const conf = { file: join(under.dir, "file") };
  const bundle = { ...(await bundled(under)), conf };
  const outcome = await under.run("forgotten", bundle);
  expect(outcome).toMatchObject(open('task "forgotten" returned while work that it started was still open'));
  expect(outcome).toMatchObject(open("timer started at"));
  expect(outcome).toMatchObject({ error: { stack: expect.stringMatching(/at load \(.*dag\.ts:33:9\)/) } });
  expect(await under.run("skips", bundle)).toMatchObject(open("timer"));
  expect(await under.run("submits", bundle)).toMatchObject(open("timer"));
  expect(await under.run("process", bundle)).toMatchObject(open("child process"));
  expect(await under.run("deferredWork", bundle)).toMatchObject(open("timer"));
  for (const task of ["allowed", "unref", "quick", "sync"])
    expect(await under.run(task, bundle)).toMatchObject({ kind: "success" });
  const pids = new Set(under.events.flatMap((event) => (event.type === "started" ? [event.pid] : [])));
  // All but the last three left open work.
  expect(pids.size).toBe(7);
});

test("pools and keep-alive connections are open work only while they wait for a response", async () => {
  await using under = await ExecutorUnderTest.start({ parallelism: 1 });
  const http = await httpServer(({ url }, response) => {
    if (url === "/fast") response.end("x".repeat(100_000));
  });
  const http2 = await http2Server((stream, { ":path": path }) => {
    if (path === "/fast") stream.end("x".repeat(100_000));
  });
  const redis = await redisServer();
  const s3 = await s3Server(["rows"]);
  const { endpoint_url } = s3.connection.extra as { endpoint_url: string };
  const postgres = inject("testPostgres").adminUrl;
  const conf = { http: http.url, http2, redisPort: redis.port, postgres, s3: endpoint_url };
  const bundle = { ...(await bundled(under)), conf };
  for (let time = 0; time < 3; time++) expect(await under.output("awaited", bundle)).toBeTypeOf("number");
  expect(await under.run("fetchForgotten", bundle)).toMatchObject(
    open(`connection to 127.0.0.1:${http.port}`),
  );
  expect(await under.run("undiciForgotten", bundle)).toMatchObject(
    open(`:${http.port} that waits for an answer`),
  );
  expect(await under.run("http2Forgotten", bundle)).toMatchObject(open("HTTP/2 request started at"));
  expect(await under.run("poolForgotten", bundle)).toMatchObject(
    open(`:${new URL(postgres).port} that waits for an answer`),
  );
  expect(await under.run("redisForgotten", bundle)).toMatchObject(
    open(`:${redis.port} that waits for an answer`),
  );

  const callback = { ...bundle, taskId: "notifies", event: "success" as const };
  under.executor.submit([under.callback({ ...callback, id: "told" })]);
  const told = await under.event((event) => event.type === "callbackEnded" && event.callbackId === "told");
  expect(told).toMatchObject({ error: { code: "TW_WORK_LEFT_OPEN" } });
});
