/**
 * Reading the signal log. No reader goes past pg_snapshot_xmin, the oldest open transaction, so that a late commit is
 * always ahead of all readers. If that holds back signals for long, readers determine a later final position
 * (signals-horizon.ts). Readers at the end of the log use `readLog`; readers that are behind read matching signals only
 * (`readMatching`); a single key can also be read by version (`readKey`).
 *
 * All reads use `pipeline`, whose plans never scan the table, even if they were made while it was small.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ReceivedSignal } from "@tradewind/sdk/program";
import type { SignalFacts } from "../../model/index.ts";
import { senderPlace } from "../../model/signal/sender-name.ts";
import { type Call, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { finalPosition, HELD_MS } from "./signals-horizon.ts";
import { comparePositions, type LogPosition, laterPosition, logEnd, micros } from "./signals-position.ts";

export interface SignalRow {
  readonly id: number;
  readonly tx: string;
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  readonly sender: string;
  /** Microseconds since 1970: a `Date` has milliseconds only, which cannot distinguish two signals. */
  readonly created_micros: number;
}

export function sentAt({ created_micros: micros }: SignalRow): Date {
  return new Date(micros / 1_000);
}

/** A row of the log as conditions are evaluated against it. */
export function signalFacts({ id, key, namespace, sender, value }: SignalRow): SignalFacts {
  return { namespace, key, value, version: id, from: senderPlace(sender) };
}

/** What a statement on `heldEnd` returns with every row. */
export interface LogEndRow {
  readonly end_tx: string;
  readonly end_id: number;
  readonly held: number | null;
}

export function endOf([row]: readonly LogEndRow[]): {
  readonly end: LogPosition;
  readonly held: number | null;
} {
  return { end: { tx: row!.end_tx, id: row!.end_id }, held: row!.held };
}

type PositionSql = readonly [tx: string, id: string];

/**
 * SQL: a source of one row (tx, id, held): the end of the log, and the milliseconds since the oldest signal after it (and after
 * `after`) was sent; null: there is none. OFFSET 0: evaluated once, and not for every signal that is joined to it.
 */
export function heldEnd(bound: PositionSql, after?: PositionSql): string {
  return `(SELECT b.tx, b.id, (
       SELECT (extract(epoch FROM clock_timestamp() - h.created_at) * 1000)::float8 FROM signal h
       WHERE (h.tx, h.id) > (b.tx, b.id) ${after ? `AND (h.tx, h.id) > (${after})` : ""} ORDER BY h.tx, h.id LIMIT 1) AS held
     FROM ${logEnd(...bound)} AS b OFFSET 0)`;
}

/** Reads again with a later bound if open transactions have held back signals for a while. */
export async function readFar<T extends { readonly held: number | null }>(
  db: Database,
  read: (upTo: LogPosition | null) => Promise<T>,
): Promise<T> {
  const found = await read(null);
  return found.held === null || found.held < HELD_MS ? found : await read(await finalPosition(db));
}

/** The filter of a reader, as LIKE patterns. */
export interface LogFilter {
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly sender: string | null;
  readonly afterVersion: number | null;
  readonly since: Date | null;
}

export interface LogEnd {
  readonly rows: SignalRow[];
  /** The end of the range read. */
  readonly position: LogPosition;
  /** The page is full: there may be more. */
  readonly isFull: boolean;
  /** There are signals that cannot be read yet, because an older transaction is still open. */
  readonly isHeld: boolean;
}

/** SQL: the columns of a `SignalRow` of signal `s`. */
export const SIGNAL_COLUMNS = `s.id, s.tx, s.namespace, s.key, s.value, s.sender, ${micros("s.created_at")} AS created_micros`;

