/**
 * Positions in the signal log. A position (tx, id) stands for everything up to and including that signal; its id may be
 * 0: "all transactions before tx". Transaction ids have 64 bits and stay text.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LogPosition {
  readonly tx: string;
  readonly id: number;
}

/** Where to begin reading, and which later signals to exclude. */
export interface LogStart {
  readonly position: LogPosition;
  readonly afterVersion: number | null;
  readonly since: Date | null;
}

export const LOG_BEGIN: LogPosition = { tx: "0", id: 0 };

/** SQL: microseconds since 1970, which a float8 holds exactly. */
export function micros(column: string): string {
  return `(date_part('epoch', ${column}) * 1000000)::bigint`;
}

export function comparePositions(a: LogPosition, b: LogPosition): number {
  if (a.tx === b.tx) return a.id - b.id;
  return a.tx.length === b.tx.length ? (a.tx < b.tx ? -1 : 1) : a.tx.length - b.tx.length;
}

export function laterPosition(a: LogPosition, b: LogPosition): LogPosition {
  return comparePositions(a, b) < 0 ? b : a;
}

/**
 * SQL: a source of one row (tx, id), the last visible signal up to the given bound, by default up to the oldest open
 * transaction (pg_snapshot_xmin). (0, 0) if there is none. Index: signal_position.
 *
 * The bound itself is not a safe position for a process that outlives a crash of PostgreSQL: transactions that were rolled
 * back or did not wait for the disk may be missing after recovery, and their ids are assigned again. New signals would
 * then appear behind the position. A visible signal is on disk, and so is the end of every transaction that its `tx`
 * counts as completed, so that all ids assigned after a crash are greater.
 */
export function logEnd(tx = "NULL::xid8", id = "NULL::bigint"): string {
  return `(SELECT coalesce(l.tx, '0') AS tx, coalesce(l.id, 0) AS id FROM (SELECT) AS one LEFT JOIN LATERAL (
     SELECT e.tx, e.id FROM signal e
     WHERE (e.tx, e.id) <= (coalesce(${tx}, pg_snapshot_xmin(pg_current_snapshot())), coalesce(${id}, 0))
     ORDER BY e.tx DESC, e.id DESC LIMIT 1) AS l ON true)`;
}

/**
 * After all signals sent so far. Signals of transactions that are open now may still appear; they are excluded by version
 * only, which may be lower than the last visible one. Such a signal was also sent before.
 */
const NOW = statement(
  "signal-start-now",
  `SELECT b.tx, b.id, coalesce((SELECT id FROM signal ORDER BY id DESC LIMIT 1), 0) AS version FROM ${logEnd()} AS b`,
);

/**
 * Open transactions may hold later versions at an earlier position than any visible one. OFFSET 0: the versions are found
 * by their own index instead of a scan of the log.
 */
const AFTER_VERSION = statement(
  "signal-start-version",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE id > $1 OFFSET 0) AS later),
     (SELECT b.tx FROM ${logEnd()} AS b)) AS tx`,
);

/** Index: signal_created. The time of a signal is the start of its transaction. */
const SINCE = statement(
  "signal-start-time",
  `SELECT least(
     (SELECT min(tx) FROM (SELECT tx FROM signal WHERE created_at >= $1 OFFSET 0) AS later),
     (SELECT b.tx FROM ${logEnd()} AS b)) AS tx`,
);

export async function startNow(db: Connection): Promise<LogStart> {
  const row = await db.one<LogPosition & { version: number }>(NOW);
  const { id, tx, version } = row!;
  return { position: { tx, id }, afterVersion: version, since: null };
}

export async function startAfterVersion(db: Connection, version: number): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(AFTER_VERSION, [version]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: version, since: null };
}

export async function startSince(db: Connection, since: Date): Promise<LogStart> {
  const row = await db.one<{ tx: string }>(SINCE, [since]);
  return { position: { tx: row!.tx, id: 0 }, afterVersion: null, since };
}
