/**
 * Reads all settings of a kind. The API never returns secrets; with --with-secrets they are read from the database, which
 * needs its address and the installation's secret key.
 */
import { writeFileSync } from "node:fs";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Session } from "../session.ts";
import type { Entry, SettingsKind } from "./kinds.ts";
import { withSecrets } from "./secrets.ts";

export interface Exported {
  readonly entries: Entry;
  /** Entries left out because their value is secret. */
  readonly hidden: readonly string[];
}

export async function exportSettings(
  session: Session,
  kind: SettingsKind,
  from: "server" | "database",
): Promise<Exported> {
  const shown = from === "database" ? await readDatabase(session, kind) : await readApi(session, kind);
  const all = shown.map((each) => [String(each[kind.key]), kind.format(each)] as const);
  return {
    entries: Object.fromEntries(all.filter(([, value]) => value !== null)),
    hidden: all.filter(([, value]) => value === null).map(([name]) => name),
  };
}

/** Readable by the owner only. */
export function writeExport(file: string, text: string): void {
  try {
    writeFileSync(file, `${text}\n`, { mode: 0o600 });
  } catch (error) {
    throw new CliError("TW_CLI_WRITE", `cannot write ${file}: ${(error as Error).message}.`, {
      exit: EXIT.failed,
      cause: error,
    });
  }
}

async function readApi({ client }: Session, { collection }: SettingsKind): Promise<Entry[]> {
  const what = `cannot export the ${collection}`;
  const { items } = await client.list<Entry>({ path: `/${collection}`, key: collection, what, limit: 0 });
  return items;
}

async function readDatabase(session: Session, { collection }: SettingsKind): Promise<Entry[]> {
  return withSecrets(session, async ({ secrets }) => {
    if (collection === "variables") return (await secrets.variables()).map((variable) => ({ ...variable }));
    return (await secrets.connections()).map((row) => ({
      connection_id: row.conn_id,
      conn_type: row.conn_type,
      description: row.description,
      host: row.host,
      port: row.port,
      schema: row.schema,
      login: row.login,
      password: row.password,
      extra: row.extra,
    }));
  });
}
