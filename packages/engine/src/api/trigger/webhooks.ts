/**
 * `/webhooks`: events from third parties. A POST is stored as a signal, and every wait for that name resumes. Callers need a
 * token, or the signed URL of that one name, which can be given to a third party. Webhooks are not created in advance: a call
 * without waiters is stored too, so the order of the call and the wait does not matter.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { recordWebhook, webhookCaller } from "../../store/trigger/webhooks.ts";
import { type Principal, principalOf } from "../server/auth.ts";
import type { ApiApp, ApiOptions, Resource } from "../server/context.ts";
import { date, iso } from "../server/fields.ts";
import { create } from "../server/idempotent.ts";
import { parseJsonBody, textOfBody } from "../server/json-body.ts";
import { invalid, Problem } from "../server/problem.ts";
import { SENSITIVE } from "../server/secret-names.ts";

const name = z
  .string()
  .min(1)
  .max(250)
  .regex(
    /^(?!\.+$)[A-Za-z0-9_.-]+$/,
    "A webhook's name may contain A-Z a-z 0-9 _ . - only, and not only dots",
  );
const params = z.object({ name });

const urlDocument = z
  .object({
    name: z.string(),
    /** With the signature: allows its holder to send this webhook, and nothing else. */
    path: z.string(),
    /** The path below the server's public URL; null: none configured. Never from the request's Host, which any caller can set. */
    url: z.string().nullable(),
  })
  .meta({ id: "WebhookUrl" });

const receipt = z
  .object({
    name: z.string(),
    /** Its position in the log of all signals. */
    position: z.number(),
    received_at: date,
  })
  .meta({ id: "WebhookReceipt" });

const PURPOSE = "webhook";

export const webhooks: Resource = (app, options) => {
  const tags = ["Webhook"];

  app.get(
    "/api/v2/webhooks/:name",
    { schema: { params, response: { 200: urlDocument }, tags } },
    async (request) => {
      const { name } = request.params;
      const path = `/api/v2/webhooks/${name}?signature=${options.secretBox.sign(name, PURPOSE)}`;
      const { publicUrl } = options.config;
      return { name, path, url: publicUrl === undefined ? null : `${publicUrl}${path}` };
    },
  );

  // A separate scope: only here a body need not be JSON.
  app.register(async (scope) => receiver(scope as ApiApp, options));
};

function receiver(app: ApiApp, options: ApiOptions): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (request, body, done) => {
    try {
      done(null, read(request, body as Buffer));
    } catch (error) {
      done(error as Error, undefined);
    }
  });

  app.post(
    "/api/v2/webhooks/:name",
    {
      config: { otherwise: (request) => bySignature(request, options) },
      schema: {
        params,
        querystring: z.strictObject({ signature: z.string().max(100).optional() }),
        body: z.any().describe("JSON, or any text; at most 1 MB"),
        response: { 202: receipt },
        tags: ["Webhook"],
      },
    },
    async (request, reply) => {
      const { name } = request.params;
      const value = { body: (request.body ?? null) as Json, headers: safeHeaders(request) };
      const { body, replayed } = await create(options, { request, reply }, async (tx) => {
        const { created_at, id } = await recordWebhook(tx, {
          name,
          sender: principalOf(request).name,
          value,
        });
        return { status: 202, body: { name, position: id, received_at: iso(created_at) } };
      });
      if (!replayed) options.notify({ kind: "signal_sent", key: name });
      return body;
    },
  );
}

/** Rejects a wrong signature at once, unless the request also has a token. */
async function bySignature(
  request: FastifyRequest,
  { database, secretBox }: ApiOptions,
): Promise<Principal | null> {
  const { signature } = request.query as { signature?: unknown };
  if (signature === undefined) return null;
  const { name } = request.params as { name: string };
  if (typeof signature !== "string" || !secretBox.isSigned(name, PURPOSE, signature)) {
    if (request.headers.authorization !== undefined) return null;
    throw new Problem(
      401,
      "UNAUTHENTICATED",
      "The signature does not match this webhook. Get its URL with: tradewind webhooks url <name>",
    );
  }
  return {
    tokenId: await webhookCaller(database),
    name: "webhook",
    role: "admin",
    token: signature,
    scope: name,
  };
}

/** JSON for a JSON content type, else text. */
function read(request: FastifyRequest, body: Buffer): unknown {
  const text = textOfBody(body);
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (/^application\/(?:[\w.-]+\+)?json$/.test(type)) return parseJsonBody(text, FORBIDDEN);
  if (text.includes("\0")) throw invalid(["body"], "Text must not contain NUL characters", "string_nul");
  return text;
}

/** Senders may use any keys, except the one that changes the prototype of an object. */
const FORBIDDEN: ReadonlySet<string> = new Set(["__proto__"]);

/** Headers that distinguish events (X-GitHub-Event, ce-type), without credentials or host names. */
function safeHeaders(request: FastifyRequest): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).flatMap(([header, value]) =>
      typeof value === "string" && SAFE.test(header) && !UNSAFE.test(header) && !SENSITIVE.test(header)
        ? [[header, value]]
        : [],
    ),
  );
}

const SAFE = /^(?:content-type|user-agent|webhook-id|webhook-timestamp|(?:x|ce)-[\w-]+)$/;
const UNSAFE =
  /signature|hmac|auth|cookie|api-?key|session|csrf|^x-(?:forwarded|real|client|original|cluster)-/;