/** Index: signal_position. Returns at least one row, for the end of the log. */
const READ_LOG = statement(
  "signal-read-log",
  `SELECT b.tx AS end_tx, b.id AS end_id, b.held, s.*
   FROM ${heldEnd(["$5::xid8", "$6::bigint"], ["$1::xid8", "$2"])} AS b
   LEFT JOIN LATERAL (
     SELECT ${SIGNAL_COLUMNS} FROM signal s
     WHERE (s.tx, s.id) > ($1::xid8, $2) AND (s.tx, s.id) <= (b.tx, b.id)
       AND ($3::text[] IS NULL OR s.namespace = ANY($3))
     ORDER BY s.tx, s.id LIMIT $4
   ) AS s ON true
   ORDER BY s.tx, s.id`,
);

/**
 * Index: signal_position. Limits the signals read, not only those that match: otherwise a reader that is far behind with
 * few matches would run a statement for minutes. The last signal read is returned as a separate row.
 */
const READ_MATCHING = statement(
  "signal-read-matching",
  `WITH seen AS MATERIALIZED (
     SELECT s.id, s.tx, s.namespace, s.key, s.sender, s.created_at FROM signal s
     WHERE (s.tx, s.id) > ($1::xid8, $2) AND (s.tx, s.id) <= ($3::xid8, $4)
     ORDER BY s.tx, s.id LIMIT $5
   ), found AS (
     SELECT m.id, m.tx FROM seen m
     WHERE m.namespace LIKE $7 AND m.key LIKE ANY($8::text[]) AND ($9::text IS NULL OR m.sender = $9)
       AND ($10::bigint IS NULL OR m.id > $10) AND ($11::timestamptz IS NULL OR m.created_at >= $11)
     ORDER BY m.tx, m.id LIMIT $6
   )
   SELECT ${SIGNAL_COLUMNS}, NULL::bigint AS looked FROM found f JOIN signal s ON s.id = f.id
   UNION ALL
   SELECT l.id, l.tx, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM seen)
   FROM (SELECT id, tx FROM seen ORDER BY tx DESC, id DESC LIMIT 1) AS l`,
);

/** Index: signal_pkey. */
const READ_VERSIONS = statement(
  "signal-read-versions",
  `SELECT s.namespace, s.key, s.value, s.id AS version
   FROM unnest($1::bigint[]) WITH ORDINALITY AS u(id, at) JOIN signal s ON s.id = u.id ORDER BY u.at`,
);

/** PostgreSQL stores values up to this size in the row, uncompressed. */
const SMALL_BYTES = 1_900;

/** Does not load values outside the row or compressed ones: they are read when a task process needs them. */
const READ_SMALL = statement(
  "signal-read-small",
  `SELECT s.namespace, s.key, s.value, s.id AS version FROM unnest($1::bigint[]) AS u(id) JOIN signal s ON s.id = u.id
   WHERE s.value IS NULL OR (pg_column_size(s.value) <= ${SMALL_BYTES} AND pg_column_compression(s.value) IS NULL)`,
);

/** Index: signal_key. */
const READ_KEY = statement(
  "signal-read-key",
  `SELECT ${SIGNAL_COLUMNS} FROM signal s
   WHERE s.namespace = $1 AND s.namespace NOT IN ('task', 'run') AND s.key = $2 AND s.id >= $3
     AND (s.tx, s.id) <= ($4::xid8, $5) AND ($6::text IS NULL OR s.sender = $6)
   ORDER BY s.id LIMIT $7`,
);

/** Index: signal_pkey. Signals of the engine are not indexed by key. */
const READ_SYSTEM_KEY = statement(
  "signal-read-system-key",
  `SELECT ${SIGNAL_COLUMNS} FROM signal s
   WHERE s.namespace = $1 AND s.key = $2 AND s.id >= $3
     AND (s.tx, s.id) <= ($4::xid8, $5) AND ($6::text IS NULL OR s.sender = $6)
   ORDER BY s.id LIMIT $7`,
);

/** Index: signal_key. */
const LATEST = statement(
  "signal-latest",
  `SELECT l.* FROM unnest($2::text[]) AS k(key)
   JOIN LATERAL (
     SELECT ${SIGNAL_COLUMNS} FROM signal s
     WHERE s.namespace = $1 AND s.namespace NOT IN ('task', 'run') AND s.key = k.key
     ORDER BY s.id DESC LIMIT 1
   ) AS l ON true`,
);

