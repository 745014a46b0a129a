import { beforeEach, describe, expect, it } from "vitest";
import { waitingForLock } from "../../../test/support/catalogue-seed.ts";
import { openTransaction } from "../../../test/support/open-transaction.ts";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Database, type Transaction } from "../database/database.ts";
import { type SignalDraft, sendSignals } from "./signals.ts";
import { listSignals } from "./signals-list.ts";
import { LOG_BEGIN, startAfterVersion, startNow, startSince } from "./signals-position.ts";
import { latestSignals, readKey, readLog, readMatching } from "./signals-read.ts";

let db: Database;

beforeEach(async () => {
  const test = await testDatabase();
  db = test.db;
  return () => test.close();
});

function draft(key: string, value: unknown = null, more: Partial<SignalDraft> = {}): SignalDraft {
  return { namespace: "n", key, value: value as SignalDraft["value"], sender: "s", ...more };
}

const read = (after = LOG_BEGIN) => readLog(db, { after, namespaces: null, limit: 100 });

/** Reads until nothing is held back: other tests have open transactions on the same server. */
async function settled(after = LOG_BEGIN): ReturnType<typeof read> {
  for (;;) {
    const end = await read(after);
    if (!end.isHeld) return end;
  }
}

const all = { namespace: "%", keys: ["%"], sender: null, afterVersion: null, since: null };

const open = (work: (tx: Transaction) => Promise<unknown>) => openTransaction(db, work);

describe("the log", () => {
  it("is not read past an open transaction, even if later ones have committed", async () => {
    const late = await open((tx) => sendSignals(tx, [draft("a", 1)]));
    const [second] = await sendSignals(db, [draft("b", 2)]);
    const early = await read();
    expect(early).toMatchObject({ rows: [], isHeld: true });
    expect(second!.id).toBe(2);
    await late.commit();
    const { position, rows } = await settled(early.position);
    expect(rows.map(({ id, key }) => [id, key])).toEqual([
      [1, "a"],
      [2, "b"],
    ]);
    expect(await read(position)).toMatchObject({ rows: [], isFull: false });
  });

  it("keeps the order of a key when the later writer has the older transaction id", async () => {
    // It gets its transaction id from another write, long before it sends.
    let old!: Transaction;
    const elder = await open(async (tx) => {
      old = tx;
      await tx.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('p', 1)"));
    });
    const holder = await open((tx) => sendSignals(tx, [draft("other")]));
    await sendSignals(db, [draft("k", "first")]);
    await sendSignals(old, [draft("k", "second")]);
    await elder.commit();
    // The open transaction holds back the first; the second must not be read without it.
    expect((await read()).rows).toEqual([]);
    await holder.commit();
    const rows = (await settled()).rows.filter(({ key }) => key === "k");
    expect(rows.map(({ value }) => value)).toEqual(["first", "second"]);
  });

  it("has one writer per key at a time, and concurrent writers of different keys", async () => {
    const first = await open((tx) => sendSignals(tx, [draft("k", 1)]));
    await sendSignals(db, [draft("other")]);
    let isStored = false;
    const second = db
      .transaction((tx) => sendSignals(tx, [draft("k", 2)]))
      .then(() => {
        isStored = true;
      });
    await waitingForLock(db);
    expect(isStored).toBe(false);
    await first.commit();
    await second;
    const rows = (await settled()).rows.filter(({ key }) => key === "k");
    expect(rows.map(({ value }) => value)).toEqual([1, 2]);
  });

  it("serializes writers of many keys and of few keys", async () => {
    const many = Array.from({ length: 200 }, (_, at) => draft(`k${at}`, 1));
    const first = await open((tx) => sendSignals(tx, many));
    const second = sendSignals(db, [draft("k7", 2)]);
    await waitingForLock(db);
    await first.commit();
    const [stored] = await second;
    expect(stored!.id).toBeGreaterThan(200);
  });

  it("is read in pages, by namespace", async () => {
    await sendSignals(db, [draft("a"), draft("b"), draft("c"), draft("d", null, { namespace: "m" })]);
    await settled();
    const page = await readLog(db, { after: LOG_BEGIN, namespaces: ["n"], limit: 2 });
    expect([page.rows.map(({ key }) => key), page.isFull]).toEqual([["a", "b"], true]);
    const next = await readLog(db, { after: page.position, namespaces: ["n"], limit: 2 });
    expect([next.rows.map(({ key }) => key), next.isFull]).toEqual([["c"], false]);
  });
});

