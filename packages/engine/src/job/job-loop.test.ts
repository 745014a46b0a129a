import { PassThrough } from "node:stream";
import { beforeAll, expect, it, onTestFinished } from "vitest";
import { pgProxy } from "../../test/support/pg-proxy.ts";
import { type TestDatabase, testDatabase } from "../../test/support/test-database.ts";
import { createLogger, type LogLevel } from "../service/logger.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { JobLoop } from "./job-loop.ts";
import { Mailbox } from "./mailbox.ts";

let test: TestDatabase;

beforeAll(async () => {
  test = await testDatabase();
});

/** Queries the database at each turn. */
class Looking extends JobLoop {
  turns = 0;
  readonly #database: Database;

  constructor(database: Database, logger: ReturnType<typeof createLogger>) {
    const who = { kind: "scheduler", hostname: "here", pid: 1, version: "0" } as const;
    const times = { ttlMs: 60_000, renewMs: 50, marginMs: 100 };
    super(database, who, { logger, times, mailbox: new Mailbox<never>(0) });
    this.#database = database;
  }

  protected async onStart(): Promise<void> {}
  protected async onStopping(): Promise<void> {}
  protected async onHeartbeat(): Promise<void> {}
  protected onLeaseLost(): void {}
  protected async turn(): Promise<void> {
    this.turns++;
    await this.#database.rows(adhoc("SELECT 1"));
  }
}

async function started(level: LogLevel) {
  const proxy = await pgProxy(test.url);
  const database = Database.connect(proxy.url);
  const stream = new PassThrough({ encoding: "utf8" });
  let said = "";
  stream.on("data", (text: string) => {
    said += text;
  });
  const loop = new Looking(database, createLogger({ level, stream }));
  await loop.start();
  onTestFinished(async () => {
    proxy.set({ kind: "pass" });
    await loop.stop();
    await database.close();
    await proxy.close();
  });
  return { loop, proxy, said: () => said };
}

const AWAY = /WARN +the database is unavailable/g;
const BACK = /INFO +the database is available again/g;

it("logs an outage of the database once, in one line, and the recovery once", async () => {
  const { loop, proxy, said } = await started("info");
  for (const outage of [1, 2]) {
    const before = proxy.faults.cut;
    proxy.set({ kind: "cut" });
    // It has polled more than once.
    await expect.poll(() => proxy.faults.cut, { timeout: 20_000 }).toBeGreaterThan(before + 4);
    expect(said().match(AWAY)).toHaveLength(outage);
    proxy.set({ kind: "pass" });
    await expect.poll(() => said().match(BACK)?.length, { timeout: 20_000 }).toBe(outage);
    const { turns } = loop;
    await expect.poll(() => loop.turns, { timeout: 20_000 }).toBeGreaterThan(turns + 2);
  }
  expect(said().match(AWAY)).toHaveLength(2);
  expect(said().match(BACK)).toHaveLength(2);
  expect(said()).toMatch(/^\S+ WARN +the database is unavailable .*error=".+"$/m);
  expect(said()).not.toMatch(/^ {4}/m);
  expect(said()).not.toContain("database.ts");
});

it("logs the stack of each failed poll at debug level", async () => {
  const { proxy, said } = await started("debug");
  proxy.set({ kind: "cut" });
  await expect
    .poll(() => said().match(/DEBUG the database is unavailable/g)?.length ?? 0, { timeout: 20_000 })
    .toBeGreaterThan(2);
  expect(said()).toMatch(/^ {4} +at .*database\.ts/m);
});
