import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { acquireProcessLock } from "../../src/service/process-lock.ts";
import { Database } from "../../src/store/database/database.ts";
import { migrate, readMigrations } from "../../src/store/database/migrate.ts";
import { EmbeddedPostgres } from "../../src/store/embedded/embedded-postgres.ts";

export const CACHE = resolve(import.meta.dirname, "../../../../.cache/test-postgres");

/** A name that changes with every migration of the schema. */
export async function schemaHash(): Promise<string> {
  const hashes = (await readMigrations()).map((migration) => migration.sha256).join();
  return createHash("sha256").update(hashes).digest("hex").slice(0, 12);
}

/** Fills a new server's folder with a migrated database from the cache: a tenth of the cost of creating one. */
export async function seedFolder(dataDir: string): Promise<void> {
  const seed = join(CACHE, `seed-${await schemaHash()}-uid-${process.getuid?.() ?? 0}`);
  if (!existsSync(seed)) await buildSeed(seed);
  // Keeps the owners: as root, the data belongs to the account that runs the server.
  await promisify(execFile)("cp", ["-a", seed, dataDir]);
}

async function buildSeed(seed: string): Promise<void> {
  await mkdir(CACHE, { recursive: true });
  const taken = await acquireProcessLock(`${seed}.lock`, 50_000);
  if ("holder" in taken)
    throw new Error(`process ${taken.holder.pid} has been building ${seed} for too long`);
  try {
    if (existsSync(seed)) return;
    const draft = `${seed}.draft`;
    await rm(draft, { recursive: true, force: true });
    const server = await EmbeddedPostgres.start({ dataDir: draft });
    const db = Database.connect(server.url, { max: 1 });
    await migrate(db);
    await db.close();
    await server.stop();
    for (const name of ["port", "server.log", "start.lock"]) await rm(join(draft, name), { recursive: true });
    await rename(draft, seed);
  } finally {
    await taken.lock.release();
  }
}
