/**
 * `env` of a DAG or a task: texts, and references to stored variables and connections. References are resolved when an
 * attempt starts: neither they nor their values are part of the manifest.
 */
import { orElse, refuse } from "../../check/definition-errors.ts";
import { DagDefinitionError, show, TaskError } from "../../check/errors.ts";
import type { ConnectionFacts, TaskHost } from "../../runtime/program.ts";
import type { DagPlan } from "../plan.ts";

/** A registered symbol: a reference may come from another copy of the SDK. */
const SOURCE: unique symbol = Symbol.for("tradewind.envReference") as never;

const FIELDS = ["host", "port", "login", "password", "schema"] as const;

type Source =
  | { readonly kind: "variable"; readonly key: string; readonly defaultValue: string | undefined }
  | { readonly kind: "field"; readonly id: string; readonly field: (typeof FIELDS)[number] }
  | { readonly kind: "extra"; readonly id: string; readonly key: string };

/**
 * A text that is read when an attempt starts: see {@link variable} and {@link connection}.
 * @example const region: EnvReference = variable("region", "eu");
 */
export interface EnvReference {
  readonly [SOURCE]: Source;
}

/**
 * The fields of a stored connection, as {@link connection} returns them.
 * @example const host = (database: ConnectionReference) => ({ PGHOST: database.host, PGUSER: database.login });
 */
export interface ConnectionReference {
  readonly host: EnvReference;
  readonly port: EnvReference;
  readonly login: EnvReference;
  readonly password: EnvReference;
  readonly schema: EnvReference;
  /** A member of the connection's `extra` that is a text, a number or a boolean. */
  extra(key: string): EnvReference;
}

/**
 * Environment variables by name, for the option `env`.
 * @example const env: Env = { MODE: "batch", API_KEY: variable("api_key") };
 */
export type Env = Readonly<Record<string, string | EnvReference>>;

/**
 * References a stored variable, for `env`; an attempt fails if the variable is not set and has no default.
 * @example dag("export", { env: { API_KEY: variable("api_key"), REGION: variable("region", "eu") } }, build);
 */
export function variable(key: string, defaultValue?: string): EnvReference {
  if (defaultValue !== undefined) checkText(defaultValue, `variable(${show(key)}): its default`);
  return reference({ kind: "variable", key: checkName(key, "variable()"), defaultValue });
}

/**
 * References a stored connection, for `env`: use one of its fields.
 *
 * @example
 * ```ts
 * const warehouse = connection("warehouse");
 * dag("export", { env: { PGHOST: warehouse.host, PGPASSWORD: warehouse.password } }, build);
 * ```
 */
export function connection(id: string): ConnectionReference {
  checkName(id, "connection()");
  const fields = FIELDS.map((field) => [field, reference({ kind: "field", id, field })]);
  return Object.freeze({
    ...(Object.fromEntries(fields) as Record<(typeof FIELDS)[number], EnvReference>),
    extra: (key: string) =>
      reference({ kind: "extra", id, key: checkName(key, `connection(${show(id)}).extra()`) }),
  });
}

function reference(source: Source): EnvReference {
  const made = { [SOURCE]: source };
  // Inside a text it would become "[object Object]", which only the program that reads the variable would notice.
  const refuse = (): never => {
    throw bad(`${textOf(source)} is read when a task starts; it cannot be a part of a text`);
  };
  return Object.freeze(Object.defineProperty(made, Symbol.toPrimitive, { value: refuse }));
}

/** The checked `env` of a DAG or a task; undefined without one. */
export function checkEnv(env: unknown, where: string): Env | undefined {
  if (env === undefined) return undefined;
  if (typeof env !== "object" || env === null || Array.isArray(env)) {
    refuse(bad(`${where}: env must be an object of environment variables, got ${show(env)}`));
    return undefined;
  }
  for (const [name, value] of Object.entries(env)) {
    if (!/^[A-Za-z_]\w*$/.test(name))
      refuse(bad(`${where}: env: ${show(name)} is not a valid name of an environment variable`));
    if (!isReference(value)) orElse(() => checkText(value, `${where}: env.${name}`), undefined);
  }
  return Object.freeze({ ...env } as Env);
}

