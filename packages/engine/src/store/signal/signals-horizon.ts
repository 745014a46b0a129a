/**
 * How far the signal log can be read despite open transactions that do not write signals, e.g. in another database of the
 * server. Normally readers stop before pg_snapshot_xmin, which costs nothing; this is for signals that have been held
 * back for a while.
 *
 * A writer of signals locks the table (ROW EXCLUSIVE) before it takes the snapshot of its INSERT, and keeps the lock
 * until its transaction ends. Its tx is at least its own transaction id, and at least the last transaction completed in
 * that snapshot (the table `signal` in the schema). So, in this order:
 *
 * 1. Read the last completed transaction L and the last assigned version N.
 * 2. Read which transactions hold the lock.
 * 3. Read the log, with a snapshot taken after that.
 *
 * Any signal that is not visible in 3 was written by a transaction that was open then. If it held the lock in 2, its tx is
 * not below its transaction id, which is known; a transaction id that is assigned later, or ended between the two reads of
 * the lock table, is after L, or visible. If it did not hold the lock in 2, its snapshot came after 1: its tx is at least
 * L, and its version is after N. So everything up to (L, N), and before the oldest lock holder, is final.
 *
 * This holds for READ COMMITTED, the only level that Tradewind uses. If the database has another default, readers stop at
 * xmin.
 */
import { call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type LogPosition, laterPosition } from "./signals-position.ts";

/** Signals that are held back for less simply wait: most transactions take milliseconds. */
export const HELD_MS = 50;

const BEFORE = statement(
  "signal-horizon-before",
  `SELECT pg_snapshot_xmin(x.at) AS xmin, pg_snapshot_xmax(x.at) AS xmax,
          (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM signal_id_seq) AS version,
          current_setting('default_transaction_isolation') AS isolation
   FROM (SELECT pg_current_snapshot() AS at) AS x`,
);

/**
 * Two CTEs with one read of the lock table: `writer` has the transactions that may hold signals, with their 32-bit ids
 * (one more per savepoint) and the backend, null for a prepared transaction.
 */
export const SIGNAL_WRITERS = `lock AS MATERIALIZED (
     SELECT locktype, database, relation, transactionid, virtualtransaction, mode, pid FROM pg_locks WHERE granted),
   writer AS MATERIALIZED (
     SELECT x.transactionid AS xid, w.pid FROM lock w
     JOIN lock x ON x.virtualtransaction = w.virtualtransaction AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock'
     WHERE w.locktype = 'relation' AND w.relation = 'signal'::regclass AND w.mode = 'RowExclusiveLock'
       AND w.database = (SELECT oid FROM pg_database WHERE datname = current_database()))`;

const WRITERS = statement(
  "signal-horizon-writers",
  `WITH ${SIGNAL_WRITERS} SELECT xid::text::bigint AS xid FROM writer`,
);

/** Everything up to here is final for a statement that begins after this call. */
export async function finalPosition(db: Database): Promise<LogPosition> {
  const [before = [], writers = []] = await db.pipeline([call(BEFORE), call(WRITERS)]);
  const { isolation, version, xmax, xmin } = before[0] as {
    xmin: string;
    xmax: string;
    version: number;
    isolation: string;
  };
  const old = { tx: xmin, id: 0 };
  if (isolation !== "read committed") return old;
  const next = BigInt(xmax);
  let final: LogPosition = { tx: String(next - 1n), id: version };
  for (const { xid } of writers as { xid: number }[]) {
    // The nearest 64-bit id with these lower 32 bits.
    const tx = next - BigInt.asIntN(32, next - BigInt(xid));
    if (tx < next) final = earlier(final, { tx: String(tx), id: 0 });
  }
  return laterPosition(old, final);
}

function earlier(a: LogPosition, b: LogPosition): LogPosition {
  return laterPosition(a, b) === a ? b : a;
}
