/** `conf("path")`: a reference to a value in the conf of the run. */
import { DagDefinitionError, show, TaskError } from "../../check/errors.ts";
import { jsonCopy } from "../../check/output-check.ts";
import type { Json } from "../../manifest.ts";

/** A registered symbol: a reference may come from another copy of the SDK. */
const CONF: unique symbol = Symbol.for("tradewind.confReference") as never;

/** The only member of a reference in a manifest. */
const MEMBER = "$conf";

/**
 * The type of {@link conf}.
 * @example const order: ConfReference = conf("order.id");
 */
export interface ConfReference {
  readonly [CONF]: string;
}

/**
 * JSON that may contain references to the conf.
 * @example const match: JsonMatch = { order: conf("order.id"), state: "paid" };
 */
export type JsonMatch =
  | null
  | boolean
  | number
  | string
  | ConfReference
  | readonly JsonMatch[]
  | { readonly [key: string]: JsonMatch };

/**
 * References a value in the conf of the run, for `where` of a signal.
 *
 * @example
 * ```ts
 * const paid = signal("order.paid", z.object({ order: z.string() }));
 * d.task("ship", { on: [start(paid.where({ order: conf("order.id") }))] }, () => publish());
 * ```
 */
export function conf(path: string): ConfReference {
  return Object.freeze({ [CONF]: checkedPath(path, "conf()") });
}

/** Checks a path like "order.items.0.id". */
export function checkedPath(path: unknown, where: string): string {
  if (typeof path === "string" && path.length <= 500 && path.split(".").every((part) => part !== "")) {
    return path;
  }
  throw new DagDefinitionError(
    "TW_BAD_SIGNAL",
    `${where}: a path consists of names with dots between them, like "order.id", got ${show(path)}`,
  );
}

/** The manifest form of a match: JSON, with each reference as an object with the one member "$conf". */
export function matchJson(match: unknown, where: string): Json {
  const refused = (message: string) => new DagDefinitionError("TW_BAD_SIGNAL", `${where}: ${message}`);
  // Rejects values that are not plain JSON or contain themselves; a reference looks like an empty object here.
  jsonCopy(match, { root: "match", notJson: refused, tooLarge: refused });
  const written = (value: unknown): Json => {
    if (typeof value !== "object" || value === null) return value as Json;
    if (CONF in value) return { [MEMBER]: (value as ConfReference)[CONF] };
    if (Array.isArray(value)) return value.map(written);
    if (MEMBER in value)
      throw refused(`a member "${MEMBER}" cannot be matched; use conf() for a value of the conf`);
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return Object.fromEntries(members.map(([key, member]) => [key, written(member)]));
  };
  return written(match);
}

/** Returns whether the manifest form of a match contains a reference. */
export function hasReference(match: Json): boolean {
  if (typeof match !== "object" || match === null) return false;
  return MEMBER in match || Object.values(match).some(hasReference);
}

/** Replaces the references in the manifest form of a match by the values of a conf. */
export function resolved(match: Json, conf: Json, where: string): Json {
  if (typeof match !== "object" || match === null) return match;
  if (Array.isArray(match)) return match.map((member) => resolved(member, conf, where));
  const path = (match as { readonly [MEMBER]?: Json })[MEMBER];
  if (typeof path === "string") {
    const value = valueAt(conf, path);
    if (value !== undefined) return value;
    throw new TaskError(
      "TW_CONF_MISSING",
      `${where}: the run's conf has no value at "${path}", so no signal can match`,
    );
  }
  return Object.fromEntries(
    Object.entries(match).map(([key, member]) => [key, resolved(member, conf, where)]),
  );
}

function valueAt(json: Json, path: string): Json | undefined {
  let at: Json | undefined = json;
  for (const part of path.split(".")) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, part)) return undefined;
    at = (at as Readonly<Record<string, Json>>)[part];
  }
  return at;
}
