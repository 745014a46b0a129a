/** Path and label of mapped instances: for a page of instances, or from a path or label to the instance. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  compileScopes,
  type Expansion,
  Expansions,
  type Scope,
  unexpandedAt,
  unexpandedIndex,
} from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { type LoadedExpansion, loadExpansions } from "../task/map-expansions.ts";
import { readManifests } from "./dag-versions.ts";

export interface MapPlace {
  /**
   * Its index in each surrounding list, outermost first. Shorter than the number of surrounding maps: it stands for all
   * instances that are not expanded yet. Null: the task is not mapped, or not expanded at all.
   */
  readonly path: readonly number[] | null;
  readonly label: string | null;
}

interface InstanceKey {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly version_id: number;
}

/** An instance with its run, as lists show it. */
export interface PlacedInstance extends InstanceKey {
  readonly dag_id: string;
  readonly run_id: string;
  readonly place: MapPlace;
}

const NOWHERE: MapPlace = { path: null, label: null };

/** In the order of the rows. Without mapped instances there is no query, without nested maps there are two short ones. */
export async function readMapPlaces(
  connection: Connection,
  rows: readonly InstanceKey[],
): Promise<MapPlace[]> {
  const mapped = rows.filter(({ map_index }) => map_index !== -1);
  if (mapped.length === 0) return rows.map(() => NOWHERE);
  const [labels, nested] = await Promise.all([
    readLabels(connection, mapped),
    readNested(connection, mapped),
  ]);
  return rows.map((row) => {
    const { dag_run_id, map_index, task_id } = row;
    if (map_index === -1) return NOWHERE;
    return {
      path: nested.get(dag_run_id)?.path(task_id, map_index) ?? (map_index < 0 ? null : [map_index]),
      label: labels.get(`${dag_run_id} ${map_index} ${task_id}`) ?? null,
    };
  });
}

export async function withMapPlaces<R extends InstanceKey>(
  connection: Connection,
  rows: readonly R[],
): Promise<(R & { readonly place: MapPlace })[]> {
  const places = await readMapPlaces(connection, rows);
  return rows.map((row, index) => ({ ...row, place: places[index]! }));
}

