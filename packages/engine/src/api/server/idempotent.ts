/**
 * Changes made through the API. `change` runs one in a transaction with its audit row. `create` does the same for creating
 * POSTs and honours `Idempotency-Key`: effect, audit row and response are committed together, so a client that did not receive
 * the response gets it by repeating the request.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Deed, recordAudit } from "../../store/access/audit.ts";
import { claimKey, keepAnswer } from "../../store/access/idempotency.ts";
import type { Connection } from "../../store/database/database.ts";
import { principalOf } from "./auth.ts";
import type { ApiOptions } from "./context.ts";
import { invalid, Problem } from "./problem.ts";

export interface Changed<T> {
  readonly result: T;
  /** undefined: nothing changed, so nothing is recorded. The user is added here. */
  readonly deed?: Deed;
}

export async function change<T>(
  options: ApiOptions,
  request: FastifyRequest,
  work: (tx: Connection) => Promise<Changed<T>>,
): Promise<T> {
  const actor = principalOf(request).name;
  const { deed, result } = await options.database.transaction(async (tx) => {
    const changed = await work(tx);
    if (changed.deed !== undefined) await recordAudit(tx, { ...changed.deed, actor });
    return changed;
  });
  if (deed !== undefined) options.notify({ kind: "deed_done" });
  return result;
}

export interface Creation<B> {
  readonly status: number;
  readonly body: B;
  readonly deed?: Deed;
}

/** Sends the response. The second value is true for a stored response of an earlier request. */
export async function create<B>(
  options: ApiOptions,
  call: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  work: (tx: Connection) => Promise<Creation<B>>,
): Promise<{ readonly body: B; readonly replayed: boolean }> {
  const { reply, request } = call;
  const principal = principalOf(request);
  const key = keyOf(request);
  const outcome = await options.database.transaction(async (tx) => {
    const kept = key === null ? null : await keptAnswer(tx, options, { key, request });
    if (kept !== null) return { ...kept, replayed: true } as const;
    const { body, deed, status } = await work(tx);
    if (key !== null) {
      // Encrypted, because a response may repeat a value that the database otherwise stores encrypted.
      const sealedBody = options.secretBox
        .seal(JSON.stringify(body), context(principal.tokenId, key))
        .toString("base64");
      await keepAnswer(tx, {
        key,
        requestHash: hashOf(request),
        sealedBody,
        status,
        tokenId: principal.tokenId,
      });
    }
    if (deed !== undefined) await recordAudit(tx, { ...deed, actor: principal.name });
    return { body, replayed: false, status, isDeed: deed !== undefined } as const;
  });
  if (!outcome.replayed && outcome.isDeed) options.notify({ kind: "deed_done" });
  if (outcome.replayed) reply.header("idempotency-replayed", "true");
  reply.code(outcome.status);
  return { body: outcome.body as B, replayed: outcome.replayed };
}

async function keptAnswer(
  tx: Connection,
  options: ApiOptions,
  { key, request }: { key: string; request: FastifyRequest },
): Promise<{ body: unknown; status: number } | null> {
  const { tokenId } = principalOf(request);
  const state = await claimKey(tx, tokenId, key);
  if (state.kind === "free") return null;
  if (state.kind === "in_flight")
    throw new Problem(
      409,
      "IDEMPOTENCY_IN_PROGRESS",
      `A request with Idempotency-Key "${key}" is in progress. Repeat the request later to get its response.`,
      1,
    );
  if (!timingSafeEqual(state.requestHash, hashOf(request))) {
    throw new Problem(422, "IDEMPOTENCY_KEY_REUSED", [
      {
        loc: ["header", "idempotency-key"],
        msg: `Idempotency-Key "${key}" was used for another request. Use a new key.`,
        type: "key_reused",
      },
    ]);
  }
  const whose = `The stored response for Idempotency-Key "${key}"`;
  const body = options.secretBox.open(Buffer.from(state.sealedBody, "base64"), context(tokenId, key), whose);
  return { body: JSON.parse(body) as unknown, status: state.status };
}

function keyOf(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key !== "string" || !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw invalid(["header", "idempotency-key"], "Must have 1 to 255 visible ASCII characters");
  }
  const { scope } = principalOf(request);
  return scope === undefined ? key : `${scope} ${key}`;
}

/** Keyed with the bearer token, which is not stored: a password in a request cannot be guessed from the hash. */
function hashOf(request: FastifyRequest): Buffer {
  return createHmac("sha256", principalOf(request).token)
    .update(JSON.stringify([request.method, request.url, request.body ?? null]))
    .digest();
}

function context(tokenId: number, key: string): string {
  return `idempotency_key/${tokenId}/${key}`;
}
