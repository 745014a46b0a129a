/** How far the log can be read while transactions are open. */
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, expect, it } from "vitest";
import { testDatabase } from "../../../test/support/test-database.ts";
import { adhoc, type Connection, type Database } from "../database/database.ts";
import { sendSignals } from "./signals.ts";
import { HELD_MS } from "./signals-horizon.ts";
import { comparePositions, LOG_BEGIN, type LogPosition } from "./signals-position.ts";
import { readLog, type SignalRow } from "./signals-read.ts";

let db: Database;
let other: Database;
beforeEach(async () => {
  ({ db } = await testDatabase());
  ({ db: other } = await testDatabase());
});

const draft = (key: string, value = 0) => ({ namespace: "default", key, value, sender: "test" });
const TAKE_XID = adhoc("SELECT pg_current_xact_id()");

/** A transaction that has run `work` and stays open until committed. */
async function open(database: Database, work: (tx: Connection) => Promise<unknown>) {
  const began = Promise.withResolvers<Connection>();
  const goOn = Promise.withResolvers<void>();
  const ended = database.transaction(async (tx) => {
    await work(tx);
    began.resolve(tx);
    await goOn.promise;
  });
  const tx = await began.promise;
  return {
    tx,
    commit: async () => {
      goOn.resolve();
      await ended;
    },
  };
}

const read = (after: LogPosition = LOG_BEGIN) =>
  readLog(db, { after, namespaces: ["default"], limit: 1_000 });

async function readUntil(count: number, after: LogPosition = LOG_BEGIN) {
  for (;;) {
    const end = await read(after);
    if (end.rows.length >= count) return end;
    await sleep(5);
  }
}

it("reads past a transaction that is open in another database", async () => {
  const outside = await open(other, (tx) => tx.rows(TAKE_XID));
  await sendSignals(db, [draft("a", 1), draft("b", 2)]);
  const { isHeld, position, rows } = await readUntil(2);
  expect(rows.map(({ value }) => value)).toEqual([1, 2]);
  expect(isHeld).toBe(false);
  await sendSignals(db, [draft("a", 3)]);
  expect((await readUntil(1, position)).rows.map(({ value }) => value)).toEqual([3]);
  await outside.commit();
});

it("reads past a transaction that has sent nothing yet; its later signals come after that position", async () => {
  const elder = await open(db, (tx) => tx.rows(TAKE_XID));
  await sendSignals(db, [draft("a", 1)]);
  const { position } = await readUntil(1);
  await sendSignals(elder.tx, [draft("b", 2)]);
  await sendSignals(db, [draft("c", 3)]);
  await elder.commit();
  expect((await readUntil(2, position)).rows.map(({ value }) => value)).toEqual([2, 3]);
});

it("stops before a transaction that has sent a signal", async () => {
  const outside = await open(other, (tx) => tx.rows(TAKE_XID));
  const sender = await open(db, (tx) => sendSignals(tx, [draft("a", 1)]));
  await sendSignals(db, [draft("b", 2)]);
  await sleep(2 * HELD_MS);
  const early = await read();
  expect(early).toMatchObject({ rows: [], isHeld: true });
  await sender.commit();
  expect((await readUntil(2, early.position)).rows.map(({ value }) => value)).toEqual([1, 2]);
  await outside.commit();
});

it("neither loses nor repeats signals of concurrent writers", async () => {
  const outside = await open(other, (tx) => tx.rows(TAKE_XID));
  const WRITERS = 8;
  const EACH = 40;
  let writing = WRITERS;
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    for (let n = 0; n < EACH; n++) {
      await db
        .transaction(async (tx) => {
          if (Math.random() < 0.5) await tx.rows(TAKE_XID);
          if (Math.random() < 0.3) await sleep(Math.random() * 20);
          await sendSignals(tx, [draft(`k${Math.floor(Math.random() * 4)}`, writer * EACH + n)]);
          if (Math.random() < 0.3) await sleep(Math.random() * 20);
          if (Math.random() < 0.1) throw new Error("rolled back");
        })
        .catch((error: Error) => {
          if (error.message !== "rolled back") throw error;
        });
    }
    writing--;
  });
  const seen: SignalRow[] = [];
  let position = LOG_BEGIN;
  const count = adhoc("SELECT count(*) AS n FROM signal WHERE namespace = 'default'");
  for (;;) {
    const isLast = writing === 0;
    const end = await read(position);
    expect(comparePositions(end.position, position)).toBeGreaterThanOrEqual(0);
    position = end.position;
    seen.push(...end.rows);
    if (isLast && seen.length >= (await db.one<{ n: number }>(count))!.n) break;
    await sleep(1);
  }
  await Promise.all(writers);
  await outside.commit();
  const stored = await db.rows<{ id: number }>(
    adhoc("SELECT id FROM signal WHERE namespace = 'default' ORDER BY tx, id"),
  );
  expect(seen.map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  for (const rows of Map.groupBy(seen, ({ key }) => key).values())
    expect(rows.map(({ id }) => id)).toEqual(rows.map(({ id }) => id).toSorted((a, b) => a - b));
});
