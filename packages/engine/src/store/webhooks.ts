/** What came in from outside, as signals: kept for whoever waits for it, now or in a moment, until retention. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

/** `signal.namespace` of webhooks; the key is the webhook's name. */
const WEBHOOK_NAMESPACE = "webhook";

/** `signal.value` of a webhook. */
interface WebhookValue {
  readonly body: Json;
  /** Those that tell what it is; none that proves who sent it. */
  readonly headers: { readonly [name: string]: string };
}

/** Answers its place among the signals, and when it came by the database's clock. */
export async function recordWebhook(
  tx: Connection,
  { name, sender, value }: { name: string; sender: string; value: WebhookValue },
): Promise<{ id: number; created_at: Date }> {
  const row = await tx.one<{ id: number; created_at: Date }>(RECORD, [
    WEBHOOK_NAMESPACE,
    name,
    JSON.stringify(value),
    sender,
  ]);
  return row!;
}

/**
 * Whose idempotency keys those of callers with a signed URL are. Its row was never valid as a token: no text has this
 * hash, and it had expired before it was made.
 */
export async function webhookCaller(connection: Connection): Promise<number> {
  const found = await connection.one<{ id: number }>(FIND_CALLER, [NO_TOKEN]);
  if (found !== undefined) return found.id;
  await connection.rows(ADD_CALLER, [NO_TOKEN]);
  return (await connection.one<{ id: number }>(FIND_CALLER, [NO_TOKEN]))!.id;
}

const NO_TOKEN = Buffer.alloc(32);

const RECORD = statement(
  "webhook-record",
  "INSERT INTO signal (namespace, key, value, sender) VALUES ($1, $2, $3, $4) RETURNING id, created_at",
);

const FIND_CALLER = statement("webhook-find-caller", "SELECT id FROM api_token WHERE sha256 = $1");

const ADD_CALLER = statement(
  "webhook-add-caller",
  `INSERT INTO api_token (name, sha256, expires_at) VALUES ('webhook', $1, 'epoch')
   ON CONFLICT (sha256) DO NOTHING`,
);