function checkText(value: unknown, what: string): void {
  if (typeof value === "string" && !value.includes("\0")) return;
  const got = typeof value === "string" ? "a text with a NUL character" : show(value);
  throw bad(`${what} must be a text, variable("key") or a field like connection("id").host, got ${got}`);
}

function checkName(name: unknown, where: string): string {
  if (typeof name === "string" && name !== "") return name;
  throw bad(`${where} takes a non-empty text, got ${show(name)}`);
}

function isReference(value: unknown): value is EnvReference {
  return typeof value === "object" && value !== null && SOURCE in value;
}

/**
 * Resolves the `env` of a call's DAG and task, and lets the host set it until the call ends.
 *
 * @returns One error for each variable that has no value and was left out.
 */
export async function setEnv(
  plan: DagPlan,
  { host, taskId }: { readonly host: TaskHost; readonly taskId: string | null },
): Promise<readonly TaskError[]> {
  const env = Object.entries({ ...plan.env, ...(taskId !== null && plan.tasks.get(taskId)?.env) });
  if (env.length === 0) return [];
  if (host.environment === undefined) throw new Error("this engine is too old for env; upgrade it");
  const connections = new Map<string, Promise<ConnectionFacts | undefined>>();
  const reader: Reader = {
    variable: (key, name) => host.variable(key, name),
    connection(id) {
      const known = connections.get(id) ?? host.connection(id);
      connections.set(id, known);
      return known;
    },
  };
  const resolved = await Promise.all(
    env.map(async ([name, value]) => ({
      name,
      value: isReference(value) ? await resolve(value[SOURCE], name, reader) : value,
    })),
  );
  const values: Record<string, string> = {};
  const errors: TaskError[] = [];
  for (const { name, value } of resolved) {
    if (typeof value === "string") values[name] = value;
    else errors.push(value);
  }
  host.environment(values);
  return errors;
}

interface Reader {
  /** @param name The environment variable: a name that sounds secret masks the value in logs. */
  variable(key: string, name: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
}

/** Returns missing values as errors. Errors thrown here come from the host and may be transient. */
async function resolve(source: Source, name: string, reader: Reader): Promise<string | TaskError> {
  if (source.kind === "variable") {
    const { defaultValue, key } = source;
    const value = (await reader.variable(key, name)) ?? defaultValue;
    return value === undefined
      ? missing("TW_VARIABLE_MISSING", name, `variable "${key}" is not set`, `variables set ${key} <value>`)
      : value;
  }
  const { id } = source;
  const facts = await reader.connection(id);
  if (facts === undefined) {
    const what = `connection "${id}" is not stored`;
    return missing("TW_CONNECTION_MISSING", name, what, `connections set ${id} ...`);
  }
  const value = source.kind === "field" ? facts[source.field] : memberOf(facts.extra, source.key);
  if (typeof value === "string" && value !== "") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  const what =
    source.kind === "field" ? source.field : `text, number or boolean "${source.key}" in its extra`;
  return missing(
    "TW_CONNECTION_INCOMPLETE",
    name,
    `connection "${id}" has no ${what}`,
    `connections set ${id} ...`,
  );
}

function memberOf(extra: unknown, key: string): unknown {
  const isObject = typeof extra === "object" && extra !== null;
  return isObject && Object.hasOwn(extra, key) ? (extra as Record<string, unknown>)[key] : undefined;
}

function missing(
  code: "TW_VARIABLE_MISSING" | "TW_CONNECTION_MISSING" | "TW_CONNECTION_INCOMPLETE",
  name: string,
  what: string,
  command: string,
): TaskError {
  const option = code === "TW_VARIABLE_MISSING" ? "--variable" : "--connection";
  return new TaskError(
    code,
    `env.${name}: ${what}; set it with \`tradewind ${command}\`; for dags test, with ${option}`,
  );
}

function textOf(source: Source): string {
  if (source.kind === "variable") return `variable(${show(source.key)})`;
  const of = `connection(${show(source.id)})`;
  return source.kind === "field" ? `${of}.${source.field}` : `${of}.extra(${show(source.key)})`;
}

function bad(message: string): DagDefinitionError {
  return new DagDefinitionError("TW_BAD_OPTION", message);
}
