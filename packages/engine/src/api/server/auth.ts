/**
 * Who is calling. Default deny: a route is open only if its own config says `open: true`, so a route added without a
 * thought is closed. Unknown paths are closed too; they tell a stranger nothing about which paths exist.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { findToken } from "../../store/access/tokens.ts";
import type { Database } from "../../store/database/database.ts";
import { Problem, sendProblem } from "./problem.ts";

export interface Principal {
  readonly tokenId: number;
  readonly name: string;
  /** The bearer token itself: kept for the request only, as the key of hashes that must not be guessable. */
  readonly token: string;
  /** Set where many callers share one principal: their idempotency keys are kept apart by it. */
  readonly scope?: string;
}

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
  }
  interface FastifyContextConfig {
    /** Answered without a token. */
    open?: boolean;
    /** Another way in than a token; null: it does not apply, a token is needed. */
    otherwise?: (request: FastifyRequest) => Promise<Principal | null>;
  }
}

/** The hook that lets a request through or answers 401. */
export function requireToken(database: Database) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    if (request.routeOptions.config.open === true && !request.is404) return undefined;
    const other = request.is404 ? null : await request.routeOptions.config.otherwise?.(request);
    if (other) {
      request.principal = other;
      return undefined;
    }
    const token = bearer(request.headers.authorization);
    if (token === null) return refuse(reply, "Send the token as: Authorization: Bearer <token>", "");
    const row = await findToken(database, token);
    if (row === undefined)
      return refuse(reply, "The token is unknown or has expired", ', error="invalid_token"');
    request.principal = { tokenId: row.id, name: row.name, token };
    return undefined;
  };
}

/** The caller of a route that is not open. */
export function principalOf(request: FastifyRequest): Principal {
  if (request.principal === null) throw new Problem(401, "UNAUTHENTICATED", "No token");
  return request.principal;
}

const MAX_TOKEN_LENGTH = 512;

function bearer(header: string | undefined): string | null {
  const token = /^Bearer +([\x21-\x7e]+) *$/i.exec(header ?? "")?.[1];
  return token === undefined || token.length > MAX_TOKEN_LENGTH ? null : token;
}

function refuse(reply: FastifyReply, detail: string, challenge: string): FastifyReply {
  reply.header("www-authenticate", `Bearer realm="tradewind"${challenge}`);
  return sendProblem(reply, new Problem(401, "UNAUTHENTICATED", detail));
}
