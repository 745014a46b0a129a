/**
 * Responses stored under the caller's Idempotency-Key, in the transaction of the effect. A crash before the commit
 * leaves neither, a crash after it leaves both, and a retry gets the stored response. "In flight" is therefore not a
 * stored state but an advisory lock, held until that transaction ends.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export type KeyState =
  | { readonly kind: "free" }
  | { readonly kind: "in_flight" }
  | {
      readonly kind: "answered";
      readonly requestHash: Buffer;
      readonly status: number;
      readonly sealedBody: string;
    };

/** Locks the key until the transaction ends. Returns whether the key was used within the last day. */
export async function claimKey(tx: Connection, tokenId: number, key: string): Promise<KeyState> {
  const lock = await tx.one<{ locked: boolean }>(LOCK_KEY, [`${tokenId}/${key}`]);
  if (lock?.locked !== true) return { kind: "in_flight" };
  // A separate statement: it must see the commit of the previous lock holder.
  const row = await tx.one<{ request_hash: Buffer; status: number; body: string }>(FIND_KEY, [tokenId, key]);
  if (row === undefined) return { kind: "free" };
  return { kind: "answered", requestHash: row.request_hash, status: row.status, sealedBody: row.body };
}

export interface KeptAnswer {
  readonly tokenId: number;
  readonly key: string;
  readonly requestHash: Buffer;
  readonly status: number;
  readonly sealedBody: string;
}

export async function keepAnswer(tx: Connection, answer: KeptAnswer): Promise<void> {
  await tx.rows(KEEP_ANSWER, [
    answer.key,
    answer.tokenId,
    answer.requestHash,
    answer.status,
    JSON.stringify(answer.sealedBody),
  ]);
}

/** Deletes keys older than a day. */
export async function purgeKeys(connection: Connection): Promise<void> {
  await connection.rows(PURGE_KEYS, []);
}

const LOCK_KEY = statement(
  "idempotency-lock",
  "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 7)) AS locked",
);

const FIND_KEY = statement(
  "idempotency-find",
  `SELECT request_hash, status, body FROM idempotency_key
   WHERE token_id = $1 AND key = $2 AND created_at > now() - interval '1 day'`,
);

const KEEP_ANSWER = statement(
  "idempotency-keep",
  `INSERT INTO idempotency_key (key, token_id, request_hash, status, body) VALUES ($1, $2, $3, $4, $5)
   ON CONFLICT (token_id, key) DO UPDATE SET request_hash = $3, status = $4, body = $5, created_at = now()`,
);

const PURGE_KEYS = statement(
  "idempotency-purge",
  "DELETE FROM idempotency_key WHERE created_at < now() - interval '1 day'",
);
