/**
 * `/ui/session`: signs a browser in and out. A session acts for the token it was made with. Signing in needs the token, or the
 * code of a one-time link that a signed-in caller has made.
 *
 * A code is used in the transaction that stores the session. A process that dies before its commit has used nothing; if the
 * answer is lost after it, the browser has no cookie, and needs another link.
 */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { recordAudit } from "../../store/access/audit.ts";
import { findToken, TOKEN_ROLES, type TokenRow } from "../../store/access/tokens.ts";
import {
  createSession,
  createSignInCode,
  deleteSession,
  findSession,
  useSignInCode,
} from "../../store/access/web-sessions.ts";
import type { Connection } from "../../store/database/database.ts";
import { installationId } from "../../store/execute/installation.ts";
import { principalOf, requireUser } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { date, iso, nullableDate } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, Problem } from "../server/problem.ts";
import { originProblem, sessionCookie } from "../server/session-cookie.ts";
import { UI_TAG } from "../ui/columns.ts";

const secret = z.string().min(1).max(512);
const signInBody = z.union([z.strictObject({ token: secret }), z.strictObject({ code: secret })]);

const sessionDocument = z
  .object({
    /** The name of the token. */
    user: z.string(),
    role: z.enum(TOKEN_ROLES),
    /** null: the request has a bearer token. */
    signed_in_at: nullableDate,
    expires_at: nullableDate,
    version: z.string(),
    /** Identifies the database. */
    installation: z.string(),
  })
  .meta({ id: "WebSession" });

export const session: Resource = (app, options) => {
  const { config, database } = options;
  const tags = [UI_TAG.name];

  app.post(
    "/ui/session",
    {
      config: { open: true },
      schema: { body: signInBody, response: { 204: z.null() }, tags },
    },
    async (request, reply) => {
      // No page of another site may sign this browser in.
      const foreign = originProblem(request, config.publicUrl);
      if (foreign !== null) throw foreign;
      const { body } = request;
      const made = newSecret();
      await database.transaction(async (tx) => {
        const row = await createSession(tx, {
          secret: made,
          tokenId: "code" in body ? await tokenOfCode(tx, body.code) : (await userToken(tx, body.token)).id,
        });
        if (row === undefined) throw unauthenticated("The token has expired or was deleted");
        await recordAudit(tx, {
          action: "sign_in",
          about: `tokens/${row.id}`,
          details: { with: "code" in body ? "link" : "token" },
          actor: row.name,
        });
      });
      options.notify({ kind: "deed_done" });
      reply.header("set-cookie", sessionCookie(made, config.publicUrl));
      return reply.code(204).send(null);
    },
  );

  app.get(
    "/ui/session",
    { schema: { response: { 200: sessionDocument }, tags } },
    async (request): Promise<z.output<typeof sessionDocument>> => {
      const { isSession, name, role, token } = principalOf(request);
      const row = isSession ? await findSession(database, token) : undefined;
      return {
        user: name,
        role,
        signed_in_at: iso(row?.created_at ?? null),
        expires_at: iso(row?.expires_at ?? null),
        version: config.version,
        installation: await installationId(database),
      };
    },
  );

  app.delete("/ui/session", { schema: { response: { 204: z.null() }, tags } }, async (request, reply) => {
    const { isSession, token, tokenId } = principalOf(request);
    if (!isSession) throw conflict("The request has a bearer token: there is no session to end");
    await change(options, request, async (tx) => {
      const isDeleted = await deleteSession(tx, token);
      const about = `tokens/${tokenId}`;
      return { result: undefined, ...(isDeleted ? { deed: { action: "sign_out", about } } : {}) };
    });
    reply.header("set-cookie", sessionCookie(null, config.publicUrl));
    return reply.code(204).send(null);
  });

  // No Idempotency-Key: the stored response would contain the code.
  app.post(
    "/ui/sign-in-links",
    {
      schema: {
        response: {
          201: z.object({ url: z.string(), expires_at: date }).meta({ id: "SignInLink" }),
        },
        tags,
      },
    },
    async (request, reply) => {
      const { tokenId } = principalOf(request);
      const code = newSecret();
      const expires = await change(options, request, async (tx) => {
        const result = await createSignInCode(tx, { code, tokenId });
        if (result === undefined) throw unauthenticated("The token was deleted");
        return { result, deed: { action: "create_sign_in_link", about: `tokens/${tokenId}` } };
      });
      const base = config.publicUrl ?? `${request.protocol}://${request.host}`;
      reply.code(201);
      // After "#": browsers send it to no server, so it is in no proxy's log.
      return { url: `${base}/sign-in#code=${code}`, expires_at: iso(expires) };
    },
  );
};

async function tokenOfCode(tx: Connection, code: string): Promise<number> {
  const tokenId = await useSignInCode(tx, code);
  if (tokenId !== undefined) return tokenId;
  throw new Problem(
    401,
    "SIGN_IN_CODE_INVALID",
    "The link was used or has expired. Make another with: tradewind open",
  );
}

async function userToken(tx: Connection, token: string): Promise<TokenRow> {
  const row = await findToken(tx, token);
  if (row === undefined) throw unauthenticated("The token is unknown or has expired");
  requireUser(row);
  return row;
}

function unauthenticated(detail: string): Problem {
  return new Problem(401, "UNAUTHENTICATED", detail);
}

function newSecret(): string {
  return randomBytes(32).toString("base64url");
}
