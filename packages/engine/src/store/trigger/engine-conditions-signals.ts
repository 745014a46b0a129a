/**
 * Reads of the signal log for waits. Signals of one exact key are read by version: their writers are serialized, so that
 * no lower version appears later. All other signals are read by position, up to the oldest open transaction.
 */
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { LogPosition } from "../signal/signals-position.ts";
import {
  endOf,
  heldEnd,
  type LogEndRow,
  readFar,
  SIGNAL_COLUMNS,
  type SignalRow,
} from "../signal/signals-read.ts";

export interface SignalKey {
  readonly namespace: string;
  readonly key: string;
}

/**
 * Index: signal_key. Walks back from the newest signal, over about the rows that are read next. The time of a signal is
 * the start of its transaction, so signals of one key may be slightly out of order: five minutes is longer than any of
 * our transactions.
 */
const STARTS = statement(
  "engine-signal-starts",
  `SELECT u.at, coalesce((
     SELECT s.id FROM signal s
     WHERE s.namespace = u.namespace AND s.namespace NOT IN ('task', 'run') AND s.key = u.key
       AND s.created_at < u.since - interval '5 minutes'
     ORDER BY s.id DESC LIMIT 1), 0) AS version
   FROM unnest($1::int[], $2::text[], $3::text[], $4::timestamptz[]) AS u(at, namespace, key, since)`,
);

/** Index: signal_key. */
const READ_KEYS = statement(
  "engine-read-keys",
  `SELECT u.at, s.* FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[]) AS u(at, namespace, key, after)
   CROSS JOIN LATERAL (
     SELECT ${SIGNAL_COLUMNS} FROM signal s
     WHERE s.namespace = u.namespace AND s.namespace NOT IN ('task', 'run') AND s.key = u.key AND s.id > u.after
     ORDER BY s.id LIMIT $5) AS s
   ORDER BY u.at, s.id`,
);

/** Index: signal_pkey. */
const PLACES = statement(
  "engine-signal-places",
  "SELECT s.id, s.tx FROM unnest($1::bigint[]) AS u(id) JOIN signal s ON s.id = u.id",
);

/** Index: signal_position. */
const HEAD = statement(
  "engine-signal-head",
  `SELECT b.tx AS end_tx, b.id AS end_id, b.held
   FROM ${heldEnd(["$1::xid8", "$2::bigint"])} AS b`,
);

/** For each key a version below all its signals since the given time. */
export async function versionsBefore(
  db: Database,
  asked: readonly (SignalKey & { readonly since: Date })[],
): Promise<number[]> {
  if (asked.length === 0) return [];
  const since = asked.map((each) => each.since);
  const [rows = []] = await db.pipeline([call(STARTS, ...keyColumns(asked), since)]);
  const versions = new Array<number>(asked.length).fill(0);
  for (const { at, version } of rows as { at: number; version: number }[]) versions[at] = version;
  return versions;
}

/** For each key the signals after a version, at most `limit`. */
export async function readKeys(
  db: Database,
  asked: readonly (SignalKey & { readonly after: number })[],
  limit: number,
): Promise<SignalRow[][]> {
  const found: SignalRow[][] = asked.map(() => []);
  if (asked.length === 0) return found;
  const after = asked.map((each) => each.after);
  const [rows = []] = await db.pipeline([call(READ_KEYS, ...keyColumns(asked), after, limit)]);
  for (const row of rows as (SignalRow & { at: number })[]) found[row.at]?.push(row);
  return found;
}

/** The positions of signals in the log; deleted ones are missing. */
export async function positionsOf(
  db: Connection,
  versions: readonly number[],
): Promise<Map<number, LogPosition>> {
  if (versions.length === 0) return new Map();
  const rows = await db.rows<LogPosition>(PLACES, [versions]);
  return new Map(rows.map(({ id, tx }) => [id, { tx, id }]));
}

/** The end of the readable log. `isHeld`: there are more signals, held back by an older open transaction. */
export async function logHead(db: Database): Promise<{ position: LogPosition; isHeld: boolean }> {
  const { end, held } = await readFar(db, async (upTo) => {
    const [rows = []] = await db.pipeline([call(HEAD, upTo?.tx ?? null, upTo?.id ?? null)]);
    return endOf(rows as LogEndRow[]);
  });
  return { position: end, isHeld: held !== null };
}

function keyColumns(asked: readonly SignalKey[]): unknown[] {
  return [asked.map((_, at) => at), asked.map((each) => each.namespace), asked.map((each) => each.key)];
}
