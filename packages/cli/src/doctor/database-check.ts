import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "@tradewind/engine";
import type { Session } from "../session.ts";
import type { Check } from "./checks.ts";

/** Reachable, recent enough, and migrated. An embedded database that was never made is not made by asking for it. */
export async function* checkDatabase(session: Session, config: Config): AsyncGenerator<Check> {
  const name = "database";
  if (!session.host.env.DATABASE_URL && !existsSync(join(session.home, "postgres"))) {
    yield {
      name,
      result: "warn",
      says: "none yet",
      remedy: "`tradewind standalone` makes an embedded one; or set DATABASE_URL",
    };
    return;
  }
  const engine = await import("@tradewind/engine");
  try {
    const { database, stop } = await engine.openDatabase(config);
    try {
      const { applied, pending } = await engine.migrationStatus(database);
      yield { name, result: "ok", says: `PostgreSQL ${await engine.serverVersion(database)} answers` };
      if (pending.length === 0) yield { name: "migrations", result: "ok", says: `${applied.length} applied` };
      else
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
