import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** The moment of the first migration distinguishes databases; it survives an upgrade, and a copy of the database has it, too. */
const INSTALLATION = statement(
  "installation",
  `SELECT left(md5(extract(epoch FROM applied_at) || ' ' || current_database()), 16) AS id
   FROM schema_migration ORDER BY version LIMIT 1`,
);

/** Identifies the installation that this database belongs to: 16 letters and digits. */
export async function installationId(db: Connection): Promise<string> {
  return (await db.one<{ id: string }>(INSTALLATION))!.id;
}
