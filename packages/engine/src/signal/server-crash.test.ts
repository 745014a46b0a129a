/** Positions of readers that outlive a crash of PostgreSQL: no later signal may be stored behind them. */
import { beforeEach, describe, expect, it } from "vitest";
import { type PrivatePostgres, privatePostgres } from "../../test/support/private-postgres.ts";
import { WakeUps } from "../job/wake-up.ts";
import { adhoc, Database } from "../store/database/database.ts";
import { sentByTasks } from "../store/signal/signal-bridge.ts";
import { scanLog } from "../store/signal/signal-schedules.ts";
import { sendSignals } from "../store/signal/signals.ts";
import {
  comparePositions,
  type LogPosition,
  startAfterVersion,
  startNow,
  startSince,
} from "../store/signal/signals-position.ts";
import { readLog } from "../store/signal/signals-read.ts";
import { logHead } from "../store/trigger/engine-conditions-signals.ts";
import { PostgresSignals } from "./postgres-signals.ts";

const SIGNAL = { namespace: "default", key: "orders", value: 1, sender: "test" };

let server: PrivatePostgres;
let db: Database;

beforeEach(async () => {
  // Transactions that do not wait for the disk are not written to it before the crash.
  server = await privatePostgres({ settings: { wal_writer_delay: "10s" } });
  db = Database.connect(server.url);
  return async () => {
    await db.close();
    await server.close();
  };
});

/** Uses up transaction ids that a crash forgets. */
async function rollBackTransactions(): Promise<void> {
  for (let at = 0; at < 50; at++) {
    const failing = db.transaction(async (tx) => {
      await tx.rows(adhoc("SELECT pg_current_xact_id()"));
      throw new Error("rolled back");
    });
    await expect(failing).rejects.toThrow("rolled back");
  }
}

async function nextTransactionId(): Promise<bigint> {
  const row = await db.one<{ id: string }>(adhoc("SELECT pg_snapshot_xmax(pg_current_snapshot()) AS id"));
  return BigInt(row!.id);
}

/** Resolves when the server has recovered; ids are assigned again, otherwise the test would prove nothing. */
async function crash(): Promise<void> {
  const before = await nextTransactionId();
  await server.crash("kill");
  await server.resume();
  await expect.poll(() => nextTransactionId().catch(() => before)).toBeLessThan(before);
}

/** The end of the log, by every reader that keeps it in memory. */
async function ends(): Promise<Record<string, LogPosition>> {
  const after = { tx: "0", id: 0 };
  return {
    readLog: (await readLog(db, { after, namespaces: null, limit: 10 })).position,
    scanLog: (await scanLog(db, after, null, 10)).head,
    logHead: (await logHead(db)).position,
    sentByTasks: (await sentByTasks(db, { after, except: [], limit: 10 })).position,
    startNow: (await startNow(db)).position,
    startAfterVersion: (await startAfterVersion(db, 1_000)).position,
    startSince: (await startSince(db, new Date(Date.now() + 60_000))).position,
  };
}

describe("a reader of the signal log, after PostgreSQL has crashed", () => {
  for (const [title, first] of [
    ["with a signal in the log", [SIGNAL]],
    ["with an empty log", []],
  ] as const)
    it(`finds new signals after its position, ${title}`, async () => {
      await sendSignals(db, first);
      await rollBackTransactions();
      const positions = await ends();
      await crash();
      await sendSignals(db, [SIGNAL]);
      const sent = (await db.one<LogPosition>(adhoc("SELECT tx, id FROM signal ORDER BY id DESC LIMIT 1")))!;
      for (const [reader, position] of Object.entries(positions))
        expect(comparePositions(sent, position), reader).toBeGreaterThan(0);
    });

  it("receives a signal that reuses a transaction id", async () => {
    const wakeUps = new WakeUps(db);
    const signals = new PostgresSignals({ database: db, wakeUps, deafMs: 20 });
    const subscription = signals.subscribe({ key: "orders" }, await signals.position("now"));
    await signals.send([SIGNAL]);
    expect((await subscription.next({ limit: 10, waitMs: 5_000 })).signals).toHaveLength(1);
    await rollBackTransactions();
    // Reads up to the end of the log.
    await subscription.next({ limit: 10, waitMs: 200 });
    await crash();
    await signals.send([SIGNAL]);
    expect((await subscription.next({ limit: 10, waitMs: 5_000 })).signals).toHaveLength(1);
    subscription.close();
    await signals.close();
    await wakeUps.close();
  });
});
