/**
 * API tokens, stored as SHA-256 only: 256 random bits need no slow hash. A lookup by hash leaks no useful timing, since
 * a caller without the token cannot control its hash.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";

/** "admin": everything; "worker": only the routes that execute tasks; "metrics": only /metrics. */
export const TOKEN_ROLES = ["admin", "worker", "metrics"] as const;
export type TokenRole = (typeof TOKEN_ROLES)[number];

export interface TokenRow {
  readonly id: number;
  readonly name: string;
  readonly role: TokenRole;
}

/** The visible fields of a token; the token itself is never returned. */
export interface ListedToken extends TokenRow {
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
}

export const TOKEN_ORDER = {
  id: "t.id",
  name: "t.name",
  created_at: "t.created_at",
  expires_at: "t.expires_at",
  last_used_at: "t.last_used_at",
} as const;

/** Registers the token of this installation. Several installations may share a database, so other tokens stay. */
export async function ensureAdminToken(connection: Connection, token: string): Promise<void> {
  await connection.rows(ENSURE_ADMIN, [ADMIN, sha256(token)]);
}

/** The row of a valid token. Updates `last_used_at` at most once a minute. */
export async function findToken(connection: Connection, token: string): Promise<TokenRow | undefined> {
  const hash = sha256(token);
  const row = await connection.one<TokenRow & { sha256: Buffer; stale_use: boolean }>(FIND_TOKEN, [hash]);
  if (row === undefined || !timingSafeEqual(row.sha256, hash)) return undefined;
  if (row.stale_use) await connection.rows(TOUCH_TOKEN, [row.id]);
  return { id: row.id, name: row.name, role: row.role };
}

export function listTokens(connection: Connection, page: Page): Promise<Listed<ListedToken>> {
  return list<ListedToken>(connection, {
    columns: "t.id, t.name, t.role, t.created_at, t.expires_at, t.last_used_at",
    from: "api_token t",
    where: new Conditions().raw(`(${WAS_VALID})`),
    order: TOKEN_ORDER,
    tiebreak: "t.id",
    page,
  });
}

export async function createToken(
  tx: Connection,
  token: {
    readonly name: string;
    readonly token: string;
    readonly role: TokenRole;
    readonly expiresAt: Date | null;
  },
): Promise<ListedToken> {
  const { expiresAt, name, role } = token;
  const row = await tx.one<ListedToken>(INSERT_TOKEN, [name, sha256(token.token), expiresAt, role]);
  return row!;
}

/** The token is invalid from the commit on. Returns its name, or undefined if it does not exist. */
export async function deleteToken(tx: Connection, id: number): Promise<string | undefined> {
  return (await tx.one<{ name: string }>(DELETE_TOKEN, [id]))?.name;
}

/** Rows that expired on creation stand for callers without a token; they are neither listed nor revoked. */
const WAS_VALID = "expires_at IS NULL OR expires_at > created_at";

/** The name of the token of an installation. */
export const ADMIN = "admin";

export function sha256(token: string): Buffer {
  return createHash("sha256").update(token, "utf8").digest();
}

const ENSURE_ADMIN = statement(
  "token-ensure-admin",
  "INSERT INTO api_token (name, sha256) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING",
);

const FIND_TOKEN = statement(
  "token-find",
  `SELECT id, name, role, sha256, (last_used_at IS NULL OR last_used_at < now() - interval '1 minute') AS stale_use
   FROM api_token WHERE sha256 = $1 AND (expires_at IS NULL OR expires_at > now())`,
);

const TOUCH_TOKEN = statement("token-touch", "UPDATE api_token SET last_used_at = now() WHERE id = $1");

const INSERT_TOKEN = statement(
  "token-insert",
  `INSERT INTO api_token (name, sha256, expires_at, role) VALUES ($1, $2, $3, $4)
   RETURNING id, name, role, created_at, expires_at, last_used_at`,
);

const DELETE_TOKEN = statement(
  "token-delete",
  `DELETE FROM api_token WHERE id = $1 AND (${WAS_VALID}) RETURNING name`,
);
