import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

const SHOW = statement("server-version", "SELECT current_setting('server_version') AS version");

/** PostgreSQL's own version, e.g. "18.4". */
export async function serverVersion(db: Connection): Promise<string> {
  return (await db.one<{ version: string }>(SHOW))?.version ?? "unknown";
}
