/**
 * Listeners: the position of each, the process that holds its name, and the keys it has to retry.
 *
 * One process holds a name at a time, while its lease is valid by the database's clock. Each claim creates a new token,
 * and every write requires it. A process that lost its lease finds another token, and its transaction is rolled back with
 * its effect: the position moves in the transaction of the effect, or not at all.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { EngineError } from "../../service/errors.ts";
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { LogPosition, LogStart } from "./signals-position.ts";

export interface ListenerClaim {
  readonly name: string;
  /** The token. */
  readonly holder: string;
}

export interface ClaimedListener {
  readonly start: LogStart;
  readonly retries: readonly RetryEntry[];
  readonly hasRedeliveries: boolean;
}

/** The signals of this key from `version` on are retried at `retryAt`. */
export interface RetryEntry {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
  readonly attempts: number;
  readonly error: string | null;
  /** Milliseconds from now. */
  readonly inMs: number;
}

/** A dead letter; its content is copied from the log. */
export interface DeadLetterDraft {
  readonly version: number;
  readonly error: string;
  readonly attempts: number;
}

/** The changes of a listener, stored together. */
export interface ListenerChange {
  readonly position?: LogPosition | undefined;
  /** Number of processed signals. */
  readonly processed?: number | undefined;
  readonly park?: readonly RetryEntry[] | undefined;
  readonly unpark?: readonly { readonly namespace: string; readonly key: string }[] | undefined;
  readonly deadLetters?: readonly DeadLetterDraft[] | undefined;
  /** The result of a retried dead letter. `error` null: it is deleted. */
  readonly redelivered?: { readonly id: number; readonly error: string | null } | undefined;
}

/** An existing listener keeps its position; only a new one begins at the given start. */
const CLAIM = statement(
  "listener-claim",
  `UPDATE signal_listener
   SET holder = $2, host = $3, filter = $4, seen_at = now(), lease_until = now() + $5 * interval '1 millisecond'
   WHERE name = $1 AND (holder IS NULL OR lease_until <= now())
   RETURNING tx, signal_id, after_version, since,
     EXISTS (SELECT 1 FROM signal_dead_letter d WHERE d.listener = $1 AND d.retry_at IS NOT NULL) AS redeliveries`,
);

const IS_THERE = statement("listener-is-there", "SELECT 1 AS found FROM signal_listener WHERE name = $1");

const CREATE = statement(
  "listener-create",
  `INSERT INTO signal_listener (name, holder, host, filter, lease_until, tx, signal_id, after_version, since)
   VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond', $6, $7, $8, $9)
   ON CONFLICT (name) DO NOTHING RETURNING name`,
);

const RETRIES = statement(
  "listener-retries",
  `SELECT namespace, key, signal_id, attempts, error,
          greatest(0, extract(epoch FROM retry_at - now()) * 1000)::float8 AS in_ms
   FROM signal_retry WHERE listener = $1`,
);

/** Without a position it only extends the lease. */
const ADVANCE = statement(
  "listener-advance",
  `UPDATE signal_listener
   SET tx = coalesce($3::xid8, tx), signal_id = coalesce($4, signal_id), processed = processed + $5,
       updated_at = now(), seen_at = now(), lease_until = now() + $6 * interval '1 millisecond'
   WHERE name = $1 AND holder = $2
   RETURNING EXISTS (SELECT 1 FROM signal_dead_letter d WHERE d.listener = $1 AND d.retry_at IS NOT NULL) AS redeliveries`,
);

const NOT_TO_DISK = statement("listener-not-to-disk", "SELECT set_config('synchronous_commit', 'off', true)");

const PARK = statement(
  "listener-park",
  `INSERT INTO signal_retry (listener, namespace, key, signal_id, attempts, error, retry_at)
   SELECT $1, r.namespace, r.key, r.version, r.attempts, r.error, now() + r.in_ms * interval '1 millisecond'
   FROM unnest($2::text[], $3::text[], $4::bigint[], $5::int[], $6::text[], $7::float8[])
     AS r(namespace, key, version, attempts, error, in_ms)
   ON CONFLICT (listener, namespace, key)
   DO UPDATE SET signal_id = excluded.signal_id, attempts = excluded.attempts, error = excluded.error,
                 retry_at = excluded.retry_at`,
);

const UNPARK = statement(
  "listener-unpark",
  `DELETE FROM signal_retry r USING unnest($2::text[], $3::text[]) AS k(namespace, key)
   WHERE r.listener = $1 AND r.namespace = k.namespace AND r.key = k.key`,
);

const BURY = statement(
  "listener-bury",
  `INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts)
   SELECT $1, s.id, s.tx, s.namespace, s.key, s.value, s.sender, s.created_at, g.error, g.attempts
   FROM unnest($2::bigint[], $3::text[], $4::int[]) AS g(id, error, attempts) JOIN signal s ON s.id = g.id
   ON CONFLICT (listener, signal_id) DO UPDATE SET error = excluded.error, attempts = excluded.attempts`,
);

