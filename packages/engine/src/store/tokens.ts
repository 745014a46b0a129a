/**
 * API tokens, kept as SHA-256 only: 256 random bits need no slow hash. Looking up by the hash leaks no useful timing,
 * since a caller who does not know the token cannot steer its hash.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

export interface TokenRow {
  readonly id: number;
  readonly name: string;
}

/** Registers an installation's own token. Several installations may share the database, so others are left alone. */
export async function ensureAdminToken(connection: Connection, token: string): Promise<void> {
  await connection.rows(ENSURE_ADMIN, [ADMIN, sha256(token)]);
}

/** The token's row while it is valid; also notes that it was used, at most once a minute. */
export async function findToken(connection: Connection, token: string): Promise<TokenRow | undefined> {
  const hash = sha256(token);
  const row = await connection.one<TokenRow & { sha256: Buffer; stale_use: boolean }>(FIND_TOKEN, [hash]);
  if (row === undefined || !timingSafeEqual(row.sha256, hash)) return undefined;
  if (row.stale_use) await connection.rows(TOUCH_TOKEN, [row.id]);
  return { id: row.id, name: row.name };
}

const ADMIN = "admin";

function sha256(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

const ENSURE_ADMIN = statement(
  "token-ensure-admin",
  "INSERT INTO api_token (name, sha256) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING",
);

const FIND_TOKEN = statement(
  "token-find",
  `SELECT id, name, sha256, (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') AS stale_use
   FROM api_token WHERE sha256 = $1 AND (expires_at IS NULL OR expires_at > now())`,
);

const TOUCH_TOKEN = statement("token-touch", "UPDATE api_token SET last_used_at = now() WHERE id = $1");
