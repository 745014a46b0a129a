/**
 * Whether the key of a process can decrypt the secrets in the database. A home without a key creates one, so a service
 * without the shared key would start and be able to read nothing: it logs a warning at once.
 */
import { existsSync } from "node:fs";
import { SECRET_UNREADABLE, SecretBox } from "../../secret/secret-box.ts";
import type { Config } from "../../service/config.ts";
import { keyFile } from "../../service/home.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import { openConnection, openConnections } from "../../store/settings/connections.ts";
import { findUnreadable, type UnreadableSecrets } from "../../store/settings/unreadable-secrets.ts";
import { openVariables } from "../../store/settings/variables.ts";

/** After the migrations, before the first request or task. */
export async function warnOfUnreadable(parts: {
  readonly database: Database;
  readonly logger: Logger;
  readonly secretBox: SecretBox;
}): Promise<void> {
  const found = await findUnreadable(parts.database, parts.secretBox);
  if (found === null) return;
  parts.logger.warn(
    "stored secrets were sealed with a key that this service does not have: give all services the same secret key",
    { code: SECRET_UNREADABLE, ...found },
  );
}

/** Read-only: null for a home without a key; no key is created. */
export async function probeSecrets(
  config: Config,
  database: Database,
  fromEnvironment: string | undefined,
): Promise<{ readonly key: string; readonly unreadable: UnreadableSecrets | null } | null> {
  const file = keyFile(config.home);
  if (!fromEnvironment && !existsSync(file)) return null;
  const box = await SecretBox.load(file, fromEnvironment);
  return {
    key: fromEnvironment ? "TRADEWIND_SECRET_KEY" : file,
    unreadable: await findUnreadable(database, box),
  };
}

/** With their secrets, for a caller that has the database and its key. Null for a home without a key. */
export async function readSecrets(config: Config, database: Database, fromEnvironment: string | undefined) {
  const file = keyFile(config.home);
  if (!fromEnvironment && !existsSync(file)) return null;
  const box = await SecretBox.load(file, fromEnvironment);
  return {
    variables: () => openVariables(database, box),
    connections: () => openConnections(database, box),
    connection: (id: string) => openConnection(database, box, id),
  };
}
