/** How the programs of this folder start and end. Loaded by separate processes. */
import type { Logger } from "../../src/service/logger.ts";
import { CommitUnknownError, type Database, isTransient } from "../../src/store/database/database.ts";
import { migrate } from "../../src/store/database/migrate.ts";

/** The exit code of a program that could not start without the database. */
const DATABASE_AWAY = 75;

/** Milliseconds, as a test gives them. */
export function givenLease(): { ttlMs: number; renewMs: number; marginMs: number } | undefined {
  const [ttlMs, renewMs, marginMs] = (process.env.FAULT_LEASE ?? "").split(",").map(Number);
  return ttlMs && renewMs && marginMs ? { ttlMs, renewMs, marginMs } : undefined;
}

/** Starts the program, which ends with SIGTERM or with its parent process. */
export async function serve(program: {
  readonly database: Database;
  readonly logger: Logger;
  start(): Promise<void>;
  stop(): Promise<void>;
}): Promise<void> {
  const { database, logger } = program;
  try {
    await migrate(database);
    await program.start();
  } catch (error) {
    if (!isTransient(error) && !(error instanceof CommitUnknownError)) throw error;
    logger.warn("cannot start without the database", { error: String(error) });
    process.exit(DATABASE_AWAY);
  }
  process.on("SIGTERM", async () => {
    await program.stop();
    process.exit(0);
  });
  isUp();
}

export function isUp(): void {
  // Exits with its parent process, even if the test crashes.
  process.stdin.on("end", () => process.exit(1)).resume();
  process.stdout.write("ready\n");
}
