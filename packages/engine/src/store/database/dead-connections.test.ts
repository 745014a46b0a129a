import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type PgProxy, pgProxy } from "../../../test/support/pg-proxy.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, CommitUnknownError, call, Database, isTransient } from "./database.ts";

const SOON_MS = 5_000;
const one = adhoc("SELECT 1 AS n");

let test: TestDatabase;
let proxy: PgProxy;
let remote: Database;

beforeAll(async () => {
  test = await testDatabase({ empty: true });
  await test.db.rows(adhoc("CREATE TABLE item (id int PRIMARY KEY)"));
});

beforeEach(async () => {
  proxy = await pgProxy(test.url);
  remote = Database.connect(proxy.url, { max: 3 });
  onTestFinished(async () => {
    await remote.close();
    await proxy.close();
  });
});

const took = async (work: Promise<unknown>) => {
  const began = performance.now();
  const outcome = await work.catch((error) => error);
  return { outcome, ms: performance.now() - began };
};

describe("connections that stop responding while new ones work", () => {
  it("are detected by every kind of call, and other connections of the same age are not used again", async () => {
    await Promise.all([
      remote.rows(adhoc("SELECT pg_sleep(0.1)")),
      remote.rows(adhoc("SELECT pg_sleep(0.1)")),
    ]);
    await remote.pipeline([call(one)]);
    proxy.set({ kind: "half-open" });
    expect(proxy.faults.silenced).toBe(3);
    const [statement, batch] = await Promise.all([
      took(remote.rows(one)),
      took(remote.pipeline([call(adhoc("INSERT INTO item VALUES (1)"))])),
    ]);
    expect(isTransient(statement.outcome)).toBe(true);
    expect(batch.outcome).toBeInstanceOf(CommitUnknownError);
    expect(Math.max(statement.ms, batch.ms)).toBeLessThan(SOON_MS);
    // The second connection of the pool is as old as the dead one.
    const next = await took(remote.rows(one));
    expect(next.outcome).toEqual([{ n: 1 }]);
    expect(next.ms).toBeLessThan(1_000);
  });

  it("release the locks of their transaction", async () => {
    await test.db.rows(adhoc("INSERT INTO item VALUES (7) ON CONFLICT DO NOTHING"));
    const transaction = remote.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT FROM item WHERE id = 7 FOR UPDATE"));
      proxy.set({ kind: "half-open" });
      await tx.rows(one);
    });
    expect((await took(transaction)).ms).toBeLessThan(SOON_MS);
    const other = await took(test.db.rows(adhoc("SELECT FROM item WHERE id = 7 FOR UPDATE")));
    expect(other.outcome).toHaveLength(1);
    expect(other.ms).toBeLessThan(1_000);
  });

  it("do not delay oneSoon", async () => {
    await remote.rows(one);
    proxy.set({ kind: "half-open" });
    const { outcome, ms } = await took(remote.oneSoon(one));
    expect(outcome).toEqual({ n: 1 });
    expect(ms).toBeLessThan(1_900);
  });

  it("are replaced by a listener, which reports that notifications may have been missed", async () => {
    const heard = Promise.withResolvers<string>();
    const listening = await remote.listen("tw_dead", heard.resolve);
    await remote.rows(one);
    proxy.set({ kind: "half-open" });
    await remote.rows(one).catch(() => {});
    expect(await heard.promise).toBe("");
    const { ms } = await took(listening.close());
    expect(ms).toBeLessThan(1_000);
  });
});

it("does not interrupt a slow statement while its backend works", async () => {
  expect((await took(remote.rows(adhoc("SELECT pg_sleep(4)")))).outcome).toHaveLength(1);
});

it("closes without waiting for a database that does not respond", async () => {
  await remote.rows(one);
  const listening = await remote.listen("tw_closing", () => {});
  proxy.set({ kind: "hang" });
  const call = took(remote.rows(one));
  await sleep(50);
  expect((await took(Promise.all([listening.close(), remote.close(500)]))).ms).toBeLessThan(2_000);
  expect(isTransient((await call).outcome)).toBe(true);
});
