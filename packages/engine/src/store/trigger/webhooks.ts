/** Webhook calls as signals: kept until retention for waits that exist now or begin later. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { sendSignals } from "../signal/signals.ts";

/** `signal.namespace` of webhooks; the key is the webhook's name. */
const WEBHOOK_NAMESPACE = "webhook";

/** `signal.value` of a webhook. */
interface WebhookValue {
  readonly body: Json;
  /** Descriptive headers only, without credentials. */
  readonly headers: { readonly [name: string]: string };
}

/**
 * Returns the call's signal id, and its time by the database's clock. Call it late in the transaction, as every function
 * that sends signals: other calls of this webhook wait for its end, so that calls are received in order.
 */
export async function recordWebhook(
  tx: Connection,
  { name, sender, value }: { name: string; sender: string; value: WebhookValue },
): Promise<{ id: number; created_at: Date }> {
  const draft = { namespace: WEBHOOK_NAMESPACE, key: name, value: { ...value }, sender };
  const [sent] = await sendSignals(tx, [draft]);
  return { id: sent!.id, created_at: sent!.createdAt };
}

/**
 * The owner of the idempotency keys of callers with a signed URL. Its row was never a valid token: no text has this hash,
 * and it expired before it was created.
 */
export async function webhookCaller(connection: Connection): Promise<number> {
  const found = await connection.one<{ id: number }>(FIND_CALLER, [NO_TOKEN]);
  if (found !== undefined) return found.id;
  await connection.rows(ADD_CALLER, [NO_TOKEN]);
  return (await connection.one<{ id: number }>(FIND_CALLER, [NO_TOKEN]))!.id;
}

const NO_TOKEN = Buffer.alloc(32);

const FIND_CALLER = statement("webhook-find-caller", "SELECT id FROM api_token WHERE sha256 = $1");

const ADD_CALLER = statement(
  "webhook-add-caller",
  `INSERT INTO api_token (name, sha256, expires_at) VALUES ('webhook', $1, 'epoch')
   ON CONFLICT (sha256) DO NOTHING`,
);
