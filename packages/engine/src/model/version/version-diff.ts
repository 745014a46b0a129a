/**
 * The differences between two versions of a DAG, computed from their manifests alone. Every member of a manifest is
 * compared, whether this code knows it or not, so that a new option is covered automatically. A missing member counts as
 * null. Order edges and data edges are reported as edges, not as fields of a task.
 */
import type { DagManifest, Json } from "@tradewind/sdk/manifest";

interface FieldChange {
  readonly field: string;
  readonly from: Json;
  readonly to: Json;
}

interface Edge {
  readonly from: string;
  readonly to: string;
}

/** The changes to tasks, groups or maps, by id. */
interface PartsDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly changed: readonly { readonly id: string; readonly fields: readonly FieldChange[] }[];
}

export interface VersionDiff {
  /** The schedule, the limits and the other options of the DAG itself. */
  readonly options: readonly FieldChange[];
  readonly tasks: PartsDiff;
  readonly edges: { readonly added: readonly Edge[]; readonly removed: readonly Edge[] };
  readonly groups: PartsDiff;
  readonly maps: PartsDiff;
}

export function diffVersions(from: DagManifest, to: DagManifest): VersionDiff {
  const { tasks: oldTasks, groups: oldGroups, maps: oldMaps, ...oldOptions } = from;
  const { tasks, groups, maps, ...options } = to;
  return {
    options: fieldChanges(oldOptions, options),
    tasks: diffParts(oldTasks, tasks, { idOf: ({ taskId }) => taskId, without: "upstream" }),
    edges: { added: edgesOnlyIn(to, from), removed: edgesOnlyIn(from, to) },
    groups: diffParts(oldGroups, groups, { idOf: ({ groupId }) => groupId }),
    maps: diffParts(oldMaps ?? [], maps ?? [], { idOf: ({ mapId }) => mapId }),
  };
}

/** Whether the manifests are equal. Their code may still differ. */
export function isSameShape({ options, tasks, edges, groups, maps }: VersionDiff): boolean {
  const isEmpty = (parts: PartsDiff) =>
    parts.added.length + parts.removed.length + parts.changed.length === 0;
  return (
    options.length + edges.added.length + edges.removed.length === 0 &&
    [tasks, groups, maps].every((parts) => isEmpty(parts))
  );
}

function diffParts<T extends object>(
  from: readonly T[],
  to: readonly T[],
  { idOf, without }: { idOf: (part: T) => string; without?: string },
): PartsDiff {
  const old = new Map(from.map((part) => [idOf(part), part]));
  const now = new Map(to.map((part) => [idOf(part), part]));
  const changed = [...now].flatMap(([id, part]) => {
    const former = old.get(id);
    const fields = former ? fieldChanges(former, part).filter(({ field }) => field !== without) : [];
    return fields.length === 0 ? [] : [{ id, fields }];
  });
  return {
    added: [...now.keys()].filter((id) => !old.has(id)),
    removed: [...old.keys()].filter((id) => !now.has(id)),
    changed,
  };
}

function fieldChanges(from: object, to: object): FieldChange[] {
  const old = new Map<string, Json>(Object.entries(from));
  const now = new Map<string, Json>(Object.entries(to));
  return [...new Set([...old.keys(), ...now.keys()])]
    .map((field) => ({ field, from: old.get(field) ?? null, to: now.get(field) ?? null }))
    .filter((change) => !isSame(change.from, change.to));
}

function edgesOnlyIn(manifest: DagManifest, other: DagManifest): Edge[] {
  const known = new Map(other.tasks.map(({ taskId, upstream }) => [taskId, new Set(upstream)]));
  return manifest.tasks.flatMap(({ taskId, upstream }) =>
    upstream.filter((from) => !known.get(taskId)?.has(from)).map((from) => ({ from, to: taskId })),
  );
}

/** Ignores the order of an object's members, and members that are null or missing. */
function isSame(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b || (a ?? null) === (b ?? null)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (isList(a) || isList(b)) {
    if (!isList(a) || !isList(b) || a.length !== b.length) return false;
    return a.every((each, index) => isSame(each, b[index]));
  }
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((name) => isSame(a[name], b[name]));
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
