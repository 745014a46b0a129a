import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type PgProxy, pgProxy } from "../../../test/support/pg-proxy.ts";
import { type TestDatabase, testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, CommitUnknownError, call, Database, isTransient, sqlState, statement } from "./database.ts";

const insert = statement("t_insert", "INSERT INTO item (id) VALUES ($1) RETURNING id");
const count = statement("t_count", "SELECT count(*) AS n FROM item");
const divide = statement("t_divide", "SELECT 1 / $1::int AS x");
const later = statement("t_later", "SELECT $1::text AS word");

let test: TestDatabase;
let db: Database;

beforeAll(async () => {
  test = await testDatabase({ empty: true });
  db = test.db;
  await db.rows(adhoc("CREATE TABLE item (id int PRIMARY KEY)"));
});
beforeEach(() => db.rows(adhoc("TRUNCATE item")));

describe("values", () => {
  it("arrive as the same JavaScript values from a statement, a transaction and a pipeline", async () => {
    const values = statement(
      "t_values",
      `SELECT $1::int8 AS big, ARRAY[1::int8, NULL] AS bigs, '2026-01-02T03:04:05.678Z'::timestamptz AS at,
              $2::json AS json, $3::jsonb AS jsonb, $4::text[] AS texts, $5::bytea AS bytes, NULL::text AS nothing, '5'::xid8 AS tx`,
    );
    const given = [
      9_007_199_254_740_991,
      { a: [1, "\u0000"] },
      { b: null },
      ["x", 'y"', null],
      Buffer.from([0, 255]),
    ];
    const expected = {
      big: 9_007_199_254_740_991,
      bigs: [1, null],
      at: new Date("2026-01-02T03:04:05.678Z"),
      json: { a: [1, "\u0000"] },
      jsonb: { b: null },
      texts: ["x", 'y"', null],
      bytes: Buffer.from([0, 255]),
      nothing: null,
      tx: "5",
    };
    expect(await db.one(values, given)).toEqual(expected);
    expect(await db.pipeline([call(values, ...given)])).toEqual([[expected]]);
    // The second time, the remembered columns of the prepared statement are used.
    expect(await db.pipeline([call(values, ...given), call(values, ...given)])).toEqual([
      [expected],
      [expected],
    ]);
    expect(await db.transaction((tx) => tx.one(values, given))).toEqual(expected);
  });
});

describe("transaction", () => {
  it("commits", async () => {
    const id = await db.transaction(async (tx) => (await tx.one<{ id: number }>(insert, [1]))?.id);
    expect(id).toBe(1);
    expect(await total()).toBe(1);
  });

  it("rolls back when the callback throws, and keeps the connection usable", async () => {
    const one = Database.connect(test.url, { max: 1 });
    await expect(
      one.transaction(async (tx) => {
        await tx.rows(insert, [1]);
        throw new Error("changed my mind");
      }),
    ).rejects.toThrow("changed my mind");
    await expect(one.transaction((tx) => tx.rows(divide, [0]))).rejects.toMatchObject({ code: "22012" });
    expect(await one.one(count)).toEqual({ n: 0 });
    await one.close();
  });

  it("rejects when the callback swallowed the error of a failed statement", async () => {
    const work = db.transaction(async (tx) => {
      await tx.rows(insert, [1]);
      await tx.rows(divide, [0]).catch(() => {});
    });
    await expect(work).rejects.toMatchObject({ code: "TRANSACTION_ABORTED" });
    expect(await total()).toBe(0);
  });
});