describe("sending", () => {
  it("stores a signal once per client and sequence: in one list, in two, and concurrently", async () => {
    const numbered = (sequence: number, key = "a") => draft(key, sequence, { client: "c", sequence });
    const first = await sendSignals(db, [numbered(1), draft("x"), numbered(2), numbered(1)]);
    expect(first.map(({ id, isDuplicate }) => [id, isDuplicate])).toEqual([
      [first[0]!.id, false],
      [first[1]!.id, false],
      [first[2]!.id, false],
      [first[0]!.id, true],
    ]);
    const again = await db.transaction((tx) => sendSignals(tx, [numbered(2), numbered(3)]));
    expect(again.map(({ id, isDuplicate }) => [id === first[2]!.id, isDuplicate])).toEqual([
      [true, true],
      [false, false],
    ]);
    const race = await Promise.all(Array.from({ length: 8 }, () => sendSignals(db, [numbered(9, "z")])));
    expect(new Set(race.flat().map(({ id }) => id)).size).toBe(1);
    expect(race.flat().filter(({ isDuplicate }) => !isDuplicate)).toHaveLength(1);
    const client = { client: { id: "d", sequence: 5 } };
    const [five] = await sendSignals(db, [draft("q"), draft("r")], client);
    expect((await sendSignals(db, [draft("q")], client))[0]).toMatchObject({
      id: five!.id,
      isDuplicate: true,
    });
  });

  it("keeps every value that is JSON", async () => {
    const values = [null, "", "\0 and \ud800", { a: [1, 2.5, { b: false }] }, "naïve 🧭", '"{,}\\'];
    await sendSignals(
      db,
      values.map((value) => draft("v", value)),
    );
    expect((await settled()).rows.map(({ value }) => value)).toEqual(values);
  });
});

