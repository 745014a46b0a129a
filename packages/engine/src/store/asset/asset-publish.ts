/**
 * The assets named by DAGs, written in the transaction that publishes the DAGs. The catalogue lock admits one publisher
 * at a time. The first event of an asset may also create it, so the key of a new asset is locked as for a signal
 * (signals.ts).
 */
import type { AssetManifest, DagManifest } from "@tradewind/sdk/manifest";
import { ASSETS } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

type AssetOf<Kind extends AssetManifest["kind"]> = Extract<AssetManifest, { kind: Kind }>;

interface Use {
  readonly dagId: string;
  readonly taskId: string;
  readonly kind: "schedule" | "produces" | "consumes";
  readonly of: AssetManifest;
}

const MISSING = statement(
  "asset-find-missing",
  `SELECT u.uri FROM unnest($1::text[]) AS u(uri) WHERE NOT EXISTS (SELECT 1 FROM asset a WHERE a.uri = u.uri)`,
);

const LOCK = statement(
  "asset-lock-keys",
  "SELECT tw_lock_signals(array_fill($2::text, ARRAY[cardinality($1::text[])]), $1::text[])",
);

const ADD = statement(
  "asset-add",
  `INSERT INTO asset (uri) SELECT u.uri FROM unnest($1::text[]) AS u(uri) ORDER BY u.uri ON CONFLICT (uri) DO NOTHING`,
);

/** A DAG that gives no description keeps the stored one. */
const DESCRIBE = statement(
  "asset-describe",
  `UPDATE asset a SET group_name = u.group_name, description = coalesce(u.description, a.description), updated_at = now()
   FROM unnest($1::text[], $2::text[], $3::text[]) AS u(uri, group_name, description)
   WHERE a.uri = u.uri
     AND (a.group_name <> u.group_name OR a.description IS DISTINCT FROM coalesce(u.description, a.description))`,
);

const ADD_ALIASES = statement(
  "asset-alias-add",
  `INSERT INTO asset_alias (name, group_name)
   SELECT * FROM unnest($1::text[], $2::text[]) AS u(name, group_name) ORDER BY u.name
   ON CONFLICT (name) DO UPDATE SET group_name = excluded.group_name
   WHERE asset_alias.group_name <> excluded.group_name`,
);

const FORGET = statement("asset-use-forget", "DELETE FROM asset_use WHERE dag_id = ANY($1::text[])");

const USE = statement(
  "asset-use-add",
  `INSERT INTO asset_use (dag_id, task_id, kind, asset_id, alias_id)
   SELECT u.dag, u.task, u.kind, a.id, l.id
   FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[]) AS u(dag, task, kind, uri, alias)
   LEFT JOIN asset a ON a.uri = u.uri LEFT JOIN asset_alias l ON l.name = u.alias`,
);

/** Stores the assets of DAGs that have a new version. */
export async function setAssets(tx: Connection, dags: readonly DagManifest[]): Promise<void> {
  if (dags.length === 0) return;
  await tx.rows(FORGET, [dags.map(({ dagId }) => dagId)]);
  const uses = dags.flatMap(usesOf);
  if (uses.length === 0) return;
  await addAssets(
    tx,
    named(uses, "asset", ({ uri }) => uri),
  );
  const aliases = named(uses, "alias", ({ name }) => name);
  if (aliases.length > 0)
    await tx.rows(ADD_ALIASES, [aliases.map(({ name }) => name), aliases.map(({ group }) => group)]);
  await tx.rows(USE, [
    uses.map(({ dagId }) => dagId),
    uses.map(({ taskId }) => taskId),
    uses.map(({ kind }) => kind),
    uses.map(({ of }) => (of.kind === "asset" ? of.uri : null)),
    uses.map(({ of }) => (of.kind === "alias" ? of.name : null)),
  ]);
}

async function addAssets(tx: Connection, assets: readonly AssetOf<"asset">[]): Promise<void> {
  if (assets.length === 0) return;
  const uris = assets.map(({ uri }) => uri);
  const missing = (await tx.rows<{ uri: string }>(MISSING, [uris])).map(({ uri }) => uri);
  if (missing.length > 0) {
    await tx.rows(LOCK, [missing, ASSETS]);
    await tx.rows(ADD, [missing]);
  }
  const descriptions = assets.map(({ description }) => description);
  await tx.rows(DESCRIBE, [uris, assets.map(({ group }) => group), descriptions]);
}

function usesOf({ dagId, schedule, tasks }: DagManifest): Use[] {
  const gathered = schedule.kind === "signal" ? (schedule.gather?.assets ?? []) : [];
  return [
    ...gathered.map((of) => ({ dagId, taskId: "", kind: "schedule" as const, of })),
    ...tasks.flatMap(({ consumes = [], produces = [], taskId }) => [
      ...produces.map((of) => ({ dagId, taskId, kind: "produces" as const, of })),
      ...consumes.map((of) => ({ dagId, taskId, kind: "consumes" as const, of })),
    ]),
  ];
}

function named<Kind extends AssetManifest["kind"]>(
  uses: readonly Use[],
  kind: Kind,
  nameOf: (asset: AssetOf<Kind>) => string,
): AssetOf<Kind>[] {
  const all = uses.map(({ of }) => of).filter((of): of is AssetOf<Kind> => of.kind === kind);
  return [...new Map(all.map((each) => [nameOf(each), each])).values()];
}
