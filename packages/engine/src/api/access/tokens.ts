/**
 * `/tokens`: API tokens. A token is shown only in the response that creates it; the database has its hash. Airflow has no such
 * resource. A token with the role "worker" may only execute tasks, one with the role "metrics" may only read /metrics; an
 * administrator's has full access. The audit log shows their names.
 */
import { z } from "zod";
import { newToken } from "../../service/home.ts";
import {
  createToken,
  deleteToken,
  type ListedToken,
  listTokens,
  TOKEN_ORDER,
  TOKEN_ROLES,
} from "../../store/access/tokens.ts";
import { pageOf } from "../dag/dags.ts";
import { principalOf } from "../server/auth.ts";
import type { Resource } from "../server/context.ts";
import { date, id, instant, int, iso, nullableDate, orderBy, pageQuery } from "../server/fields.ts";
import { change } from "../server/idempotent.ts";
import { conflict, invalid, notFound } from "../server/problem.ts";

const shape = {
  id: z.number(),
  name: z.string(),
  /** "worker": only the routes that execute tasks; "metrics": only /metrics. */
  role: z.enum(TOKEN_ROLES),
  created_at: date,
  expires_at: nullableDate,
  last_used_at: nullableDate,
  /** The token of this request. */
  is_current: z.boolean(),
};
const tokenDocument = z.object(shape).meta({ id: "TokenResponse" });
const newTokenDocument = z.object({ ...shape, token: z.string() }).meta({ id: "NewTokenResponse" });

const createBody = z.strictObject({
  name: id,
  expires_at: instant.nullish(),
  role: z.enum(TOKEN_ROLES).default("admin"),
});
const listQuery = z.strictObject({ ...pageQuery, order_by: orderBy(TOKEN_ORDER, "id") });

export const tokens: Resource = (app, options) => {
  const tags = ["Token"];

  app.get(
    "/api/v2/tokens",
    {
      schema: {
        querystring: listQuery,
        response: { 200: z.object({ tokens: z.array(tokenDocument), total_entries: z.number() }) },
        tags,
      },
    },
    async (request) => {
      const { rows, total } = await listTokens(options.database, pageOf(request.query));
      const { tokenId } = principalOf(request);
      return { tokens: rows.map((row) => show(row, tokenId)), total_entries: total };
    },
  );

  // No Idempotency-Key: the stored response would contain the token.
  app.post(
    "/api/v2/tokens",
    { schema: { body: createBody, response: { 201: newTokenDocument }, tags } },
    async (request, reply) => {
      const { name, expires_at: expiresAt = null, role } = request.body;
      if (expiresAt !== null && expiresAt.getTime() <= Date.now())
        throw invalid(["body", "expires_at"], "Must be in the future");
      const token = newToken();
      const row = await change(options, request, async (tx) => {
        const result = await createToken(tx, { name, role, token, expiresAt });
        return {
          result,
          deed: {
            action: "create_token",
            about: `tokens/${result.id}`,
            details: { id: result.id, name, role },
          },
        };
      });
      reply.code(201);
      return { ...show(row, principalOf(request).tokenId), token };
    },
  );

  app.delete(
    "/api/v2/tokens/:token_id",
    { schema: { params: z.object({ token_id: int(1) }), response: { 204: z.null() }, tags } },
    async (request, reply) => {
      const tokenId = request.params.token_id;
      // Prevents a lockout: a token can only be revoked with another token.
      if (tokenId === principalOf(request).tokenId)
        throw conflict("A token cannot revoke itself: use another token");
      await change(options, request, async (tx) => {
        const name = await deleteToken(tx, tokenId);
        if (name === undefined) throw notFound(`Token ${tokenId} does not exist`);
        return {
          result: undefined,
          deed: { action: "delete_token", about: `tokens/${tokenId}`, details: { id: tokenId, name } },
        };
      });
      return reply.code(204).send(null);
    },
  );
};

function show(row: ListedToken, current: number): z.output<typeof tokenDocument> {
  return {
    id: row.id,
    name: row.name,
    role: row.role,
    created_at: iso(row.created_at),
    expires_at: iso(row.expires_at),
    last_used_at: iso(row.last_used_at),
    is_current: row.id === current,
  };
}