const REDELIVERED = statement(
  "listener-redelivered",
  "DELETE FROM signal_dead_letter WHERE id = $2 AND listener = $1",
);

const REFUSED_AGAIN = statement(
  "listener-refused-again",
  `UPDATE signal_dead_letter SET retry_at = NULL, attempts = attempts + 1, error = $3
   WHERE id = $2 AND listener = $1`,
);

const RELEASE = statement(
  "listener-release",
  "UPDATE signal_listener SET holder = NULL, lease_until = NULL WHERE name = $1 AND holder = $2",
);

/** null: another process holds this name. `start` is called for a new listener. */
export async function claimListener(
  db: Connection,
  claim: ListenerClaim & { readonly host: string; readonly filter: Json; readonly ttlMs: number },
  start: () => Promise<LogStart>,
): Promise<ClaimedListener | null> {
  const { filter, holder, host, name, ttlMs } = claim;
  const values = [name, holder, host, JSON.stringify(filter), ttlMs];
  const row = await db.one<{
    tx: string;
    signal_id: number;
    after_version: number | null;
    since: Date | null;
    redeliveries: boolean;
  }>(CLAIM, values);
  if (row === undefined) {
    if ((await db.one(IS_THERE, [name])) !== undefined) return null;
    const first = await start();
    const { afterVersion, position, since } = first;
    const made = await db.one(CREATE, [...values, position.tx, position.id, afterVersion, since]);
    return made === undefined ? null : { start: first, retries: [], hasRedeliveries: false };
  }
  const retries = await db.rows<{
    namespace: string;
    key: string;
    signal_id: number;
    attempts: number;
    error: string | null;
    in_ms: number;
  }>(RETRIES, [name]);
  return {
    start: {
      position: { tx: row.tx, id: row.signal_id },
      afterVersion: row.after_version,
      since: row.since,
    },
    retries: retries.map(({ in_ms, signal_id, ...rest }) => ({ ...rest, version: signal_id, inMs: in_ms })),
    hasRedeliveries: row.redeliveries,
  };
}

/**
 * Stores the changes of a listener and extends its lease. Call it last in the transaction of the effect: a transaction
 * that has written blocks all readers of the log. Throws SIGNAL_LISTENER_LOST: the transaction must not be committed.
 */
export async function commitListener(
  tx: Connection,
  claim: ListenerClaim & { readonly ttlMs: number },
  change: ListenerChange,
): Promise<{ hasRedeliveries: boolean }> {
  const { holder, name, ttlMs } = claim;
  const { deadLetters = [], park = [], position, processed = 0, redelivered, unpark = [] } = change;
  if (park.length > 0) {
    await tx.rows(PARK, [
      name,
      park.map((each) => each.namespace),
      park.map((each) => each.key),
      park.map((each) => each.version),
      park.map((each) => each.attempts),
      park.map((each) => each.error),
      park.map((each) => each.inMs),
    ]);
  }
  if (unpark.length > 0)
    await tx.rows(UNPARK, [name, unpark.map((each) => each.namespace), unpark.map((each) => each.key)]);
  if (deadLetters.length > 0) {
    await tx.rows(BURY, [
      name,
      deadLetters.map((each) => each.version),
      deadLetters.map((each) => each.error),
      deadLetters.map((each) => each.attempts),
    ]);
  }
  if (redelivered?.error === null) await tx.rows(REDELIVERED, [name, redelivered.id]);
  else if (redelivered) await tx.rows(REFUSED_AGAIN, [name, redelivered.id, redelivered.error]);
  const row = await tx.one<{ redeliveries: boolean }>(ADVANCE, [
    name,
    holder,
    position?.tx ?? null,
    position?.id ?? null,
    processed,
    ttlMs,
  ]);
  return requireHeld(row, name);
}

function requireHeld(row: { redeliveries: boolean } | undefined, name: string): { hasRedeliveries: boolean } {
  if (row !== undefined) return { hasRedeliveries: row.redeliveries };
  throw new EngineError(
    "SIGNAL_LISTENER_LOST",
    `Another process holds the listener "${name}", or it was deleted: the work since then is rolled back.`,
  );
}

/**
 * Extends the lease and advances the position past signals without effect. Losing this in a crash of the server is
 * harmless, so it does not wait for the disk.
 */
export async function renewListener(
  db: Database,
  { holder, name, ttlMs }: ListenerClaim & { readonly ttlMs: number },
  position: LogPosition | null,
): Promise<{ hasRedeliveries: boolean }> {
  const [, rows] = await db.pipeline([
    call(NOT_TO_DISK),
    call(ADVANCE, name, holder, position?.tx ?? null, position?.id ?? null, 0, ttlMs),
  ]);
  return requireHeld((rows as { redeliveries: boolean }[])[0], name);
}

export async function releaseListener(db: Connection, { holder, name }: ListenerClaim): Promise<void> {
  await db.rows(RELEASE, [name, holder]);
}
