import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { beforeAll, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { WakeUps } from "../job/wake-up.ts";
import { silentLogger } from "../service/logger.ts";
import { openSignals } from "./configured-service.ts";
import { GrpcSignalServer } from "./grpc/server.ts";
import { PostgresSignals } from "./postgres-signals.ts";

let test: TestDatabase;
let folder: string;
let wakeUps: WakeUps;

beforeAll(async () => {
  test = await testDatabase();
  wakeUps = new WakeUps(test.db);
  folder = await mkdtemp(join(tmpdir(), "tw-signals-"));
  return () => rm(folder, { recursive: true });
});

const open = (signals: string, signalsToken?: string) =>
  openSignals({ config: { signals, signalsToken }, database: test.db, logger: silentLogger, wakeUps });

it("is PostgreSQL by default", async () => {
  const service = await open("postgres");
  expect(service).toBeInstanceOf(PostgresSignals);
  await service.close();
});

it("is a remote server, with its token", async () => {
  const behind = await open("postgres");
  const server = new GrpcSignalServer({
    service: behind,
    authenticate: async (token) => (token === "t" ? "remote" : undefined),
    host: "127.0.0.1",
    port: 0,
    logger: silentLogger,
  });
  await server.start();
  const service = await open(`grpc://${server.address}`, "t");
  await service.send([{ key: "remote" }]);
  expect((await behind.list({ key: "remote" })).signals).toMatchObject([{ sender: "remote" }]);
  const stranger = await open(`grpc://${server.address}`, "wrong");
  await expect(stranger.send([{ key: "remote" }])).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
  for (const each of [service, stranger]) await each.close();
  await server.stop();
  await behind.close();
});

it("is created by a module, and rejects a module that creates none", async () => {
  const module = async (name: string, code: string) => {
    await writeFile(join(folder, name), code);
    return join(folder, name);
  };
  const postgres = pathToFileURL(join(import.meta.dirname, "postgres-signals.ts")).href;
  const own = await module(
    "own.mjs",
    `import { PostgresSignals } from ${JSON.stringify(postgres)};
     export default (parts) => new PostgresSignals({ ...parts, sender: "own" });`,
  );
  const service = await open(own);
  await service.send([{ key: "own" }]);
  expect((await service.list({ key: "own" })).signals).toMatchObject([{ sender: "own" }]);
  await service.close();
  for (const [name, code, why] of [
    ["none.mjs", "export const a = 1;", "its default export is not a function"],
    ["half.mjs", "export default () => ({ send() {}, list() {} });", "lacks position, subscribe"],
    ["broken.mjs", "throw new Error('not today');", "not today"],
  ] as const) {
    const refused = open(await module(name, code));
    await expect(refused).rejects.toMatchObject({
      code: "SIGNAL_SERVICE_MODULE",
      message: expect.stringContaining(why),
    });
  }
});