describe("pipeline", () => {
  it("stores all calls as one transaction", async () => {
    const results = await db.pipeline([call(insert, 1), call(insert, 2), call(count)]);
    expect(results).toEqual([[{ id: 1 }], [{ id: 2 }], [{ n: 2 }]]);
    const tx = adhoc("SELECT pg_current_xact_id()::text AS id");
    const [[first], [second]] = (await db.pipeline([call(tx), call(tx)])) as [
      { id: string }[],
      { id: string }[],
    ];
    expect(first).toEqual(second);
  });

  it("stores nothing when statement 2 of 4 fails, and keeps the connection usable", async () => {
    const one = Database.connect(test.url, { maxPipelines: 1 });
    const broken = [call(insert, 1), call(divide, 0), call(later, "a"), call(insert, 2)];
    await expect(one.pipeline(broken)).rejects.toMatchObject({ code: "22012" });
    expect(await total()).toBe(0);
    // Same connection: the failed statement and the skipped one are prepared again.
    expect(await one.pipeline([call(insert, 1), call(divide, 1), call(later, "a"), call(insert, 2)])).toEqual(
      [[{ id: 1 }], [{ x: 1 }], [{ word: "a" }], [{ id: 2 }]],
    );
    await one.close();
  });

  it("rejects with the error of an unparsable statement and of a constraint checked at commit", async () => {
    await db.rows(adhoc("CREATE TABLE IF NOT EXISTS pair (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"));
    const pair = statement("t_pair", "INSERT INTO pair VALUES ($1)");
    await expect(db.pipeline([call(insert, 1), call(adhoc("SELEC 1"))])).rejects.toMatchObject({
      code: "42601",
    });
    await expect(db.pipeline([call(insert, 1), call(pair, 1), call(pair, 1)])).rejects.toMatchObject({
      code: "23505",
    });
    expect(await total()).toBe(0);
  });

  it("sends nothing when a value cannot be encoded", async () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    await expect(db.pipeline([call(insert, 1), call(later, cycle)])).rejects.toThrow(/circular/i);
    expect(await db.pipeline([call(insert, 1)])).toEqual([[{ id: 1 }]]);
  });

  it("keeps concurrent pipelines apart", async () => {
    const ids = Array.from({ length: 200 }, (_, index) => index);
    await Promise.all(ids.map((id) => db.pipeline([call(insert, id), call(later, `${id}`)])));
    expect(await total()).toBe(200);
  });

  it("raises the engine's own SQLSTATEs", async () => {
    const { db: migrated } = await testDatabase();
    const require = adhoc("SELECT tw_require($1, 'TW001', 'run 7 moved on')");
    const error = await migrated.pipeline([call(require, false)]).catch((reason) => reason);
    expect(sqlState(error)).toBe("TW001");
    expect(isTransient(error)).toBe(false);
    await migrated.pipeline([call(require, true)]);
  });
});

