/** Following a log through a proxy that cuts the first connections. */
import { appendFile, mkdir } from "node:fs/promises";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Installation, manifestOf } from "../../engine/test/api/installation.ts";
import { Client } from "../src/client/client.ts";
import { readRunLog } from "../src/client/run-log.ts";

/** Bytes of a response after which it is cut. */
const CUTS = [30_000, 90_000];
const LINES = 400;

let server: Installation;
let proxy: Server;
let client: Client;
let cuts = 0;

beforeAll(async () => {
  server = await Installation.open();
  const port = Number(new URL(await server.app.listen({ host: "127.0.0.1", port: 0 })).port);
  proxy = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    const limit = CUTS[cuts++] ?? Number.POSITIVE_INFINITY;
    let passed = 0;
    far.on("data", (bytes) => {
      passed += bytes.length;
      near.write(bytes);
      if (passed >= limit) near.destroy();
    });
    near.pipe(far);
    far.on("end", () => near.end());
    for (const socket of [near, far]) socket.on("error", () => {});
    near.on("close", () => far.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const { port: own } = proxy.address() as AddressInfo;
  client = new Client({ url: `http://127.0.0.1:${own}`, token: server.token, pid: undefined });
}, 60_000);
afterAll(() => proxy?.close());

it("prints each line once and in order", async () => {
  await server.addDag(manifestOf("etl", [{ taskId: "a" }, { taskId: "b" }]));
  const run = await server.addRun("etl", { runId: "r1", state: "success" });
  for (const [index, task] of ["a", "b"].entries()) {
    const path = join(server.logsDir, "etl", String(run), task, "-1", "1-x.log");
    await mkdir(dirname(path), { recursive: true });
    const line = (at: number) =>
      `${JSON.stringify({ t: new Date(Date.UTC(2026, 0, 1) + 2 * at + index).toISOString(), level: "info", source: "task", message: `${task}${at} ${"x".repeat(200)}` })}\n`;
    await appendFile(path, Array.from({ length: LINES }, (_, at) => line(at)).join(""));
  }
  const events: string[] = [];
  const choice = { withCallbacks: false, follow: true };
  const signal = new AbortController().signal;
  for await (const { line } of readRunLog(client, { dagId: "etl", runId: "r1" }, choice, signal))
    events.push((line as { event: string }).event.split(" ", 1)[0]!);
  expect(cuts).toBe(CUTS.length + 1);
  expect(events).toEqual(Array.from({ length: LINES }, (_, at) => [`a${at}`, `b${at}`]).flat());
});
