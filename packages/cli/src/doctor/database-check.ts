import { join } from "node:path";
import type { Config } from "@tradewind/engine";
import { withCode } from "../output/error.ts";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";
import { checkSecrets } from "./secrets-check.ts";
import { checkSignals } from "./signals-check.ts";

/** Reachable, recent enough and migrated. Does not create a missing embedded database. */
export async function* checkDatabase(session: Session, config: Config): AsyncGenerator<Check> {
  const name = "database";
  if (!session.hasDatabase) {
    yield {
      name,
      result: "warn",
      says: "none yet",
      remedy: "start `tradewind standalone` to create an embedded one, or set DATABASE_URL",
    };
    return;
  }
  const engine = await import("@tradewind/engine");
  try {
    const { database, stop } = await engine.openDatabase(config);
    try {
      const { applied, pending } = await engine.migrationStatus(database);
      const version = await engine.serverVersion(database);
      const where = config.databaseUrl === undefined ? embeddedPlace(database.url, session.home) : "";
      yield { name, result: "ok", says: `PostgreSQL ${version} answers${where}` };
      if (pending.length === 0) {
        yield { name: "migrations", result: "ok", says: `${applied.length} applied` };
        yield* checkSecrets(session, config, database);
        yield* checkSignals(database);
      } else
        yield {
          name: "migrations",
          result: "fail",
          says: `${pending.length} missing`,
          remedy: "tradewind db migrate",
        };
    } finally {
      await stop();
    }
  } catch (error) {
    // An EngineError names its remedy.
    if (error instanceof engine.EngineError)
      yield { name, result: "fail", says: withCode(error.message, error.code) };
    else
      yield {
        name,
        result: "fail",
        says: error instanceof Error ? error.message : String(error),
        remedy: session.host.env.DATABASE_URL
          ? "check DATABASE_URL and that PostgreSQL runs there"
          : `see ${join(session.home, "postgres")} and the server's log`,
      };
  }
}

/** The address of the embedded database while a standalone runs; its password stays in the file. */
function embeddedPlace(url: string, home: string): string {
  const { host, pathname, username } = new URL(url);
  const file = join(home, "postgres", "password");
  return `; it is embedded: ${host} while a standalone runs, database ${pathname.slice(1)}, user ${username}, password in ${file}`;
}
