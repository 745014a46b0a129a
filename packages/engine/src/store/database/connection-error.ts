import { EngineError } from "../../service/errors.ts";

/**
 * The connection broke after the commit was sent and before the reply: the transaction may or may not be stored. Do not
 * retry without reading the rows that the transaction would have written.
 */
export class CommitUnknownError extends EngineError {
  constructor(cause: unknown) {
    super(
      "COMMIT_UNKNOWN",
      "The database connection broke before the commit was confirmed: the transaction may or may not be stored. Read the affected rows again before repeating it.",
      { cause },
    );
  }
}

/** The SQLSTATE of a server error, such as "40001" or our own "TW001"; null for all other errors. */
export function sqlState(error: unknown): string | null {
  const code = property(error, "code");
  // Node's codes ("EPIPE") can be five capitals, too; only server errors carry a severity.
  if (typeof code !== "string" || code.length !== 5 || property(error, "severity") === undefined) return null;
  return code;
}

/**
 * The server or the network is unavailable (restart, failover, connection refused): retry on a new connection. A
 * CommitUnknownError is not transient: its outcome must be read back first.
 */
export function isTransient(error: unknown): boolean {
  if (error instanceof CommitUnknownError) return false;
  const state = sqlState(error);
  if (state !== null) return state.startsWith("08") || TRANSIENT_STATES.has(state);
  const code = property(error, "code");
  if (typeof code === "string" && TRANSIENT_CODES.has(code)) return true;
  if (error instanceof AggregateError) return error.errors.some(isTransient);
  return error instanceof Error && TRANSIENT_MESSAGES.test(error.message);
}

/** Lock not available, deadlock: other transactions are in the way, and nothing is stored. */
export function isContended(error: unknown): boolean {
  const state = sqlState(error);
  return state === "55P03" || state === "40P01";
}

/** True if the connection is, or may be, unusable after this error. */
export function breaksConnection(error: unknown): boolean {
  const severity = property(error, "severity");
  return severity === undefined || severity === "FATAL" || severity === "PANIC";
}

/** The server has no disk space; the write can be retried when it has. */
export const DISK_FULL = "53100";

// admin shutdown, crash shutdown, cannot connect now (starting up), idle session, too many connections, idle in
// transaction (the process was suspended), no disk space, no memory
const TRANSIENT_STATES = new Set(["57P01", "57P02", "57P03", "57P05", "53300", "25P03", DISK_FULL, "53200"]);
const TRANSIENT_CODES = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EAI_AGAIN",
]);
// The driver raises these errors without a code.
const TRANSIENT_MESSAGES =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed)/;

function property(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined;
}