describe("a connection that breaks", () => {
  let proxy: PgProxy;
  let remote: Database;
  beforeAll(async () => {
    proxy = await pgProxy(test.url);
    remote = Database.connect(proxy.url);
  });
  afterAll(async () => {
    await remote.close();
    await proxy.close();
  });

  it.each([
    ["pipeline", () => remote.pipeline([call(insert, 1), call(insert, 2)])],
    ["transaction", () => remote.transaction((tx) => tx.rows(insert, [1]))],
  ])("reports an unknown outcome after the commit of a %s was sent", async (_name, store) => {
    const before = proxy.faults.dropped;
    proxy.set({ kind: "drop-commit-answer" });
    const error = await store().catch((reason) => reason);
    proxy.set({ kind: "pass" });
    expect(error).toBeInstanceOf(CommitUnknownError);
    expect(isTransient(error)).toBe(false);
    expect(proxy.faults.dropped).toBe(before + 1);
    expect(await total()).toBeGreaterThan(0);
    expect(await remote.pipeline([call(insert, 10)])).toEqual([[{ id: 10 }]]);
  });

  it("reports a rejected pipeline as rejected, not as unknown", async () => {
    const before = proxy.faults.dropped;
    proxy.set({ kind: "drop-commit-answer" });
    await expect(remote.pipeline([call(insert, 1), call(divide, 0)])).rejects.toMatchObject({
      code: "22012",
    });
    proxy.set({ kind: "pass" });
    expect(proxy.faults.dropped).toBe(before);
  });

  it("reports transient errors while the server is down, then reconnects", async () => {
    proxy.set({ kind: "cut" });
    for (const attempt of [() => remote.rows(count), () => remote.transaction((tx) => tx.rows(count))]) {
      expect(isTransient(await attempt().catch((reason) => reason))).toBe(true);
    }
    expect(isTransient(await remote.pipeline([call(count)]).catch((reason) => reason))).toBe(true);
    proxy.set({ kind: "pass" });
    expect(await remote.one(count)).toEqual({ n: 0 });
    expect(await remote.pipeline([call(count)])).toEqual([[{ n: 0 }]]);
  });

  it("rejects the call inside a transaction and stores nothing", async () => {
    const work = remote.transaction(async (tx) => {
      await tx.rows(insert, [1]);
      proxy.set({ kind: "cut" });
      await tx.rows(insert, [2]);
    });
    const error = await work.catch((reason) => reason);
    proxy.set({ kind: "pass" });
    expect(isTransient(error)).toBe(true);
    expect(await total()).toBe(0);
  });

  it("reports an unknown outcome if the server terminates a pipeline (57P01), and replaces an idle connection", async () => {
    const name = "victim";
    const victim = Database.connect(test.url, { applicationName: name });
    const terminate = adhoc(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1",
    );
    const sleeping = victim
      .pipeline([call(insert, 1), call(adhoc("SELECT pg_sleep(30)"))])
      .catch((reason) => reason);
    const asleep = adhoc(
      "SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND wait_event = 'PgSleep'",
    );
    while ((await db.one(asleep, [name])) === undefined);
    await db.rows(terminate, [name]);
    expect(await sleeping).toBeInstanceOf(CommitUnknownError);
    expect(await total()).toBe(0);

    await victim.rows(count);
    await db.rows(terminate, [name]);
    const gone = adhoc("SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = $1");
    while ((await db.one<{ n: number }>(gone, [name]))?.n !== 0);
    // The pool may return the dead connection once before it has read the server's termination message.
    await victim.rows(count).catch((error) => expect(isTransient(error)).toBe(true));
    expect(await victim.one(count)).toEqual({ n: 0 });
    await victim.close();
  });

  it("keeps the order of replies on a slow network", async () => {
    proxy.set({ kind: "delay", ms: 30 });
    const start = performance.now();
    expect(await remote.pipeline([call(insert, 1), call(insert, 2), call(count)])).toEqual([
      [{ id: 1 }],
      [{ id: 2 }],
      [{ n: 2 }],
    ]);
    proxy.set({ kind: "pass" });
    expect(performance.now() - start).toBeGreaterThanOrEqual(55);
  });
});

describe("listen", () => {
  it("delivers notifications, and an empty payload after each reconnect", async () => {
    const proxy = await pgProxy(test.url);
    const remote = Database.connect(proxy.url);
    const heard = new Inbox();
    const listening = await remote.listen("tw_test", (payload) => heard.put(payload));
    const notify = (payload: string) => db.rows(adhoc("SELECT pg_notify('tw_test', $1)"), [payload]);

    await notify("one");
    expect(await heard.take()).toBe("one");
    proxy.set({ kind: "cut" });
    await notify("lost");
    proxy.set({ kind: "pass" });
    expect(await heard.take()).toBe("");
    await notify("two");
    expect(await heard.take()).toBe("two");

    await listening.close();
    await notify("three");
    expect(heard.waiting).toEqual([]);
    await remote.close();
    await proxy.close();
  });

  it("rejects immediately when the server cannot be reached", async () => {
    const nowhere = Database.connect("postgresql://nobody@127.0.0.1:1/none");
    const error = await nowhere.listen("tw_test", () => {}).catch((reason) => reason);
    expect(isTransient(error)).toBe(true);
    await nowhere.close();
  });
});

describe("statement", () => {
  it("rejects two texts under one name", () => {
    expect(() => statement("t_count", "SELECT 2")).toThrow(/Two statements are named "t_count"/);
    expect(() => statement("x".repeat(64), "SELECT 2")).toThrow(/1 to 63 bytes/);
  });
});

async function total(): Promise<number> {
  return (await db.one<{ n: number }>(count))?.n ?? -1;
}

class Inbox extends EventTarget {
  readonly waiting: string[] = [];

  put(payload: string): void {
    this.waiting.push(payload);
    this.dispatchEvent(new Event("put"));
  }

  async take(): Promise<string> {
    if (this.waiting.length === 0) await once(this, "put");
    return this.waiting.shift() as string;
  }
}
