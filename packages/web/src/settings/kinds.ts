/**
 * Files of pools, variables and connections: one JSON object, by name, as `tradewind pools export` writes it. Pure.
 */

type Entry = Readonly<Record<string, unknown>>;

export interface SettingsKind {
  /** The last part of the API's path, and the name of the array in its lists. */
  readonly collection: "pools" | "variables" | "connections";
  readonly singular: string;
  /** The field with the name. */
  readonly key: string;
  /** The API's form of an entry of a file. @throws For an entry that cannot be one. */
  readonly parse: (name: string, value: unknown) => Entry;
  /** The file's form of an object; null: its value is hidden. */
  readonly format: (shown: Entry) => unknown;
  /** The value of an entry as text, if it has one that may be read on the screen. */
  readonly plainValue?: (entry: Entry) => string | null;
  /** What an export leaves out. */
  readonly leftOut: string | null;
  /** A sample file. */
  readonly example: string;
}

/** The API's mask for the value of a secret. Written back, it would replace the secret. */
export const HIDDEN = "***";

/** The names whose values the API masks. */
const SECRET_NAME =
  /pass(word|wd|phrase)|secret|token|api_?key|private_?key|access_?key|authorization|credential|keyfile/i;

export const POOL_KIND: SettingsKind = {
  collection: "pools",
  singular: "pool",
  key: "name",
  parse: (name, value) => ({ ...withoutNull(objectOf(value)), name }),
  format: ({ description, include_deferred, slots }) => ({
    slots,
    ...(description ? { description } : {}),
    include_deferred,
  }),
  leftOut: null,
  example: '{"gpu": {"slots": 2, "description": "cards", "include_deferred": false}}',
};

export const VARIABLE_KIND: SettingsKind = {
  collection: "variables",
  singular: "variable",
  key: "key",
  parse(key, given) {
    const { description, value } = describedValue(given);
    if (value === HIDDEN) throw new Error("the value is masked (***): remove the entry");
    return { key, value, ...(description === undefined ? {} : { description }) };
  },
  format({ description, value }) {
    if (value === null || value === HIDDEN) return null;
    return description ? { value, description } : value;
  },
  plainValue({ key, value }) {
    if (SECRET_NAME.test(String(key))) return null;
    return typeof value === "string" ? value : JSON.stringify(value);
  },
  leftOut: "variables whose keys look like secrets",
  example: '{"region": "eu", "limit": {"value": "10", "description": "rows"}}',
};

export const CONNECTION_KIND: SettingsKind = {
  collection: "connections",
  singular: "connection",
  key: "connection_id",
  parse(name, value) {
    if (typeof value === "string")
      throw new Error(`it is a URI: import the file with "tradewind connections import"`);
    const { conn_id: _, extra, extra_dejson, ...fields } = objectOf(value);
    const settings = extra ?? extra_dejson ?? null;
    const text = typeof settings === "string" ? settings : JSON.stringify(settings);
    return { ...withoutNull(fields), connection_id: name, ...(settings === null ? {} : { extra: text }) };
  },
  format({ connection_id: _, team_name: __, ...fields }) {
    return withoutNull(fields);
  },
  leftOut: "passwords and extra",
  example: '{"warehouse": {"conn_type": "postgres", "host": "db.example.com"}}',
};

export interface SettingsFile {
  readonly entries: readonly Entry[];
  /** Of entries that cannot be imported, with their names. */
  readonly problems: readonly string[];
}

export function parseFile({ collection, parse }: SettingsKind, text: string): SettingsFile {
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (error) {
    return { entries: [], problems: [`This is not JSON: ${(error as Error).message}`] };
  }
  if (typeof file !== "object" || file === null || Array.isArray(file))
    return { entries: [], problems: [`This is not a JSON object of ${collection}`] };
  const entries: Entry[] = [];
  const problems: string[] = [];
  for (const [name, value] of Object.entries(file))
    try {
      entries.push(parse(name, value));
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
    }
  return { entries, problems };
}

/** The text of an export, and the names that it leaves out. */
export function formatFile({ format, key }: SettingsKind, shown: readonly Entry[]) {
  const all = shown.map((each) => [String(each[key]), format(each)] as const);
  const entries = all.filter(([, value]) => value !== null);
  return {
    text: `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`,
    count: entries.length,
    hidden: all.length - entries.length,
  };
}

/** Airflow's rule: an object with a value, and optionally a description, is an entry; anything else is the value. */
function describedValue(given: unknown): { readonly value: unknown; readonly description?: string } {
  if (given === null || typeof given !== "object" || !("value" in given)) return { value: given };
  const { value, description, ...others } = given as Entry;
  if (Object.keys(others).length > 0) return { value: given };
  if (description === undefined || description === null) return { value };
  return typeof description === "string" ? { value, description } : { value: given };
}

function objectOf(value: unknown): Entry {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Entry;
  throw new Error("it must be an object");
}

function withoutNull(fields: Entry): Entry {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
