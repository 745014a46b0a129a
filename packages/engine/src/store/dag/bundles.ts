/**
 * Code by content hash; rows are never updated. Code shared by many bundles (the SDK's part) is stored once, as a
 * shared chunk, and so is each file that bundles require. Written in the transaction of its versions, under the catalogue
 * lock: a concurrent cleanup cannot delete rows that have no reference yet.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** `head`, then the shared chunk, then `code` form one self-contained module. */
export interface StoredBundle {
  readonly head: string;
  readonly sharedChunk: StoredSharedChunk | null;
  readonly code: string;
  readonly sourceMap: string | null;
}

/** Declares `names` and refers to no other code. */
export interface StoredSharedChunk {
  readonly hash: string;
  readonly names: readonly string[];
  readonly code: string;
}

export interface StoredFile {
  readonly hash: string;
  readonly content: Uint8Array;
}

export type NamedBundle = StoredBundle & {
  readonly hash: string;
  /** Absent if the bundle requires no files. */
  readonly files?: readonly StoredFile[];
};

const ADD_BUNDLES = statement(
  "bundle-add",
  `INSERT INTO bundle (hash, head, shared_chunk_hash, code, source_map)
   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS u(hash) ORDER BY hash
   ON CONFLICT DO NOTHING`,
);

/** Shared chunks that are stored already, the usual case, are not sent. */
const KNOWN_SHARED_CHUNKS = statement(
  "bundle-known-shared-chunks",
  "SELECT hash FROM shared_chunk WHERE hash = ANY($1)",
);
const ADD_SHARED_CHUNKS = statement(
  "bundle-add-shared-chunks",
  `INSERT INTO shared_chunk (hash, names, code)
   SELECT u.hash, string_to_array(u.names, ' '), u.code
   FROM unnest($1::text[], $2::text[], $3::text[]) AS u(hash, names, code) ORDER BY u.hash
   ON CONFLICT DO NOTHING`,
);

const KNOWN_FILES = statement("bundle-known-files", "SELECT hash FROM bundled_file WHERE hash = ANY($1)");
const ADD_FILE = statement(
  "bundle-add-file",
  "INSERT INTO bundled_file (hash, content) VALUES ($1, $2) ON CONFLICT DO NOTHING",
);
const ADD_FILE_USES = statement(
  "bundle-add-file-uses",
  `INSERT INTO bundle_file (bundle_hash, file_hash)
   SELECT * FROM unnest($1::text[], $2::text[]) AS u(bundle, file) ORDER BY bundle, file
   ON CONFLICT DO NOTHING`,
);
const LOAD_FILE = statement("bundle-load-file", "SELECT content FROM bundled_file WHERE hash = $1");

const LOAD = statement(
  "bundle-load",
  `SELECT b.head, b.code, b.source_map AS "sourceMap", to_json(p) AS "sharedChunk"
   FROM bundle b LEFT JOIN (SELECT hash, names, code FROM shared_chunk) AS p ON p.hash = b.shared_chunk_hash
   WHERE b.hash = $1`,
);

/** Stores the bundles that are not stored yet. */
export async function addBundles(tx: Connection, bundles: readonly NamedBundle[]): Promise<void> {
  const added = byHash(bundles);
  await addSharedChunks(
    tx,
    byHash(added.map(({ sharedChunk }) => sharedChunk).filter((sharedChunk) => sharedChunk !== null)),
  );
  await tx.rows(ADD_BUNDLES, [
    added.map(({ hash }) => hash),
    added.map(({ head }) => head),
    added.map(({ sharedChunk }) => sharedChunk?.hash ?? null),
    added.map(({ code }) => code),
    added.map(({ sourceMap }) => sourceMap),
  ]);
  await addFiles(tx, added);
}

export function loadBundle(db: Connection, hash: string): Promise<StoredBundle | undefined> {
  return db.one<StoredBundle>(LOAD, [hash]);
}

export async function loadBundledFile(db: Connection, hash: string): Promise<Uint8Array | undefined> {
  return (await db.one<{ content: Uint8Array }>(LOAD_FILE, [hash]))?.content;
}

/** One statement per new file: files may be large. */
async function addFiles(tx: Connection, bundles: readonly NamedBundle[]): Promise<void> {
  const files = byHash(bundles.flatMap(({ files = [] }) => files));
  if (files.length === 0) return;
  const rows = await tx.rows<{ hash: string }>(KNOWN_FILES, [files.map(({ hash }) => hash)]);
  const known = new Set(rows.map(({ hash }) => hash));
  for (const { content, hash } of files) if (!known.has(hash)) await tx.rows(ADD_FILE, [hash, content]);
  const uses = bundles.flatMap(({ hash, files = [] }) => files.map((file) => [hash, file.hash] as const));
  await tx.rows(ADD_FILE_USES, [uses.map(([bundle]) => bundle), uses.map(([, file]) => file)]);
}

async function addSharedChunks(tx: Connection, sharedChunks: readonly StoredSharedChunk[]): Promise<void> {
  if (sharedChunks.length === 0) return;
  const rows = await tx.rows<{ hash: string }>(KNOWN_SHARED_CHUNKS, [sharedChunks.map(({ hash }) => hash)]);
  const known = new Set(rows.map(({ hash }) => hash));
  const added = sharedChunks.filter(({ hash }) => !known.has(hash));
  if (added.length === 0) return;
  await tx.rows(ADD_SHARED_CHUNKS, [
    added.map(({ hash }) => hash),
    added.map(({ names }) => names.join(" ")),
    added.map(({ code }) => code),
  ]);
}

function byHash<T extends { readonly hash: string }>(parts: readonly T[]): T[] {
  return [...new Map(parts.map((part) => [part.hash, part])).values()];
}
