/**
 * Connections to users' databases, which are separate from the engine's own: one small pool per stored connection, shared
 * by all triggers that poll it.
 */
import pg from "pg";
import type { OpenConnection } from "./connection.ts";
import { type Held, SharedClients } from "./shared-clients.ts";

/** Maximum number of concurrent polls, and of sessions at the user's server. */
export const SESSIONS = 4;
const CONNECT_TIMEOUT_MS = 10_000;
const IDLE_TIMEOUT_MS = 60_000;

const pools = new SharedClients<pg.Pool>((pool) => void pool.end());

export function holdPool(connection: OpenConnection): Held<pg.Pool> {
  const { type, port, login, password, schema } = connection.facts;
  if (!/^postgres(?:ql)?$/.test(type)) {
    throw connection.unusable(`its type is "${type}", but must be postgres`);
  }
  const host = connection.requiredHost();
  const ssl = sslOf(connection);
  return pools.hold(connection.fingerprint, () => {
    const pool = new pg.Pool({
      host,
      port: port ?? 5432,
      user: login ?? undefined,
      password: password ?? "",
      database: schema ?? undefined,
      ssl,
      max: SESSIONS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      idleTimeoutMillis: IDLE_TIMEOUT_MS,
      application_name: "tradewind trigger",
      keepAlive: true,
    });
    // A broken session, idle or in use, is replaced at the next poll; without a listener its error would end the
    // process.
    pool.on("error", () => {});
    pool.on("connect", (client) => client.on("error", () => {}));
    return pool;
  });
}

/** libpq's terms. */
function sslOf(connection: OpenConnection): pg.PoolConfig["ssl"] {
  const mode = connection.option("sslmode") ?? "disable";
  switch (mode) {
    case "disable":
      return false;
    case "require":
      return { rejectUnauthorized: false };
    case "verify-full":
      return { rejectUnauthorized: true };
    default:
      throw connection.unusable(`sslmode "${mode}" must be disable, require or verify-full`);
  }
}

/** The driver's own parsers return dates in some time zone, and imprecise numbers. */
export const AS_JSON: pg.CustomTypesConfig = {
  getTypeParser: (oid: number) => READERS.get(oid) ?? ((text: string) => text),
} as pg.CustomTypesConfig;

export const NUMERIC = 1700;

/** An integer or float that JSON can represent exactly; otherwise the text of PostgreSQL. */
const asNumber = (text: string) => {
  const number = Number(text);
  return Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))
    ? number
    : text;
};

const READERS = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  [20, asNumber],
  [21, asNumber],
  [23, asNumber],
  [26, asNumber],
  [700, asNumber],
  [701, asNumber],
  [114, (text) => JSON.parse(text)],
  [3802, (text) => JSON.parse(text)],
]);
