/**
 * The file format of `import` and `export` for connections, variables and pools. The files are those of
 * `airflow connections|variables|pools export`: one JSON object, by name.
 */
import { usageError } from "../errors.ts";
import { parseConnectionUri } from "../input/connection-uri.ts";

export type Entry = Readonly<Record<string, unknown>>;

export interface SettingsKind {
  /** The last part of the API's path, and the name of the array in its lists. */
  readonly collection: "connections" | "variables" | "pools";
  readonly singular: string;
  /** The field with the name. */
  readonly key: string;
  /** Whether the API hides some of its values. */
  readonly hasSecrets: boolean;
  /** A sample file, used as a remedy. */
  readonly example: string;
  /** The API's form of an entry. @throws CliError for an invalid entry. */
  parse(name: string, value: unknown): Entry;
  /** The file's form of an object; null: its value is hidden. */
  format(shown: Entry): unknown;
}

/** The API's mask for the value of a secret. Written back, it would replace the secret. */
export const HIDDEN = "***";

export const CONNECTIONS: SettingsKind = {
  collection: "connections",
  singular: "connection",
  key: "connection_id",
  hasSecrets: true,
  example:
    '{"warehouse": {"conn_type": "postgres", "host": "db.example.com"}, "site": "https://example.com"}',
  parse(name, value) {
    if (typeof value === "string") return { connection_id: name, ...fromAirflowUri(value) };
    const { conn_id: _, extra, extra_dejson, ...fields } = requireObject(value, "an object or a URI");
    const settings = extra ?? extra_dejson;
    return {
      ...withoutNull(fields),
      connection_id: name,
      ...(settings == null
        ? {}
        : { extra: typeof settings === "string" ? settings : JSON.stringify(settings) }),
    };
  },
  format({ connection_id: _, team_name: __, ...fields }) {
    return withoutNull(fields);
  },
};

export const VARIABLES: SettingsKind = {
  collection: "variables",
  singular: "variable",
  key: "key",
  hasSecrets: true,
  example: '{"region": "eu", "limit": {"value": "10", "description": "rows"}}',
  parse(key, given) {
    const { description, value } = describedValue(given);
    if (value === HIDDEN)
      throw usageError("the value is masked (***): export with --with-secrets, or remove the entry.");
    return { key, value, ...(description === undefined ? {} : { description }) };
  },
  format({ description, value }) {
    if (value == null || value === HIDDEN) return null;
    return description ? { value, description } : value;
  },
};

export const POOLS: SettingsKind = {
  collection: "pools",
  singular: "pool",
  key: "name",
  hasSecrets: false,
  example: '{"gpu": {"slots": 2, "description": "cards", "include_deferred": false}}',
  parse(name, value) {
    return { ...withoutNull(requireObject(value, "an object")), name };
  },
  format({ description, include_deferred, slots }) {
    return { slots, ...(description ? { description } : {}), include_deferred };
  },
};

/** Airflow's rule: an object with a value, and optionally a description, is an entry; anything else is the value. */
function describedValue(given: unknown): { readonly value: unknown; readonly description?: string } {
  if (given === null || typeof given !== "object" || !("value" in given)) return { value: given };
  const { value, description, ...others } = given as Entry;
  if (Object.keys(others).length > 0) return { value: given };
  if (description == null) return { value };
  return typeof description === "string" ? { value, description } : { value: given };
}

/** Airflow writes `_` of a type as `-`, and an extra that is not only strings as `__extra__`. */
function fromAirflowUri(uri: string): Entry {
  const { conn_type, extra, ...parts } = parseConnectionUri(uri, "the URI");
  const { __extra__: whole } = JSON.parse(extra ?? "{}") as { __extra__?: string };
  return {
    ...parts,
    conn_type: conn_type?.replaceAll("-", "_"),
    ...(extra === undefined ? {} : { extra: whole ?? extra }),
  };
}

function requireObject(value: unknown, what: string): Entry {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as Entry;
  throw usageError(`it must be ${what}.`);
}

function withoutNull(fields: Entry): Entry {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
