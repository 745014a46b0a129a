/** A service that starts while its database is down. */
import { expect, it, onTestFinished } from "vitest";
import { pgProxy } from "../../../test/support/pg-proxy.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { type Logger, silentLogger } from "../../service/logger.ts";
import { adhoc } from "./database.ts";
import { reachDatabase } from "./reach-database.ts";

async function proxied() {
  const { url } = await testDatabase();
  const proxy = await pgProxy(url);
  onTestFinished(() => proxy.close());
  return proxy;
}

const OPTIONS = { applicationName: "test" };

it("waits until the database responds, and logs once", async () => {
  const proxy = await proxied();
  proxy.set({ kind: "cut" });
  const lines: string[] = [];
  const warned = Promise.withResolvers<void>();
  const logger: Logger = {
    ...silentLogger,
    warn: (message) => {
      lines.push(message);
      warned.resolve();
    },
    info: (message) => lines.push(message),
  };
  const reached = reachDatabase(proxy.url, OPTIONS, { logger });
  await warned.promise;
  // Two attempts, one log line.
  await expect.poll(() => proxy.faults.cut, { timeout: 10_000 }).toBeGreaterThanOrEqual(2);
  proxy.set({ kind: "pass" });
  const database = await reached;
  expect(await database.one(adhoc("SELECT 1 AS n"))).toEqual({ n: 1 });
  await database.close();
  expect(lines).toEqual(["waiting for the database", "connected to the database"]);
});

it("does not wait when a retry cannot succeed", async () => {
  const proxy = await proxied();
  const url = new URL(proxy.url);
  url.pathname = "/no_such_database";
  await expect(reachDatabase(url.href, OPTIONS, { logger: silentLogger })).rejects.toMatchObject({
    code: "DATABASE_REFUSED",
  });
});

it("ends the wait when the signal aborts", async () => {
  const proxy = await proxied();
  proxy.set({ kind: "cut" });
  const stop = new AbortController();
  const logger: Logger = { ...silentLogger, warn: () => stop.abort(new Error("stop")) };
  await expect(reachDatabase(proxy.url, OPTIONS, { logger, signal: stop.signal })).rejects.toThrow("stop");
});
