import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Database } from "../../src/store/database/database.ts";
import { migrate } from "../../src/store/database/migrate.ts";
import { EmbeddedPostgres } from "../../src/store/embedded/embedded-postgres.ts";
import { givenServer, urlOf } from "./given-server.ts";
import { schemaHash } from "./seed-folder.ts";

/**
 * One PostgreSQL server for the whole test run, in `folder`, with a migrated template database that each test file clones.
 *
 * Several runs may share it at the same time: each holds a shared advisory lock while it runs. The run that can take the
 * lock exclusively at its end is the last one and stops the server. A killed run leaves the server running; the next run
 * adopts it.
 */
export interface SharedPostgres {
  readonly adminUrl: string;
  readonly template: string;
  /** The last run stops the server, and cleans up while no other run can begin. */
  stop(cleanUp: () => Promise<void>): Promise<void>;
}

export async function openSharedPostgres(folder: string): Promise<SharedPostgres> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(folder);
    } catch (error) {
      // Another run was just stopping the server: this one starts it again.
      if (attempt === 5) throw error;
      await sleep(200);
    }
  }
}

const IN_USE = 731_001;
const BUILDING = 731_002;

async function open(folder: string): Promise<SharedPostgres> {
  const given = givenServer();
  const server = given === undefined ? await startShared(folder) : null;
  const adminUrl = given ?? (server as EmbeddedPostgres).urlOf("postgres");
  const admin = new pg.Client({ connectionString: adminUrl, application_name: "test run" });
  admin.on("error", () => {});
  await admin.connect();
  await admin.query("SELECT pg_advisory_lock_shared($1)", [IN_USE]);
  const template = await buildTemplate(admin, adminUrl);
  return {
    adminUrl,
    template,
    stop: async (cleanUp) => {
      await admin.query("SELECT pg_advisory_unlock_shared($1)", [IN_USE]);
      const { rows } = await admin.query("SELECT pg_try_advisory_lock($1) AS last", [IN_USE]);
      if (rows[0].last === true) {
        await dropLeftovers(admin);
        await cleanUp();
        await server?.stop("fast");
      }
      await admin.end().catch(() => {});
    },
  };
}

async function startShared(folder: string): Promise<EmbeddedPostgres> {
  await mkdir(folder, { recursive: true });
  const server = await EmbeddedPostgres.start({
    dataDir: join(folder, `uid-${process.getuid?.() ?? 0}`),
    // Durability is tested on separate servers.
    settings: { fsync: "off", full_page_writes: "off", max_connections: 300, max_wal_size: "1GB" },
  });
  server.release();
  return server;
}

async function buildTemplate(admin: pg.Client, adminUrl: string): Promise<string> {
  const name = `tw_template_${await schemaHash()}`;
  await admin.query("SELECT pg_advisory_lock($1)", [BUILDING]);
  try {
    const { rows } = await admin.query("SELECT datistemplate AS done FROM pg_database WHERE datname = $1", [
      name,
    ]);
    if (rows[0]?.done === true) return name;
    await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await admin.query(`CREATE DATABASE ${name}`);
    const db = Database.connect(urlOf(adminUrl, name), { max: 1 });
    await migrate(db);
    await db.close();
    // Marked last: a partly built template is built again.
    await admin.query(`ALTER DATABASE ${name} IS_TEMPLATE true`);
    return name;
  } finally {
    await admin.query("SELECT pg_advisory_unlock($1)", [BUILDING]);
  }
}

/** Test databases of killed runs, and templates of outdated migrations. */
async function dropLeftovers(admin: pg.Client): Promise<void> {
  const { rows } = await admin.query<{ datname: string }>(
    "SELECT datname FROM pg_database WHERE datname LIKE 'tw\\_test\\_%'",
  );
  for (const { datname } of rows) await admin.query(`DROP DATABASE IF EXISTS ${datname} WITH (FORCE)`);
}
