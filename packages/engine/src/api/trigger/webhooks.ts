/**
 * `/webhooks`: where others report what happened. A POST is stored as a signal, and whatever waits for that name goes
 * on. Who may: holders of a token, and holders of the signed URL of that one name, which a third party can be given.
 * Nothing is in a webhook's name: none has to be made first, and one that nobody waits for is kept all the same, so
 * that it does not matter who is first, the caller or the one who waits.
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
    /** With the signature: whoever has it can send this webhook, and nothing else. */
    path: z.string(),
    /** The same below the server's public URL; null: none is configured. Never the request's Host, which anyone can set. */
    url: z.string().nullable(),
  })
  .meta({ id: "WebhookUrl" });

const receipt = z
  .object({
    name: z.string(),
    /** Its place among all signals. */
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

  // In a scope of its own: here alone a body need not be JSON.
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

/** A wrong signature is refused at once, unless there is a token to be looked at, too. */
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
      "The signature is not that of this webhook. Get its URL with: tradewind webhooks url <name>",
    );
  }
  return { tokenId: await webhookCaller(database), name: "webhook", token: signature, scope: name };
}

/** JSON where it says so, else the text as it is. */
function read(request: FastifyRequest, body: Buffer): unknown {
  const text = textOfBody(body);
  const type = request.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (/^application\/(?:[\w.-]+\+)?json$/.test(type)) return parseJsonBody(text, FORBIDDEN);
  if (text.includes("\0")) throw invalid(["body"], "Text must not contain NUL characters", "string_nul");
  return text;
}

/** The sender's names are the sender's business; only this one could ever change what an object is. */
const FORBIDDEN: ReadonlySet<string> = new Set(["__proto__"]);

/** What tells senders' events apart (X-GitHub-Event, ce-type), and nothing that opens a door or names a machine. */
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
