/**
 * What feeds what: DAGs, assets and aliases around one of them, or all. Reads the uses that the current versions declare, and no
 * history.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** More are neither readable nor fast to draw. */
const MOST_USES = 2_000;

export interface LineageUse {
  readonly dag_id: string;
  /** "": the DAG's schedule. */
  readonly task_id: string;
  readonly kind: "schedule" | "produces" | "consumes";
  readonly asset_id: number | null;
  readonly alias_id: number | null;
}

interface LineageAsset {
  readonly id: number;
  readonly uri: string;
  readonly group_name: string;
  readonly last_event_at: Date | null;
}

interface LineageDag {
  readonly dag_id: string;
  readonly is_paused: boolean;
  /** Of its latest run. */
  readonly state: string | null;
}

export interface Lineage {
  readonly uses: readonly LineageUse[];
  readonly assets: readonly LineageAsset[];
  readonly aliases: readonly { readonly id: number; readonly name: string }[];
  readonly dags: readonly LineageDag[];
  /** There are more uses. */
  readonly more: boolean;
}

const USES = "FROM asset_use u JOIN dag d ON d.dag_id = u.dag_id AND NOT d.is_stale";
const COLUMNS = "u.dag_id, u.task_id, u.kind, u.asset_id, u.alias_id";
const ORDER = "ORDER BY u.dag_id, u.task_id, u.kind, u.asset_id, u.alias_id";

/** Indexes: asset_use_dag, asset_use_asset, asset_use_alias. Downstream ($4): what DAGs produce, and who uses assets. */
const NEXT = statement(
  "ui-lineage-next",
  `SELECT ${COLUMNS} ${USES}
   WHERE (u.dag_id = ANY($1::text[]) AND (u.kind = 'produces') = $4::boolean)
      OR ((u.asset_id = ANY($2::bigint[]) OR u.alias_id = ANY($3::bigint[])) AND (u.kind = 'produces') <> $4::boolean)
   ${ORDER} LIMIT $5`,
);

const ALL = statement("ui-lineage-all", `SELECT ${COLUMNS} ${USES} ${ORDER} LIMIT $1`);

/** Index: asset_event_asset. */
const ASSETS = statement(
  "ui-lineage-assets",
  `SELECT a.id, a.uri, a.group_name, last.created_at AS last_event_at FROM asset a
   LEFT JOIN LATERAL (SELECT e.created_at FROM asset_event e WHERE e.asset_id = a.id ORDER BY e.id DESC LIMIT 1) AS last ON true
   WHERE a.id = ANY($1::bigint[]) ORDER BY a.uri`,
);

const ALIASES = statement(
  "ui-lineage-aliases",
  "SELECT l.id, l.name FROM asset_alias l WHERE l.id = ANY($1::bigint[]) ORDER BY l.name",
);

/** Index: dag_run_latest. */
const DAGS = statement(
  "ui-lineage-dags",
  `SELECT d.dag_id, d.is_paused, last.state FROM dag d
   LEFT JOIN LATERAL (SELECT r.state FROM dag_run r WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1)
     AS last ON true
   WHERE d.dag_id = ANY($1::text[]) ORDER BY d.dag_id`,
);

export interface LineageStart {
  readonly assetId?: number | undefined;
  readonly dagId?: string | undefined;
}

/** @param depth How many steps between a DAG and an asset are followed, in each direction. */
export async function readLineage(
  db: Connection,
  { assetId, dagId }: LineageStart,
  depth: number,
): Promise<Lineage> {
  const found = new Map<string, LineageUse>();
  const add = (uses: readonly LineageUse[]) => {
    for (const use of uses) found.set(Object.values(use).join("\0"), use);
  };
  let more = false;
  if (assetId === undefined && dagId === undefined) {
    const uses = await db.rows<LineageUse>(ALL, [MOST_USES + 1]);
    more = uses.length > MOST_USES;
    add(uses.slice(0, MOST_USES));
  } else
    for (const isDownstream of [false, true]) {
      const walk = new Walk({ assetId, dagId });
      for (let step = 0; step < depth && walk.isOpen && !more; step += 1) {
        const uses = await db.rows<LineageUse>(NEXT, [...walk.next(), isDownstream, MOST_USES + 1]);
        more = uses.length > MOST_USES || found.size + uses.length > MOST_USES;
        const kept = uses.slice(0, Math.max(0, MOST_USES - found.size));
        add(kept);
        walk.reach(kept);
      }
    }
  const uses = [...found.values()];
  const ids = (of: readonly (number | null | undefined)[]) => [...new Set(of)].filter((id) => id != null);
  const [assets, aliases, dags] = await Promise.all([
    db.rows<LineageAsset>(ASSETS, [ids([assetId, ...uses.map(({ asset_id }) => asset_id)])]),
    db.rows<{ id: number; name: string }>(ALIASES, [ids(uses.map(({ alias_id }) => alias_id))]),
    db.rows<LineageDag>(DAGS, [
      [...new Set([...(dagId === undefined ? [] : [dagId]), ...uses.map(({ dag_id }) => dag_id)])],
    ]),
  ]);
  return { uses, assets, aliases, dags, more };
}

/** One direction from the start: which DAGs, assets and aliases were reached, and which of them last. */
class Walk {
  readonly #known = { dags: new Set<string>(), assets: new Set<number>(), aliases: new Set<number>() };
  #last: { dags: string[]; assets: number[]; aliases: number[] } = { dags: [], assets: [], aliases: [] };

  constructor({ assetId, dagId }: LineageStart) {
    if (dagId !== undefined) this.#last.dags.push(dagId);
    if (assetId !== undefined) this.#last.assets.push(assetId);
    for (const id of this.#last.dags) this.#known.dags.add(id);
    for (const id of this.#last.assets) this.#known.assets.add(id);
  }

  get isOpen(): boolean {
    const { aliases, assets, dags } = this.#last;
    return dags.length + assets.length + aliases.length > 0;
  }

  next(): readonly [string[], number[], number[]] {
    const { aliases, assets, dags } = this.#last;
    this.#last = { dags: [], assets: [], aliases: [] };
    return [dags, assets, aliases];
  }

  reach(uses: readonly LineageUse[]): void {
    const { aliases, assets, dags } = this.#known;
    for (const use of uses) {
      if (!dags.has(use.dag_id)) this.#last.dags.push(use.dag_id);
      dags.add(use.dag_id);
      if (use.asset_id !== null && !assets.has(use.asset_id)) this.#last.assets.push(use.asset_id);
      if (use.asset_id !== null) assets.add(use.asset_id);
      if (use.alias_id !== null && !aliases.has(use.alias_id)) this.#last.aliases.push(use.alias_id);
      if (use.alias_id !== null) aliases.add(use.alias_id);
    }
  }
}
