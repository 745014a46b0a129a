/**
 * The catalogue of DAGs: the DAGs that each file of the DAG folder declared last, with version and code. A file that is
 * broken or deleted keeps its versions: runs of these versions continue.
 */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface CatalogueFile {
  /** Its DAGs, with the bundle hash of their current version. */
  readonly dags: ReadonlyMap<string, { readonly bundleHash: string; readonly isStale: boolean }>;
  readonly error: string | null;
}

export interface DagVersion {
  readonly dagId: string;
  readonly number: number;
  readonly bundleHash: string;
  readonly manifest: DagManifest;
}

/** Held to the end of every transaction that changes the catalogue. */
export const CATALOGUE_LOCK = statement(
  "catalogue-lock",
  "SELECT pg_advisory_xact_lock(hashtextextended('tradewind.dag-catalogue', 0))",
);

export const LOCK_DAGS = statement(
  "catalogue-lock-dags",
  `SELECT dag_id FROM dag WHERE dag_id = ANY($1::text[]) OR file = ANY($2::text[])
   ORDER BY dag_id FOR NO KEY UPDATE`,
);

/** Marks DAGs of these files that the files no longer declare. */
export const MARK_STALE = statement(
  "catalogue-mark-stale",
  `UPDATE dag SET is_stale = true WHERE file = ANY($1::text[]) AND NOT is_stale AND dag_id <> ALL($2::text[])
   RETURNING dag_id`,
);

export const CLEAR_ERRORS = statement(
  "catalogue-clear-errors",
  "DELETE FROM import_error WHERE file = ANY($1::text[]) RETURNING file",
);

const SET_ERROR = statement(
  "catalogue-set-error",
  `INSERT INTO import_error (file, message) VALUES ($1, $2)
   ON CONFLICT (file) DO UPDATE SET message = excluded.message, created_at = now()
     WHERE import_error.message <> excluded.message
   RETURNING id`,
);

export const NOTIFY = statement("catalogue-notify", "SELECT pg_notify('tradewind', 'dags')");

const READ_FILES = statement(
  "catalogue-read-files",
  `SELECT d.file, d.dag_id, d.is_stale, v.bundle_hash, NULL AS message
   FROM dag d JOIN dag_version v ON v.id = d.version_id
   UNION ALL SELECT file, NULL, false, NULL, message FROM import_error`,
);

const LOAD_VERSION = statement(
  "catalogue-load-version",
  "SELECT dag_id, number, bundle_hash, manifest FROM dag_version WHERE id = $1",
);

/** The file's DAGs keep their last published version. Returns whether the error is new or changed. */
export function recordImportError(db: Database, file: string, message: string): Promise<boolean> {
  return db.transaction(async (tx) => {
    const isNews = (await tx.rows(SET_ERROR, [file, message.replaceAll("\u0000", "")])).length > 0;
    if (isNews) await tx.rows(NOTIFY);
    return isNews;
  });
}

/** Removes deleted files: their DAGs become stale, their import errors are deleted. Returns these DAGs. */
export function removeFiles(db: Database, files: readonly string[]): Promise<string[]> {
  return db.transaction(async (tx) => {
    await tx.rows(CATALOGUE_LOCK);
    await tx.rows(LOCK_DAGS, [[], files]);
    const stale = await tx.rows<{ dag_id: string }>(MARK_STALE, [files, []]);
    const cleared = await tx.rows(CLEAR_ERRORS, [files]);
    if (stale.length > 0 || cleared.length > 0) await tx.rows(NOTIFY);
    return stale.map((row) => row.dag_id);
  });
}

export async function readCatalogue(db: Connection): Promise<Map<string, CatalogueFile>> {
  const files = new Map<
    string,
    { dags: Map<string, { bundleHash: string; isStale: boolean }>; error: string | null }
  >();
  for (const row of await db.rows<CatalogueRow>(READ_FILES)) {
    const entry = files.get(row.file) ?? { dags: new Map(), error: null };
    files.set(row.file, entry);
    if (row.dag_id === null) entry.error = row.message;
    else entry.dags.set(row.dag_id, { bundleHash: row.bundle_hash ?? "", isStale: row.is_stale });
  }
  return files;
}

export async function loadVersion(db: Connection, versionId: number): Promise<DagVersion | undefined> {
  const row = await db.one<{ dag_id: string; number: number; bundle_hash: string; manifest: DagManifest }>(
    LOAD_VERSION,
    [versionId],
  );
  if (!row) return undefined;
  return { dagId: row.dag_id, number: row.number, bundleHash: row.bundle_hash, manifest: row.manifest };
}

interface CatalogueRow {
  readonly file: string;
  readonly dag_id: string | null;
  readonly is_stale: boolean;
  readonly bundle_hash: string | null;
  readonly message: string | null;
}
