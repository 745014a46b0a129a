/** Listeners and dead letters in the API. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";

export interface ListenerRow {
  readonly name: string;
  readonly filter: Json;
  readonly tx: string;
  readonly signal_id: number;
  readonly is_active: boolean;
  readonly host: string | null;
  readonly processed: number;
  readonly created_at: Date;
  readonly seen_at: Date;
  /** Signals after its position, matching or not; at most 10,000. */
  readonly behind: number;
  readonly retrying: readonly {
    readonly namespace: string;
    readonly key: string;
    readonly version: number;
    readonly attempts: number;
    readonly error: string | null;
    readonly retry_at: string;
  }[];
  readonly dead_letters: number;
}

export interface DeadLetterRow {
  readonly id: number;
  readonly listener: string;
  readonly signal_id: number;
  readonly tx: string;
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  readonly sender: string;
  readonly sent_at: Date;
  readonly error: string;
  readonly attempts: number;
  readonly created_at: Date;
  readonly retry_at: Date | null;
}

export const LISTENER_ORDER = {
  name: "l.name",
  created_at: "l.created_at",
  seen_at: "l.seen_at",
  processed: "l.processed",
} as const;

export const DEAD_LETTER_ORDER = {
  id: "d.id",
  listener: "d.listener",
  created_at: "d.created_at",
} as const;

export function listListeners(connection: Connection, page: Page): Promise<Listed<ListenerRow>> {
  return list<ListenerRow>(connection, {
    columns: `l.name, l.filter, l.tx, l.signal_id, l.host, l.processed, l.created_at, l.seen_at,
      (l.holder IS NOT NULL AND l.lease_until > now()) AS is_active,
      (SELECT count(*) FROM (SELECT FROM signal s WHERE (s.tx, s.id) > (l.tx, l.signal_id)
        AND s.tx < pg_snapshot_xmin(pg_current_snapshot()) LIMIT 10000) AS ahead) AS behind,
      (SELECT count(*) FROM signal_dead_letter d WHERE d.listener = l.name) AS dead_letters,
      coalesce((SELECT json_agg(json_build_object('namespace', r.namespace, 'key', r.key, 'version', r.signal_id,
          'attempts', r.attempts, 'error', r.error, 'retry_at', r.retry_at) ORDER BY r.retry_at)
        FROM (SELECT * FROM signal_retry r WHERE r.listener = l.name ORDER BY r.retry_at LIMIT 100) AS r), '[]') AS retrying`,
    from: "signal_listener l",
    where: new Conditions(),
    order: LISTENER_ORDER,
    tiebreak: "l.name",
    page,
  });
}

/** Deletes an inactive listener with its retries. false: unknown, or active. */
export async function deleteListener(connection: Connection, name: string): Promise<boolean> {
  return (await connection.rows(DELETE_LISTENER, [name])).length > 0;
}

export async function findListener(connection: Connection, name: string): Promise<boolean> {
  return (await connection.one(FIND_LISTENER, [name])) !== undefined;
}

export function listDeadLetters(
  connection: Connection,
  filter: {
    readonly listener?: string | undefined;
    readonly id?: number | undefined;
    readonly isRetried?: boolean | undefined;
  },
  page: Page,
): Promise<Listed<DeadLetterRow>> {
  const where = new Conditions().equals("d.listener", filter.listener).equals("d.id", filter.id);
  if (filter.isRetried !== undefined) where.raw(`d.retry_at IS ${filter.isRetried ? "NOT NULL" : "NULL"}`);
  return list<DeadLetterRow>(connection, {
    columns: `d.id, d.listener, d.signal_id, d.tx, d.namespace, d.key, d.value, d.sender, d.sent_at, d.error,
      d.attempts, d.created_at, d.retry_at`,
    from: "signal_dead_letter d",
    where,
    order: DEAD_LETTER_ORDER,
    tiebreak: "d.id",
    page,
  });
}

/** Its listener retries it once, out of order: later signals of the key have been processed. */
export async function retryDeadLetter(connection: Connection, id: number): Promise<boolean> {
  return (await connection.rows(RETRY_LETTER, [id])).length > 0;
}

export async function deleteDeadLetter(connection: Connection, id: number): Promise<boolean> {
  return (await connection.rows(DELETE_LETTER, [id])).length > 0;
}

/** Dead letters that a user has marked for a retry, oldest first. */
export function readRedeliveries(connection: Connection, listener: string): Promise<DeadLetterRow[]> {
  return connection.rows<DeadLetterRow>(REDELIVERIES, [listener]);
}

const FIND_LISTENER = statement("listener-find", "SELECT name FROM signal_listener WHERE name = $1");

const DELETE_LISTENER = statement(
  "listener-delete",
  `DELETE FROM signal_listener WHERE name = $1 AND (holder IS NULL OR lease_until <= now()) RETURNING name`,
);

const RETRY_LETTER = statement(
  "dead-letter-retry",
  "UPDATE signal_dead_letter SET retry_at = now() WHERE id = $1 RETURNING id",
);

const DELETE_LETTER = statement(
  "dead-letter-delete",
  "DELETE FROM signal_dead_letter WHERE id = $1 RETURNING id",
);

const REDELIVERIES = statement(
  "dead-letter-redeliveries",
  `SELECT id, listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts, created_at, retry_at
   FROM signal_dead_letter WHERE listener = $1 AND retry_at IS NOT NULL ORDER BY id LIMIT 100`,
);
