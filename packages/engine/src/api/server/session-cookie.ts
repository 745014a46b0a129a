/**
 * The cookie of a signed-in browser. A browser attaches it to every request to this server, also to one that another page
 * makes; so a request that changes something also has to prove that the web UI made it: with a header that no other origin
 * can send without permission, and with what the browser says about its origin.
 */
import type { FastifyRequest } from "fastify";
import { SESSION_SECONDS } from "../../store/access/web-sessions.ts";
import { basePathOf } from "./base-path.ts";
import { Problem } from "./problem.ts";

export const SESSION_COOKIE = "tradewind_session";
const CSRF_HEADER = "x-tradewind-csrf";

const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);
const SECRET = /^[\w-]{20,200}$/;

/** The secret of the session, if the request has its cookie. */
export function sessionOf(cookies: string | undefined): string | null {
  for (const cookie of cookies?.split(";") ?? []) {
    const [name, value = ""] = cookie.trim().split("=", 2);
    if (name === SESSION_COOKIE && SECRET.test(value)) return value;
  }
  return null;
}

/** @param secret null: ends the session in the browser. */
export function sessionCookie(secret: string | null, publicUrl: string | undefined): string {
  const path = basePathOf(publicUrl);
  const parts = [
    `${SESSION_COOKIE}=${secret ?? ""}`,
    `Path=${path === "" ? "/" : path}`,
    `Max-Age=${secret === null ? 0 : SESSION_SECONDS}`,
    "HttpOnly",
    "SameSite=Strict",
  ];
  if (publicUrl?.startsWith("https:")) parts.push("Secure");
  return parts.join("; ");
}

/** Whether a request with the session's cookie may be executed; null: it may. */
export function crossSiteProblem(request: FastifyRequest, publicUrl: string | undefined): Problem | null {
  if (SAFE.has(request.method)) return null;
  if (request.headers[CSRF_HEADER] === undefined)
    return refused(`A request with the session cookie needs the header "${CSRF_HEADER}: 1"`);
  return originProblem(request, publicUrl);
}

/** Browsers send `Sec-Fetch-Site` over HTTPS and to their own machine, and `Origin` with every request that changes something. */
export function originProblem({ headers }: FastifyRequest, publicUrl: string | undefined): Problem | null {
  const site = headers["sec-fetch-site"];
  if (site !== undefined)
    return site === "same-origin" ? null : refused(`The request comes from another site`);
  const { host, origin } = headers;
  if (origin === undefined || origin === `http://${host}` || origin === `https://${host}`) return null;
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return null;
  return refused(
    `The request comes from ${JSON.stringify(origin.slice(0, 200))}, which is not this server. Behind a proxy, set TRADEWIND_PUBLIC_URL`,
  );
}

function refused(detail: string): Problem {
  return new Problem(403, "CROSS_SITE_REQUEST", detail);
}
