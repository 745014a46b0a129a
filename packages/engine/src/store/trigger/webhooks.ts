/** What came in from outside, as signals: kept for whoever waits for it, now or in a moment, until retention. */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { sendSignals } from "../signal/signals.ts";

/** `signal.namespace` of webhooks; the key is the webhook's name. */
const WEBHOOK_NAMESPACE = "webhook";

/** `signal.value` of a webhook. */
interface WebhookValue {
  readonly body: Json;
  /** Those that tell what it is; none that proves who sent it. */
  readonly headers: { readonly [name: string]: string };
}

/**
 * Answers its place among the signals, and when it came by the database's clock. To be called as late in a transaction
 * as any that sends signals: whoever else calls this webhook waits for its end, so that calls are heard in their order.
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

const FIND_CALLER = statement("webhook-find-caller", "SELECT id FROM api_token WHERE sha256 = $1");

const ADD_CALLER = statement(
  "webhook-add-caller",
  `INSERT INTO api_token (name, sha256, expires_at) VALUES ('webhook', $1, 'epoch')
   ON CONFLICT (sha256) DO NOTHING`,
);