async function readLabels(
  connection: Connection,
  keys: readonly InstanceKey[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await connection.rows<{ run: number; task: string; map: number; label: string }>(
    adhoc(`SELECT u.run, u.task, u.map, l.label FROM unnest($1::int8[], $2::text[], $3::int4[]) AS u(run, task, map)
      JOIN map_label l ON l.dag_run_id = u.run AND l.task_id = u.task AND l.map_index = u.map`),
    [keys.map((key) => key.dag_run_id), keys.map((key) => key.task_id), keys.map((key) => key.map_index)],
  );
  return new Map(rows.map(({ label, map, run, task }) => [`${run} ${map} ${task}`, label]));
}

/** For runs with nested maps: otherwise the map index is the path. */
async function readNested(
  connection: Connection,
  keys: readonly InstanceKey[],
): Promise<ReadonlyMap<number, RunMaps>> {
  const versions = new Map(keys.map(({ dag_run_id, version_id }) => [dag_run_id, version_id]));
  const nested = await connection.rows<{ dag_run_id: number }>(
    adhoc("SELECT DISTINCT dag_run_id FROM map_expansion WHERE dag_run_id = ANY($1) AND parent >= 0"),
    [[...versions.keys()]],
  );
  // A row for unexpanded instances of an item is in a nested map, even if none of its lists has been expanded.
  const unexpanded = keys.filter(({ map_index }) => map_index < -1);
  const runs = [...new Set([...nested, ...unexpanded].map(({ dag_run_id }) => dag_run_id))];
  if (runs.length === 0) return new Map();
  const [manifests, expansions] = await Promise.all([
    readManifests(connection, [...new Set(runs.map((run) => versions.get(run)!))]),
    loadExpansions(connection, runs),
  ]);
  return new Map(
    runs.flatMap((run) => {
      const manifest = manifests.get(versions.get(run)!);
      const own = expansions.filter(({ dag_run_id }) => dag_run_id === run);
      return manifest ? [[run, new RunMaps(manifest, own)]] : [];
    }),
  );
}

export class RunMaps {
  readonly #scopes: ReadonlyMap<string, Scope>;
  readonly #scopeOf: ReadonlyMap<string, Scope | undefined>;
  readonly #expansions: Expansions;

  constructor(manifest: DagManifest, expansions: readonly LoadedExpansion[]) {
    this.#scopes = compileScopes(manifest, manifest.tasks);
    this.#scopeOf = new Map(manifest.tasks.map(({ map, taskId }) => [taskId, this.#scopes.get(map ?? "")]));
    this.#expansions = new Expansions(this.#scopes.size);
    for (const { base, length, map_id, parent, tries } of expansions) {
      const scope = this.#scopes.get(map_id);
      if (scope) this.#expansions.restore({ scope, parent, base, length, tries, made: length });
    }
  }

  path(taskId: string, mapIndex: number): readonly number[] | null {
    const scope = this.#scopeOf.get(taskId);
    if (!scope) return null;
    const { level, ordinal } =
      mapIndex < 0 ? unexpandedAt(scope.depth, mapIndex) : { level: scope.depth, ordinal: mapIndex };
    const path: number[] = [];
    let at = ordinal;
    for (let each = scope.chain[level - 1] ?? null; each !== null; each = each.parent) {
      const expansion: Expansion | undefined = this.#expansions.around(each, at);
      // A row that an earlier version of the DAG left.
      if (!expansion || at >= expansion.base + expansion.length) return null;
      path.unshift(at - expansion.base);
      at = expansion.parent;
    }
    return level === 0 ? null : path;
  }

  /** The map index at the end of a path, or the depth at which the path does not exist. */
  find(
    taskId: string,
    path: readonly number[],
  ): number | { readonly at: readonly number[]; readonly length: number } {
    let parent = -1;
    for (const [depth, index] of path.entries()) {
      const scope = this.#scopeOf.get(taskId)?.chain[depth];
      const expansion = scope && this.#expansions.find({ scope, parent });
      if (!expansion || index >= expansion.length)
        return { at: path.slice(0, depth), length: expansion?.length ?? 0 };
      parent = expansion.base + index;
    }
    return parent;
  }

  /** The map index of the row for unexpanded instances in the item at the end of a path; null: no such item. */
  findUnexpanded(taskId: string, path: readonly number[]): number | null {
    const depth = this.depth(taskId);
    const found = path.length > 0 && path.length < depth ? this.find(taskId, path) : null;
    return typeof found === "number" ? unexpandedIndex(depth, path.length, found) : null;
  }

  has(taskId: string): boolean {
    return this.#scopeOf.has(taskId);
  }

  /** The number of nested maps around a task. */
  depth(taskId: string): number {
    return this.#scopeOf.get(taskId)?.depth ?? 0;
  }
}

interface TaskKey {
  readonly dagRunId: number;
  readonly taskId: string;
}

/** The first few instances of a task with this label. */
export async function findLabelled(
  connection: Connection,
  { dagRunId, taskId }: TaskKey,
  label: string,
): Promise<number[]> {
  const rows = await connection.rows<{ map_index: number }>(
    adhoc(`SELECT map_index FROM map_label WHERE dag_run_id = $1 AND task_id = $2 AND label = $3
      ORDER BY map_index LIMIT 5`),
    [dagRunId, taskId, label],
  );
  return rows.map(({ map_index }) => map_index);
}

export interface MapRange {
  /** The number of expanded instances. */
  readonly count: number;
  readonly first: number | null;
  readonly last: number | null;
  /** Whether an instance has the requested index; also true for a row of unexpanded instances. */
  readonly has: boolean;
}

export async function readMapRange(
  connection: Connection,
  { dagRunId, taskId }: TaskKey,
  mapIndex: number | null,
): Promise<MapRange> {
  const row = await connection.one<MapRange>(
    adhoc(`SELECT count(*) FILTER (WHERE map_index >= 0)::int8 AS count, min(map_index) FILTER (WHERE map_index >= 0) AS first,
        max(map_index) FILTER (WHERE map_index >= 0) AS last, coalesce(bool_or(map_index = $3::int8), false) AS has
      FROM task_instance WHERE dag_run_id = $1 AND task_id = $2 AND map_index <> -1`),
    [dagRunId, taskId, mapIndex],
  );
  return row!;
}

/** The first of these instances that the run does not have. */
export async function findMissing(
  connection: Connection,
  dagRunId: number,
  keys: readonly { readonly taskId: string; readonly mapIndex: number }[],
): Promise<{ readonly taskId: string; readonly mapIndex: number } | undefined> {
  if (keys.length === 0) return undefined;
  return connection.one(
    adhoc(`SELECT u.task AS "taskId", u.map AS "mapIndex"
      FROM unnest($2::text[], $3::int4[]) WITH ORDINALITY AS u(task, map, place)
      WHERE NOT EXISTS (SELECT 1 FROM task_instance t
                        WHERE t.dag_run_id = $1 AND t.task_id = u.task AND t.map_index = u.map)
      ORDER BY u.place LIMIT 1`),
    [dagRunId, keys.map(({ taskId }) => taskId), keys.map(({ mapIndex }) => mapIndex)],
  );
}
