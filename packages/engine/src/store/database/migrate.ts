import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../../service/errors.ts";
import { sqlState } from "./connection-error.ts";
import type { Connection, Database } from "./database.ts";
import { statement } from "./statement.ts";

/**
 * Brings a database to the schema of this code: numbered files, forward only, each applied exactly once.
 *
 * Each migration is one transaction that takes an advisory lock and then reads the ledger again, so concurrent processes
 * may migrate, and a crash leaves the database at the last complete migration.
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

/** Applies the pending migrations and returns them. */
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

/** The applied and the pending migrations; rejects a database that this code cannot use, as `migrate` does. */
export async function migrationStatus(db: Database, options: MigrateOptions = {}): Promise<MigrationStatus> {
  const migrations = await readMigrations(options.folder);
  const ledger = await db.one<{ present: boolean }>(LEDGER_PRESENT);
  const applied = ledger?.present ? await readLedger(db) : [];
  return { applied, pending: pendingAfter(applied, migrations) };
}

/**
 * Rejects a database that lacks migrations of this code. Services call it at start; only `db migrate` and `standalone`
 * migrate, so that the operator decides when to upgrade.
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

/** The migrations of this code, in order. Their folder is beside this one in the source tree and in the built package. */
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
    // A user without the privilege to create tables can use a database that another user has migrated.
    const ledger = await tx.one<{ present: boolean }>(LEDGER_PRESENT);
    if (!ledger?.present) await tx.script(CREATE_LEDGER);
    const next = pendingAfter(await readLedger(tx), migrations)[0];
    if (next === undefined) return undefined;
    await tx.script(next.sql);
    await tx.rows(RECORD, [next.version, next.name, next.sha256]);
    return next;
  });
}

/** Since PostgreSQL 15 only the owner of a database may create tables in it, unless others are granted the privilege. */
function withRemedy(cause: unknown): unknown {
  if (!MISSING_RIGHTS.has(sqlState(cause) ?? "")) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new EngineError(
    "DATABASE_RIGHTS",
    `The user of DATABASE_URL lacks the privilege to create tables: ${reason}. Make it the owner (ALTER DATABASE … OWNER TO …), or grant the privilege (GRANT USAGE, CREATE ON SCHEMA public TO …), or run "tradewind db migrate" as a user who has it.`,
    { cause },
  );
}

/** insufficient_privilege; no usable schema. */
const MISSING_RIGHTS: ReadonlySet<string> = new Set(["42501", "3F000"]);

/** Prefix of the name of a migration that removes or changes objects that the previous version uses. */
const CONTRACT = "contract_";

function pendingAfter(applied: readonly AppliedMigration[], migrations: readonly Migration[]): Migration[] {
  for (const entry of applied) {
    const file = migrations[entry.version - 1];
    if (file === undefined) {
      // Additive migrations do not affect this code: during an upgrade, services of both versions run.
      if (!entry.name.startsWith(CONTRACT)) continue;
      throw new EngineError(
        "DATABASE_NEWER",
        `The database is at migration ${entry.version} (${entry.name}), which removes tables or columns that this version of Tradewind uses. Start the newer version, or restore a backup from before the upgrade.`,
        { details: { version: entry.version, known: migrations.length } },
      );
    }
    if (file.sha256 !== entry.sha256) {
      throw new EngineError(
        "MIGRATION_CHANGED",
        `Migration ${entry.version} (${entry.name}) was applied on ${entry.appliedAt.toISOString()} with contents that differ from this version's file ${file.name}. An applied migration must not be edited. Install the version that matches the database, or use a new database.`,
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
  // A checkout with CRLF line endings is the same migration.
  return createHash("sha256").update(text.replaceAll("\r\n", "\n")).digest("hex");
}

// An arbitrary number that other programs sharing the database are unlikely to use.
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
