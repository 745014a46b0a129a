/**
 * Authentication. Default deny: a route is open only if its config says so with `open`, so a new route is closed by default.
 * Unknown paths are closed too, so that they do not reveal which paths exist.
 *
 * A caller sends a bearer token, or, from a browser, the cookie of a session (session-cookie.ts). With both, the token counts.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { findToken, type TokenRole, type TokenRow } from "../../store/access/tokens.ts";
import { findSession } from "../../store/access/web-sessions.ts";
import type { Database } from "../../store/database/database.ts";
import { Problem, sendProblem } from "./problem.ts";
import { crossSiteProblem, sessionOf } from "./session-cookie.ts";

export interface Principal {
  readonly tokenId: number;
  readonly name: string;
  /** The bearer token or the session's secret, kept only during the request: the key of hashes that must not be guessable. */
  readonly token: string;
  /** The caller is a signed-in browser. */
  readonly isSession?: boolean;
  /** "worker": only the task execution API; "metrics": only /metrics. */
  readonly role: TokenRole;
  /** Set if the caller is a pod: it acts for this assignment only. */
  readonly assignment?: string;
  /** Set if many callers share one principal: separates their idempotency keys. */
  readonly scope?: string;
}

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    /** No token required, for all or some of its requests. */
    open?: boolean | ((request: FastifyRequest) => boolean);
    /** A route of the task execution API: for worker tokens, too. */
    execution?: boolean;
    /** For tokens of the role metrics, too. */
    metrics?: boolean;
    /** The body is a stream of any length. */
    isUpload?: boolean;
    /** Another authentication method; null: not applicable, a token is required. */
    otherwise?: (request: FastifyRequest) => Promise<Principal | null>;
  }
}

/** Workers make many calls: the token of one is read again after this time. */
const WORKER_CHECK_MS = 1_000;
const MOST_WORKERS = 10_000;

/** Hook that authenticates a request or returns 401. */
export function requireToken(database: Database, publicUrl?: string) {
  const workers = new Map<string, { readonly row: TokenRow; readonly until: number }>();
  const tokenRow = async (token: string, isExecution: boolean): Promise<TokenRow | undefined> => {
    const known = isExecution ? workers.get(token) : undefined;
    if (known && performance.now() < known.until) return known.row;
    const row = await findToken(database, token);
    workers.delete(token);
    if (row !== undefined && isExecution)
      workers.set(token, { row, until: performance.now() + WORKER_CHECK_MS });
    const [oldest] = workers.keys();
    if (workers.size > MOST_WORKERS && oldest !== undefined) workers.delete(oldest);
    return row;
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    const { open } = request.routeOptions.config;
    if (!request.is404 && (typeof open === "function" ? open(request) : open)) return undefined;
    const other = request.is404 ? null : await request.routeOptions.config.otherwise?.(request);
    if (other) {
      request.principal = other;
      return undefined;
    }
    const token = bearer(request.headers.authorization);
    const secret = request.headers.authorization === undefined ? sessionOf(request.headers.cookie) : null;
    if (token === null && secret === null)
      return refuse(reply, "Send the token as: Authorization: Bearer <token>", "");
    const foreign = token === null ? crossSiteProblem(request, publicUrl) : null;
    if (foreign !== null) return sendProblem(reply, foreign);
    const { execution: isExecution = false, metrics: isMetrics = false } = request.routeOptions.config;
    const row = token === null ? await findSession(database, secret!) : await tokenRow(token, isExecution);
    if (row === undefined && token === null) return refuse(reply, "The session has ended: sign in again", "");
    if (row === undefined)
      return refuse(reply, "The token is unknown or has expired", ', error="invalid_token"');
    const isRouteOfRole = row.role === "worker" ? isExecution : row.role === "metrics" && isMetrics;
    if (!isRouteOfRole) requireUser(row);
    request.principal = {
      tokenId: row.id,
      name: row.name,
      role: row.role,
      token: token ?? secret!,
      isSession: token === null,
    };
    return undefined;
  };
}

const PURPOSES: Readonly<Record<Exclude<TokenRole, "admin">, string>> = {
  worker: "execute tasks",
  metrics: "read /metrics",
};

/** @throws Problem for the token of a worker, or for metrics. */
export function requireUser({ name, role }: TokenRow): void {
  if (role === "admin") return;
  throw new Problem(
    403,
    "FORBIDDEN",
    `The token "${name}" has the role ${role}: it may only ${PURPOSES[role]}`,
  );
}

/** The caller of a route that is not open. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Problem(401, "UNAUTHENTICATED", "No token");
  return request.principal;
}

const MAX_TOKEN_LENGTH = 512;

export function bearer(header: string | undefined): string | null {
  const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
  return token === undefined || token.length > MAX_TOKEN_LENGTH ? null : token;
}

function refuse(reply: FastifyReply, detail: string, challenge: string): FastifyReply {
  reply.header("www-authenticate", `Bearer realm="tradewind"${challenge}`);
  return sendProblem(reply, new Problem(401, "UNAUTHENTICATED", detail));
}
