import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

const NOTIFY = statement("wake-up-send", "SELECT pg_notify($1, topic) FROM unnest($2::text[]) AS topic");

/** One small transaction for all topics: NOTIFY serialises commits, so it is never part of a hot transaction. */
export async function sendWakeUps(db: Connection, channel: string, topics: readonly string[]): Promise<void> {
  await db.rows(NOTIFY, [channel, topics]);
}
