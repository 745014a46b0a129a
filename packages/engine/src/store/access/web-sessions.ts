/**
 * Browsers that are signed in, and the codes of links that sign one in. Both are 256 random bits, stored as SHA-256 only, and
 * act for a token: they end when it is deleted or expires. Worker tokens have neither.
 *
 * A session ends when it was not used for a week, and a month after the sign-in at the latest.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { sha256, type TokenRow } from "./tokens.ts";

/** The latest end of a session. */
export const SESSION_SECONDS = 30 * 86_400;

export interface SessionRow extends TokenRow {
  readonly created_at: Date;
  /** Unless it is used before. */
  readonly expires_at: Date;
}

/** The session of a secret with its token. Extends it at most once a minute. */
export async function findSession(connection: Connection, secret: string): Promise<SessionRow | undefined> {
  const hash = sha256(secret);
  const row = await connection.one<SessionRow & { stale_use: boolean }>(FIND_SESSION, [hash]);
  if (row === undefined) return undefined;
  const { stale_use: isStale, ...session } = row;
  if (isStale) await connection.rows(TOUCH_SESSION, [hash]);
  return session;
}

/** True for a valid API token and for the secret of a session. */
export async function isValidCredential(connection: Connection, secret: string): Promise<boolean> {
  return (await connection.one(FIND_CREDENTIAL, [sha256(secret)])) !== undefined;
}

/** undefined: the token is deleted, has expired, or is a worker's. */
export function createSession(
  tx: Connection,
  { secret, tokenId }: { readonly secret: string; readonly tokenId: number },
): Promise<TokenRow | undefined> {
  return tx.one<TokenRow>(CREATE_SESSION, [tokenId, sha256(secret)]);
}

/** The token of a code, which is used up. Of two at once, the row lock decides. */
export async function useSignInCode(tx: Connection, code: string): Promise<number | undefined> {
  return (await tx.one<{ token_id: number }>(USE_CODE, [sha256(code)]))?.token_id;
}

/** false: it has ended already. */
export async function deleteSession(tx: Connection, secret: string): Promise<boolean> {
  return (await tx.rows(DELETE_SESSION, [sha256(secret)])).length > 0;
}

/** Returns when the code expires; undefined: the token was deleted. */
export async function createSignInCode(
  tx: Connection,
  { code, tokenId }: { readonly code: string; readonly tokenId: number },
): Promise<Date | undefined> {
  return (await tx.one<{ expires_at: Date }>(CREATE_CODE, [sha256(code), tokenId]))?.expires_at;
}

const IS_VALID = "(t.expires_at IS NULL OR t.expires_at > now())";

/** SQL for a session `s`: its end if it is used now. */
const EXTENDED = `least(s.created_at + make_interval(secs => ${SESSION_SECONDS}), now() + interval '7 days')`;

const FIND_SESSION = statement(
  "web-session-find",
  `SELECT t.id, t.name, t.role, s.created_at, least(s.expires_at, t.expires_at) AS expires_at,
          s.last_used_at < now() - interval '1 minute' AS stale_use
   FROM web_session s JOIN api_token t ON t.id = s.token_id
   WHERE s.sha256 = $1 AND s.expires_at > now() AND ${IS_VALID}`,
);

const TOUCH_SESSION = statement(
  "web-session-touch",
  `WITH session AS (
     UPDATE web_session s SET last_used_at = now(), expires_at = ${EXTENDED} WHERE s.sha256 = $1 RETURNING s.token_id)
   UPDATE api_token t SET last_used_at = now() FROM session WHERE t.id = session.token_id`,
);

const FIND_CREDENTIAL = statement(
  "credential-find",
  `SELECT 1 FROM api_token t WHERE t.sha256 = $1 AND ${IS_VALID}
   UNION ALL SELECT 1 FROM web_session s JOIN api_token t ON t.id = s.token_id
   WHERE s.sha256 = $1 AND s.expires_at > now() AND ${IS_VALID}`,
);

/** The lock keeps the token until the session is stored: a deletion comes before, or deletes the session, too. */
const CREATE_SESSION = statement(
  "web-session-create",
  `WITH token AS MATERIALIZED (
     SELECT t.id, t.name, t.role FROM api_token t
     WHERE t.id = $1 AND t.role <> 'worker' AND ${IS_VALID} FOR KEY SHARE),
   inserted AS (
     INSERT INTO web_session (sha256, token_id, expires_at)
     SELECT $2, token.id, now() + interval '7 days' FROM token)
   SELECT id, name, role FROM token`,
);

const DELETE_SESSION = statement(
  "web-session-delete",
  "DELETE FROM web_session WHERE sha256 = $1 RETURNING token_id",
);

const CREATE_CODE = statement(
  "sign-in-code-create",
  `WITH token AS MATERIALIZED (SELECT t.id FROM api_token t WHERE t.id = $2 FOR KEY SHARE)
   INSERT INTO sign_in_code (sha256, token_id, expires_at)
   SELECT $1, token.id, now() + interval '10 minutes' FROM token RETURNING expires_at`,
);

const USE_CODE = statement(
  "sign-in-code-use",
  "DELETE FROM sign_in_code WHERE sha256 = $1 AND expires_at > now() RETURNING token_id",
);
