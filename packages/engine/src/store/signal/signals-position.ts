/**
 * Places in the signal log. A position (tx, id) stands for everything up to and including that signal; its id may be 0,
 * "all transactions before tx". Transaction ids have 64 bits and stay text.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LogPosition {
  readonly tx: string;
  readonly id: number;
}

/** Where to begin reading, and what to leave out although it comes after that. */
export interface LogStart {
  readonly position: LogPosition;
  readonly afterVersion: number | null;
  readonly since: Date | null;
}

export const LOG_BEGIN: LogPosition = { tx: "0", id: 0 };

/** A moment in microseconds since 1970, as SQL: a `Date` has milliseconds only, which do not tell two signals apart. */
export function micros(column: string): string {
  return `(extract(epoch FROM ${column}) * 1000000)::bigint`;
}

export function comparePositions(a: LogPosition, b: LogPosition): number {
  if (a.tx === b.tx) return a.id - b.id;
  return a.tx.length === b.tx.length ? (a.tx < b.tx ? -1 : 1) : a.tx.length - b.tx.length;
}

export function laterPosition(a: LogPosition, b: LogPosition): LogPosition {
  return comparePositions(a, b) < 0 ? b : a;
}

/**
 * After everything sent so far. What is open at this moment may still come, and that is told by its version only: it
 * may have been given a lower one than the last that can be seen. Such a signal was sent before, too.
 */
const NOW = statement(
  "signal-start-now",
  `SELECT pg_snapshot_xmin(pg_current_snapshot()) AS tx,
          coalesce((SELECT id FROM signal ORDER BY id DESC LIMIT 1), 0) AS version`,
);

/**
 * Transactions that are open may hold later versions under an earlier position than any that can be seen. OFFSET 0:
 * the versions are found by their own index, not one by one along the whole log.
 */
const AFTER_VERSION = statement(
  "signal-start-version",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE id > $1 OFFSET 0) AS later),
     pg_snapshot_xmin(pg_current_snapshot())) AS tx`,
);

/** Index: signal_created. A signal's time is that at which its transaction began. */
const SINCE = statement(
  "signal-start-time",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE created_at >= $1 OFFSET 0) AS later),
     pg_snapshot_xmin(pg_current_snapshot())) AS tx`,
);

export async function startNow(db: Connection): Promise<LogStart> {
  const row = await db.one<{ tx: string; version: number }>(NOW);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: row!.version, since: null };
}

export async function startAfterVersion(db: Connection, version: number): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(AFTER_VERSION, [version]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: version, since: null };
}

export async function startSince(db: Connection, since: Date): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(SINCE, [since]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: null, since };
}