describe("reading back", () => {
  it("returns the matches between two positions, and the position read", async () => {
    await sendSignals(db, [draft("a.1"), draft("b.1"), draft("a.2"), draft("a_3", null, { sender: "t" })]);
    const { position } = await settled();
    const match = (filter: object, limit = 10) =>
      readMatching(db, { after: LOG_BEGIN, upTo: position, filter: { ...all, ...filter }, limit });
    const keys = async (filter: object) => (await match(filter)).rows.map(({ key }) => key);
    expect(await keys({ keys: ["a.%"] })).toEqual(["a.1", "a.2"]);
    expect(await keys({ keys: ["b.1", "a\\_%"] })).toEqual(["b.1", "a_3"]);
    expect(await keys({ sender: "t" })).toEqual(["a_3"]);
    expect(await keys({ afterVersion: 2 })).toEqual(["a.2", "a_3"]);
    expect(await keys({ since: new Date(Date.now() + 60_000) })).toEqual([]);
    expect(await keys({ namespace: "m" })).toEqual([]);
    expect((await match({ keys: ["a.%"] }, 1)).position).toMatchObject({ id: 1 });
    expect((await match({ keys: ["z"] })).position).toEqual(position);
  });

  it("reads a limited number of signals per call", async () => {
    await db.rows(
      adhoc(
        `INSERT INTO signal (namespace, key, sender) SELECT 'n', 'k' || i, 's' FROM generate_series(1, 25000) AS i`,
      ),
    );
    const { position } = await settled();
    const query = {
      after: LOG_BEGIN,
      upTo: { tx: position.tx, id: 1e9 },
      filter: { ...all, keys: ["k24999"] },
      limit: 5,
    };
    const first = await readMatching(db, query);
    expect([first.rows, first.position.id]).toEqual([[], 20_000]);
    const second = await readMatching(db, { ...query, after: first.position });
    expect(second.rows.map(({ key }) => key)).toEqual(["k24999"]);
  });

  it("is read by version within one key, and returns the latest of each key", async () => {
    await sendSignals(db, [draft("a", 1), draft("b", 2), draft("a", 3), draft("a", 4)]);
    await sendSignals(db, [draft("t", 5, { namespace: "task" })]);
    const { position } = await settled();
    const key = { upTo: position, sender: null, limit: 10 };
    const values = async (namespace: string, name: string, from: number) =>
      (await readKey(db, { ...key, namespace, key: name, from })).map(({ value }) => value);
    expect(await values("n", "a", 2)).toEqual([3, 4]);
    expect(await values("task", "t", 1)).toEqual([5]);
    expect((await latestSignals(db, "n", ["a", "b", "c"])).map(({ value }) => value)).toEqual([4, 2]);
  });

  it("lists by namespace, pattern, version, time and sender, in both directions", async () => {
    await sendSignals(db, [
      draft("a.1"),
      draft("a.2", null, { sender: "t" }),
      draft("b", null, { namespace: "m" }),
    ]);
    const keys = async (query: Omit<Parameters<typeof listSignals>[1], "limit">) =>
      (await listSignals(db, { limit: 10, ...query })).map(({ key }) => key);
    expect(await keys({})).toEqual(["a.1", "a.2", "b"]);
    expect(await keys({ namespace: "n", descending: true })).toEqual(["a.2", "a.1"]);
    expect(await keys({ namespace: "%", keys: ["a.%"] })).toEqual(["a.1", "a.2"]);
    expect(await keys({ namespace: "n", keys: ["a.1"] })).toEqual(["a.1"]);
    expect(await keys({ sender: "t" })).toEqual(["a.2"]);
    expect(await keys({ version: { gt: 1, lte: 2 } })).toEqual(["a.2"]);
    expect(await keys({ time: { lt: new Date(0) } })).toEqual([]);
  });
});

describe("a start", () => {
  it("at the current time excludes earlier signals that are not readable yet, and no later ones", async () => {
    const holder = await open((tx) => tx.rows(adhoc("INSERT INTO pool (name, slots) VALUES ('q', 1)")));
    await sendSignals(db, [draft("before")]);
    const start = await startNow(db);
    await sendSignals(db, [draft("after")]);
    await holder.commit();
    const { position } = await settled();
    const filter = { ...all, afterVersion: start.afterVersion };
    const { rows } = await readMatching(db, { after: start.position, upTo: position, filter, limit: 10 });
    expect(rows.map(({ key }) => key)).toEqual(["after"]);
  });

  it("at a version or a time precedes all open transactions", async () => {
    const late = await open((tx) => sendSignals(tx, [draft("late")]));
    const [, second] = await sendSignals(db, [draft("one"), draft("two")]);
    const fromVersion = await startAfterVersion(db, second!.id - 2);
    const fromTime = await startSince(db, new Date(0));
    const beyond = await startAfterVersion(db, 1_000);
    await late.commit();
    const { position } = await settled();
    for (const [start, expected] of [
      [fromVersion, ["one", "two"]],
      [fromTime, ["late", "one", "two"]],
      [beyond, []],
    ] as const) {
      const filter = { ...all, afterVersion: start.afterVersion, since: start.since };
      const { rows } = await readMatching(db, { after: start.position, upTo: position, filter, limit: 10 });
      expect(rows.map(({ key }) => key)).toEqual(expected);
    }
  });
});