/** The signals after a position, in these namespaces (null: all). */
export async function readLog(
  db: Database,
  query: {
    readonly after: LogPosition;
    readonly namespaces: readonly string[] | null;
    readonly limit: number;
  },
): Promise<LogEnd> {
  const { after, limit, namespaces } = query;
  const read = async (upTo: LogPosition | null) => {
    const [found] = await db.pipeline([
      call(READ_LOG, after.tx, after.id, namespaces, limit, upTo?.tx ?? null, upTo?.id ?? null),
    ]);
    const all = found as (SignalRow & LogEndRow)[];
    const rows = all.filter((row) => row.id !== null);
    return { rows, ...endOf(all) };
  };
  const { end, held, rows } = await readFar(db, read);
  const isFull = rows.length === limit;
  const last = rows.at(-1);
  const position = isFull && last !== undefined ? { tx: last.tx, id: last.id } : laterPosition(after, end);
  return { rows, position, isFull, isHeld: held !== null };
}

const LOOKED_AT = 20_000;

/** The matching signals between two positions; `position`: the end of the range read. */
export async function readMatching(
  db: Database,
  query: {
    readonly after: LogPosition;
    readonly upTo: LogPosition;
    readonly filter: LogFilter;
    readonly limit: number;
  },
): Promise<{ rows: SignalRow[]; position: LogPosition }> {
  const { after, filter, limit, upTo } = query;
  const [found] = await db.pipeline([
    call(
      READ_MATCHING,
      after.tx,
      after.id,
      upTo.tx,
      upTo.id,
      LOOKED_AT,
      limit,
      filter.namespace,
      filter.keys,
      filter.sender,
      filter.afterVersion,
      filter.since,
    ),
  ]);
  const all = found as (SignalRow & { looked: number | null })[];
  const end = all.find(({ looked }) => looked !== null);
  const rows = all.filter(({ looked }) => looked === null).sort(comparePositions);
  const last = rows.at(-1);
  if (rows.length === limit && last !== undefined) return { rows, position: { tx: last.tx, id: last.id } };
  if (end === undefined || end.looked! < LOOKED_AT) return { rows, position: upTo };
  return { rows, position: { tx: end.tx, id: end.id } };
}

/** The signals of one key from a version on, up to a reader's position. */
export async function readKey(
  db: Database,
  query: {
    readonly namespace: string;
    readonly key: string;
    readonly from: number;
    readonly upTo: LogPosition;
    readonly sender: string | null;
    readonly limit: number;
  },
): Promise<SignalRow[]> {
  const { from, key, limit, namespace, sender, upTo } = query;
  const read = SYSTEM.has(namespace) ? READ_SYSTEM_KEY : READ_KEY;
  const [rows] = await db.pipeline([call(read, namespace, key, from, upTo.tx, upTo.id, sender, limit)]);
  return rows as SignalRow[];
}

/** The newest signal of each of these keys that has one. Not for signals of the engine: they have no latest. */
export async function latestSignals(
  db: Database,
  namespace: string,
  keys: readonly string[],
): Promise<SignalRow[]> {
  const [rows] = await db.pipeline([call(LATEST, namespace, keys)]);
  return rows as SignalRow[];
}

const SYSTEM: ReadonlySet<string> = new Set(["task", "run"]);

/** These signals in any order, without deleted ones and large ones. */
export function smallSignalsCall(versions: readonly number[]): Call {
  return call(READ_SMALL, versions);
}

/** These signals in this order, without deleted ones. */
export async function signalsByVersion(db: Database, versions: readonly number[]): Promise<ReceivedSignal[]> {
  const [rows = []] = await db.pipeline([call(READ_VERSIONS, versions)]);
  return rows as ReceivedSignal[];
}
