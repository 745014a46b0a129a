/**
 * The first connection of a command to DATABASE_URL. The error describes the problem of the address, without the
 * password. Services wait for a database that does not respond yet; other commands fail immediately.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { EngineError } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { isTransient, sqlState } from "./connection-error.ts";
import { clientConfig, Database, type DatabaseOptions } from "./database.ts";

type ReachOptions = DatabaseOptions & { readonly applicationName: string };

/** A service waits for its database at start, as it does during a later outage. */
export interface DatabaseWait {
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

const RETRY_MS = 1_000;

/**
 * @param wait Without it, an unreachable database is an immediate error. With it, the function retries until the database
 * responds; only a permanent problem (wrong password, unknown database) is an error.
 */
export async function reachDatabase(
  url: string,
  options: ReachOptions,
  wait?: DatabaseWait,
): Promise<Database> {
  let said: string | null = null;
  for (;;) {
    wait?.signal?.throwIfAborted();
    const error = await tryToReach(url, options);
    if (error === null) break;
    if (!wait || !isTransient(error.cause)) throw error;
    if (error.message !== said) wait.logger.warn("waiting for the database", { error: error.message });
    said = error.message;
    // An abort ends the pause; the next iteration throws its reason.
    await sleep(RETRY_MS, undefined, { signal: wait.signal }).catch(() => {});
  }
  if (said !== null) wait?.logger.info("connected to the database");
  return Database.connect(url, options);
}

async function tryToReach(url: string, options: ReachOptions): Promise<EngineError | null> {
  let client: pg.Client | undefined;
  try {
    client = new pg.Client(clientConfig(url, options.applicationName));
    // Errors after the connection was made reach the user of the next connection.
    client.on("error", () => {});
    await client.connect();
    return tooOld(url, await serverVersion(client));
  } catch (cause) {
    return unreached(url, cause);
  } finally {
    // Also after a failed attempt: the driver may have left the server waiting for a password.
    await client?.end().catch(() => {});
  }
}

/** The oldest PostgreSQL that passes the fault suite. */
const OLDEST_MAJOR = 15;

async function serverVersion(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ server_version: string }>("SHOW server_version");
  return rows[0]?.server_version ?? "";
}

/** @param version As the server reports it, e.g. "14.11 (Debian 14.11-1)". */
function tooOld(url: string, version: string): EngineError | null {
  if (Number.parseInt(version, 10) >= OLDEST_MAJOR) return null;
  return new EngineError(
    "DATABASE_TOO_OLD",
    `${nameOf(url)} is PostgreSQL ${version}; Tradewind needs PostgreSQL ${OLDEST_MAJOR} or newer. Upgrade the server, or set DATABASE_URL to a newer one.`,
    { details: { version, oldest: OLDEST_MAJOR } },
  );
}

function unreached(url: string, cause: unknown): EngineError {
  const isRefusal = sqlState(cause) !== null || NO_PASSWORD.test(wordsOf(cause));
  const [code, how] = isRefusal
    ? ["DATABASE_REFUSED", "rejected the connection"]
    : ["DATABASE_UNREACHABLE", "cannot be reached"];
  const usual = isRefusal ? "Correct DATABASE_URL." : "Correct DATABASE_URL, or start PostgreSQL there.";
  const remedy = REMEDIES[codeOf(cause)] ?? usual;
  return new EngineError(code, `${nameOf(url)} ${how}: ${reasonOf(cause)}. ${remedy}`, { cause });
}

/** The address as parsed by the driver, which fills in defaults. */
function nameOf(url: string): string {
  try {
    const { host, port, database, user } = new pg.Client({ connectionString: url });
    // A folder stands for the socket in it.
    const place = host.startsWith("/") ? `${host}/.s.PGSQL.${port}` : `${host}:${port}`;
    return `The database "${database}" at ${place} (${user ? `user "${user}", ` : ""}from DATABASE_URL)`;
  } catch {
    // The address names a file, e.g. a certificate, that cannot be read: the reason names the file.
    return `The database at ${new URL(url).host} (from DATABASE_URL)`;
  }
}

function reasonOf(cause: unknown): string {
  const words = wordsOf(cause);
  if (NO_PASSWORD.test(words)) return "the server requires a password, and DATABASE_URL has none";
  return REASONS[codeOf(cause)] ?? words.replace(/\.$/, "");
}

/** The driver's message when the address has no password and the server requires one. */
const NO_PASSWORD = /client password must be a string/;

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ENOTFOUND: "unknown host",
};

const WRONG_USER = "Correct user and password in DATABASE_URL; write an @ or / in them as %40 or %2F.";
const FULL = "Wait, or raise max_connections of PostgreSQL, or lower TRADEWIND_DATABASE_CONNECTIONS.";

const REMEDIES: Readonly<Record<string, string>> = {
  ECONNREFUSED: "Start PostgreSQL there, or correct host and port in DATABASE_URL.",
  ENOTFOUND: "Correct the host in DATABASE_URL.",
  "28000": WRONG_USER,
  "28P01": WRONG_USER,
  "3D000": "Create it (CREATE DATABASE), or correct the name in DATABASE_URL.",
  "53300": FULL,
  "57P03": "Wait until it has started, then try again.",
};

function wordsOf(cause: unknown): string {
  // An AggregateError (several addresses of one name, e.g. localhost) has no message of its own.
  if (cause instanceof AggregateError && cause.errors.length > 0) return wordsOf(cause.errors[0]);
  return cause instanceof Error ? cause.message : String(cause);
}

function codeOf(cause: unknown): string {
  const code = (cause as { readonly code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "";
}
