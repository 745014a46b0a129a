/**
 * Merges a task's changes into a pod template.
 *
 * - Objects are merged field by field; `null` removes a field.
 * - Containers and init containers with the same name are merged; others are added.
 * - Elements of lists with a key (env and volumes by name, mounts by path, …) replace the element with the same key; others
 *   are added.
 * - Tolerations, `envFrom`, topology constraints and the like are added to those of the template.
 * - All other lists, e.g. `command`, `args` and capabilities, are replaced.
 */
import type { Json } from "@tradewind/sdk/manifest";

type Fields = { readonly [name: string]: Json };

/** Lists whose elements are merged by name. */
const MERGED: ReadonlySet<string> = new Set(["containers", "initContainers"]);

/** Lists whose elements replace each other, by the field that identifies an element. */
const KEYED: Readonly<Record<string, string>> = {
  env: "name",
  volumes: "name",
  imagePullSecrets: "name",
  resourceClaims: "name",
  volumeMounts: "mountPath",
  volumeDevices: "devicePath",
  ports: "containerPort",
  hostAliases: "ip",
};

/** Lists without keys that are added to. */
const APPENDED: ReadonlySet<string> = new Set([
  "tolerations",
  "envFrom",
  "topologySpreadConstraints",
  "readinessGates",
  "schedulingGates",
]);

/** A change that does not fit; `path` is that of the element. */
export class MergeError extends Error {}

export function mergePod<Pod extends object>(template: Pod, change: object, path = "podOverride"): Pod {
  return merged(template as Fields, change as Fields, path) as unknown as Pod;
}

function merged(base: Fields, change: Fields, path: string): Fields {
  const result: Record<string, Json> = { ...base };
  for (const [name, value] of Object.entries(change)) {
    const at = `${path}.${name}`;
    const before = base[name];
    if (value === null) delete result[name];
    else if (Array.isArray(value))
      result[name] = mergedList(name, Array.isArray(before) ? before : [], value, at);
    else if (isObject(value)) result[name] = merged(isObject(before) ? before : {}, value, at);
    else result[name] = value;
  }
  return result;
}

function mergedList(name: string, base: readonly Json[], change: readonly Json[], path: string): Json[] {
  if (APPENDED.has(name)) {
    const present = new Set(base.map(canonical));
    return [...base, ...change.map(withoutNulls).filter((each) => !present.has(canonical(each)))];
  }
  const key = MERGED.has(name) ? "name" : KEYED[name];
  if (key === undefined) return change.map(withoutNulls);
  const result = [...base];
  for (const [at, each] of change.entries()) {
    const where = `${path}[${at}]`;
    if (!isObject(each)) throw new MergeError(`${where} must be an object.`);
    const id = each[key];
    if (id === undefined || id === null)
      throw new MergeError(
        `${where} has no ${key}. Its ${key} tells which element of the template it changes.`,
      );
    const found = result.findIndex((other) => isObject(other) && other[key] === id);
    const before = found < 0 ? undefined : result[found];
    const after = MERGED.has(name) ? merged(isObject(before) ? before : {}, each, where) : withoutNulls(each);
    if (found < 0) result.push(after);
    else result[found] = after;
  }
  return result;
}

/** In an element that replaces another one, there is nothing to remove. */
function withoutNulls(value: Json): Json {
  return isObject(value) ? merged({}, value, "") : value;
}

/** The same text for equal values. */
function canonical(value: Json): string {
  return JSON.stringify(value, (_, each: Json) =>
    isObject(each) ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1))) : each,
  );
}

function isObject(value: Json | undefined): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
