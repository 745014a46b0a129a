import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../../service/errors.ts";
import { sqlState } from "./connection-error.ts";
import type { Connection, Database } from "./database.ts";
import { statement } from "./statement.ts";

/**
 * Brings a database to the schema of this code: numbered files, only upwards, each exactly once.
 *
 * Each migration is one transaction that first takes an advisory lock and then reads the ledger again, so any number
 * of processes may migrate at once, and one that dies leaves the last whole migration behind.
 */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sha256: string;
  readonly sql: string;
}

export interface MigrationStatus {
  readonly applied: readonly AppliedMigration[];
  readonly pending: readonly Migration[];
}

interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  readonly sha256: string;
  readonly appliedAt: Date;
}

export interface MigrateOptions {
  readonly onProgress?: (migration: Migration) => void;
  readonly folder?: string;
}

/** Applies what is pending and returns it. */
export async function migrate(db: Database, options: MigrateOptions = {}): Promise<Migration[]> {
  const migrations = await readMigrations(options.folder);
  const done: Migration[] = [];
  for (;;) {
    const applied = await applyNext(db, migrations).catch((error) => Promise.reject(withRemedy(error)));
    if (applied === undefined) return done;
    done.push(applied);
    options.onProgress?.(applied);
  }
}

/** What is applied and what is not; refuses a database that this code cannot use, as `migrate` does. */
export async function migrationStatus(db: Database, options: MigrateOptions = {}): Promise<MigrationStatus> {
  const migrations = await readMigrations(options.folder);
  const ledger = await db.one<{ present: boolean }>(LEDGER_PRESENT);
  const applied = ledger?.present ? await readLedger(db) : [];
  return { applied, pending: pendingAfter(applied, migrations) };
}

/**
 * Refuses a database that lacks migrations of this code. Services call it when they start; only `db migrate` and
 * `standalone` migrate, so that an upgrade happens when its operator decides it.
 */
export async function requireSchema(db: Database, options: MigrateOptions = {}): Promise<void> {
  const { applied, pending } = await migrationStatus(db, options);
  const [first] = pending;
  if (first === undefined) return;
  const state =
    applied.length === 0 ? "is not set up yet" : `lacks migration ${first.version} (${first.name})`;
  throw new EngineError(
    "DATABASE_NOT_MIGRATED",
    `The database ${state}. Run "tradewind db migrate" with this version once, then start the services.`,
    { details: { applied: applied.length, pending: pending.length } },
  );
}

/** The migrations this code brings, in order. Beside this file both in the source tree and in the built package. */
export async function readMigrations(
  folder = join(import.meta.dirname, "../migrations"),
): Promise<Migration[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort();
  return Promise.all(
    files.map(async (file, index) => {
      const match = /^(\d{4})_([a-z0-9_]+)\.sql$/.exec(file);
      if (match === null || Number(match[1]) !== index + 1) {
        throw new EngineError(
          "MIGRATION_FILES",
          `Migration file "${file}" must be named ${String(index + 1).padStart(4, "0")}_<what>.sql: numbers have no gap and no repetition.`,
        );
      }
      const sql = await readFile(join(folder, file), "utf8");
      return { version: index + 1, name: match[2] as string, sha256: sha256(sql), sql };
    }),
  );
}

async function applyNext(db: Database, migrations: readonly Migration[]): Promise<Migration | undefined> {
  return db.transaction(async (tx) => {
    // Another process may be migrating for minutes: wait for it without a limit, but not for other locks after that.
    await tx.script(
      `SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(${LOCK}); SET LOCAL lock_timeout = '15s'`,
    );
    // Whoever only works with what another user has made needs no right to make anything.
    const ledger = await tx.one<{ present: boolean }>(LEDGER_PRESENT);
    if (!ledger?.present) await tx.script(CREATE_LEDGER);
    const next = pendingAfter(await readLedger(tx), migrations)[0];
    if (next === undefined) return undefined;
    await tx.script(next.sql);
    await tx.rows(RECORD, [next.version, next.name, next.sha256]);
    return next;
  });
}

/** Since PostgreSQL 15 only the owner of a database may make tables in it, until others are given the right. */
function withRemedy(cause: unknown): unknown {
  if (!MISSING_RIGHTS.has(sqlState(cause) ?? "")) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EngineError(
    "DATABASE_RIGHTS",
    `The user of DATABASE_URL may not make tables in the database: ${reason}. Make it the owner (ALTER DATABASE … OWNER TO …), or give it the right (GRANT USAGE, CREATE ON SCHEMA public TO …), or run "tradewind db migrate" as a user who may.`,
    { cause },
  );
}

/** insufficient_privilege; no schema that it may use. */
const MISSING_RIGHTS: ReadonlySet<string> = new Set(["42501", "3F000"]);

/** The name of a migration that removes or changes what the version before it uses begins with this. */
const CONTRACT = "contract_";

function pendingAfter(applied: readonly AppliedMigration[], migrations: readonly Migration[]): Migration[] {
  for (const entry of applied) {
    const file = migrations[entry.version - 1];
    if (file === undefined) {
      // What only adds does not concern this code: during an upgrade, services of both versions run.
      if (!entry.name.startsWith(CONTRACT)) continue;
      throw new EngineError(
        "DATABASE_NEWER",
        `The database is at migration ${entry.version} (${entry.name}), which removes what this version of Tradewind uses: start the newer version, or restore a backup from before the upgrade.`,
        { details: { version: entry.version, known: migrations.length } },
      );
    }
    if (file.sha256 !== entry.sha256) {
      throw new EngineError(
        "MIGRATION_CHANGED",
        `Migration ${entry.version} (${entry.name}) was applied on ${entry.appliedAt.toISOString()} with other contents than this version's file ${file.name}: a migration is never edited once applied. Install the version that matches the database, or use a new database.`,
        { details: { version: entry.version, applied: entry.sha256, file: file.sha256 } },
      );
    }
  }
  return migrations.slice(applied.length);
}

async function readLedger(connection: Connection): Promise<AppliedMigration[]> {
  return connection.rows<AppliedMigration>(LEDGER);
}

function sha256(text: string): string {
  // A checkout that turns line ends into CRLF is the same migration.
  return createHash("sha256").update(text.replaceAll("\r\n", "\n")).digest("hex");
}

// Any number that no other program sharing the database is likely to take.
const LOCK = 8_317_264_002;

const CREATE_LEDGER = `
  CREATE TABLE IF NOT EXISTS schema_migration (
    version    integer PRIMARY KEY,
    name       text NOT NULL,
    sha256     text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
  )`;

const LEDGER_PRESENT = statement(
  "schema_migration_present",
  "SELECT to_regclass('schema_migration') IS NOT NULL AS present",
);

const LEDGER = statement(
  "schema_migration_list",
  `SELECT version, name, sha256, applied_at AS "appliedAt" FROM schema_migration ORDER BY version`,
);

const RECORD = statement(
  "schema_migration_record",
  "INSERT INTO schema_migration (version, name, sha256) VALUES ($1, $2, $3)",
);
