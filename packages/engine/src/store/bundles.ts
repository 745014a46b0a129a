/**
 * Code, by content hash; never updated. What many bundles share, the SDK's part of each, is stored once, as a prelude.
 * Written in the transaction of the versions that it belongs to, under the catalogue's lock: nobody clears away meanwhile
 * what nothing refers to yet.
 */
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

/** `head`, then the prelude, then `code`, is one module that needs no other. */
export interface StoredBundle {
  readonly head: string;
  readonly prelude: StoredPrelude | null;
  readonly code: string;
  readonly sourceMap: string | null;
}

/** It declares `names`, and refers to nothing. */
export interface StoredPrelude {
  readonly hash: string;
  readonly names: readonly string[];
  readonly code: string;
}

export type NamedBundle = StoredBundle & { readonly hash: string };

const ADD_BUNDLES = statement(
  "bundle-add",
  `INSERT INTO bundle (hash, head, prelude_hash, code, source_map)
   SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS u(hash) ORDER BY hash
   ON CONFLICT DO NOTHING`,
);

/** Those that are there already, as almost always, are not sent along. */
const KNOWN_PRELUDES = statement("bundle-known-preludes", "SELECT hash FROM prelude WHERE hash = ANY($1)");
const ADD_PRELUDES = statement(
  "bundle-add-preludes",
  `INSERT INTO prelude (hash, names, code)
   SELECT u.hash, string_to_array(u.names, ' '), u.code
   FROM unnest($1::text[], $2::text[], $3::text[]) AS u(hash, names, code) ORDER BY u.hash
   ON CONFLICT DO NOTHING`,
);

const LOAD = statement(
  "bundle-load",
  `SELECT b.head, b.code, b.source_map AS "sourceMap", to_json(p) AS prelude
   FROM bundle b LEFT JOIN (SELECT hash, names, code FROM prelude) AS p ON p.hash = b.prelude_hash
   WHERE b.hash = $1`,
);

/** Those that are there already stay as they are. */
export async function addBundles(tx: Connection, bundles: readonly NamedBundle[]): Promise<void> {
  const added = byHash(bundles);
  await addPreludes(tx, byHash(added.map(({ prelude }) => prelude).filter((prelude) => prelude !== null)));
  await tx.rows(ADD_BUNDLES, [
    added.map(({ hash }) => hash),
    added.map(({ head }) => head),
    added.map(({ prelude }) => prelude?.hash ?? null),
    added.map(({ code }) => code),
    added.map(({ sourceMap }) => sourceMap),
  ]);
}

export function loadBundle(db: Connection, hash: string): Promise<StoredBundle | undefined> {
  return db.one<StoredBundle>(LOAD, [hash]);
}

async function addPreludes(tx: Connection, preludes: readonly StoredPrelude[]): Promise<void> {
  if (preludes.length === 0) return;
  const rows = await tx.rows<{ hash: string }>(KNOWN_PRELUDES, [preludes.map(({ hash }) => hash)]);
  const known = new Set(rows.map(({ hash }) => hash));
  const added = preludes.filter(({ hash }) => !known.has(hash));
  if (added.length === 0) return;
  await tx.rows(ADD_PRELUDES, [
    added.map(({ hash }) => hash),
    added.map(({ names }) => names.join(" ")),
    added.map(({ code }) => code),
  ]);
}

function byHash<T extends { readonly hash: string }>(parts: readonly T[]): T[] {
  return [...new Map(parts.map((part) => [part.hash, part])).values()];
}
