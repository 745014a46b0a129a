/**
 * Tests whether the server of a stored connection is reachable from this machine and accepts its credentials. The result
 * states what was tested: for a type without a client here, only that it accepts connections.
 */
import { connect } from "node:net";
import type { ConnectionFacts } from "@tradewind/sdk/program";
import { EngineError } from "../service/errors.ts";
import { withDeadline } from "./abort.ts";
import { OpenConnection } from "./connection.ts";
import { addressOf, authorizationOf } from "./http.ts";
import { RedisClient } from "./redis-client.ts";
import { holdPool } from "./sql-pool.ts";
import { reasonOf, TriggerRefusal } from "./trigger-error.ts";

export interface ConnectionTest {
  /** `credentials`: the server has accepted them. `reachability`: it accepts connections. */
  readonly tested: "credentials" | "reachability";
  /** The server, without credentials: `db.example:5432`. */
  readonly address: string;
  /** The answer of the server, as the end of a sentence. */
  readonly answer: string;
}

type Probe = (connection: OpenConnection, signal: AbortSignal) => Promise<ConnectionTest>;

/** The default port of each type. */
const PORTS: Readonly<Record<string, number>> = {
  ftp: 21,
  imap: 993,
  kafka: 9092,
  ldap: 389,
  mongo: 27_017,
  mongodb: 27_017,
  mssql: 1433,
  mysql: 3306,
  oracle: 1521,
  sftp: 22,
  smtp: 25,
  ssh: 22,
};

/** @throws EngineError CONNECTION_UNREACHABLE, CONNECTION_REJECTED or TRIGGER_CONNECTION_INVALID. */
export async function testConnection(
  facts: ConnectionFacts,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<ConnectionTest> {
  const connection = new OpenConnection(facts);
  const probe = probeOf(facts.type);
  try {
    return await withDeadline(signal, timeoutMs, (inner) => probe(connection, inner));
  } catch (error) {
    if (signal.aborted || (error instanceof EngineError && error.code !== "TRIGGER_REFUSED")) throw error;
    // Errors of PostgreSQL have a severity, and those of Redis are refusals: both come from a server that was reached.
    const isAnswer = error instanceof TriggerRefusal || "severity" in (error as object);
    throw isAnswer ? rejected(facts, reasonOf(error), error) : unreachable(facts, reasonOf(error), error);
  }
}

function probeOf(type: string): Probe {
  if (/^postgres(?:ql)?$/.test(type)) return probePostgres;
  if (/^rediss?$/.test(type)) return probeRedis;
  return /^https?$/.test(type) ? probeHttp : connectOnly;
}

const probePostgres: Probe = async (connection) => {
  const { host, login, port } = connection.facts;
  const pool = holdPool(connection);
  try {
    await pool.client.query("SELECT 1");
  } finally {
    pool.release();
  }
  const who = login === null ? "" : ` as ${login}`;
  return { tested: "credentials", address: `${host}:${port ?? 5432}`, answer: `SELECT 1 succeeded${who}` };
};

const probeRedis: Probe = async (connection, signal) => {
  const { host, port } = connection.facts;
  const redis = new RedisClient(connection);
  try {
    await redis.call("PING", [], signal);
  } finally {
    redis.close();
  }
  return { tested: "credentials", address: `${host}:${port ?? 6379}`, answer: "PING was answered" };
};

/** Credentials are sent to this address only: redirects are not followed. */
const probeHttp: Probe = async (connection, signal) => {
  const url = addressOf(connection);
  if (url === null) throw connection.unusable("it has no host");
  const headers = new Headers(connection.options("headers"));
  const authorization = authorizationOf(connection);
  if (authorization !== null && !headers.has("authorization")) headers.set("authorization", authorization);
  const { status } = await fetch(url, { headers, signal, redirect: "manual" });
  if (status === 401 || status === 403 || status === 407 || status >= 500)
    throw rejected(connection.facts, `GET ${url.href} was answered with ${status}`);
  const answer = `GET ${url.href} was answered with ${status}`;
  return {
    tested: status < 300 && authorization !== null ? "credentials" : "reachability",
    address: url.host,
    answer,
  };
};

const connectOnly: Probe = async (connection, signal) => {
  const { type, port = null } = connection.facts;
  const host = connection.requiredHost().replace(/^[a-z][\w+.-]*:\/\//i, "");
  const number = port ?? PORTS[type];
  if (number === undefined) throw connection.unusable("it has no port");
  await new Promise<void>((resolve, reject) => {
    const socket = connect({ host, port: number, signal });
    socket.once("connect", () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", reject);
  });
  return { tested: "reachability", address: `${host}:${number}`, answer: "it accepts connections" };
};

function rejected({ id }: ConnectionFacts, why: string, cause?: unknown): EngineError {
  return new EngineError(
    "CONNECTION_REJECTED",
    `Connection "${id}": its server was reached and rejected the connection: ${why}.`,
    {
      cause,
    },
  );
}

function unreachable({ id }: ConnectionFacts, why: string, cause: unknown): EngineError {
  return new EngineError(
    "CONNECTION_UNREACHABLE",
    `Connection "${id}": its server cannot be reached: ${why}.`,
    {
      cause,
    },
  );
}
