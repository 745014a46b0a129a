/** Names read from the server: one request with a short timeout, because the shell waits for it. */
import { type Client, path, type Query } from "../client/client.ts";
import { LIVE } from "../client/workers.ts";
import type { TypedLine } from "./command-line.ts";

const TIMEOUT_MS = 800;
const MOST = 100;

interface Source {
  /** null: the parent object was not typed. */
  path(line: TypedLine): string | null;
  /** The name of the array in the response, and of the field with the name. */
  readonly key: string;
  readonly name: string;
  /** The prefix filter of the endpoint, if it has one. */
  readonly prefix?: string;
  readonly order?: string;
  readonly query?: Query;
  /** Other accepted words. */
  readonly also?: readonly string[];
}

const dagOf = ({ options, positionals }: TypedLine) => positionals.dag ?? options["--dag"];
const below = (collection: string, id: string, filter?: string): Source => ({
  path: () => `/${collection}`,
  key: collection,
  name: id,
  ...(filter === undefined ? {} : { prefix: filter }),
});

const DAGS = below("dags", "dag_id", "dag_id_prefix_pattern");
const RUNS: Source = {
  path: (line) => path`/dags/${dagOf(line) ?? "~"}/dagRuns`,
  key: "dag_runs",
  name: "dag_run_id",
  prefix: "run_id_prefix_pattern",
  order: "-run_after",
  also: ["@latest", "@failed"],
};
const TASKS: Source = {
  path: (line) => {
    const dag = dagOf(line);
    return dag === undefined ? null : path`/dags/${dag}/tasks`;
  },
  key: "tasks",
  name: "task_id",
};
const POOLS = below("pools", "name", "pool_name_prefix_pattern");
const VARIABLES = below("variables", "key", "variable_key_prefix_pattern");
const CONNECTIONS = below("connections", "connection_id", "connection_id_prefix_pattern");
const ASSETS = below("assets", "uri", "uri_prefix_pattern");

/** By argument or option name; where groups differ, by group and name. */
const SOURCES: Readonly<Record<string, Source>> = {
  dag: DAGS,
  run: RUNS,
  task: TASKS,
  pool: POOLS,
  "pools name": POOLS,
  "variables key": VARIABLES,
  "connections id": CONNECTIONS,
  "assets uri": ASSETS,
  "executors name": below("executors", "name"),
  worker: { ...below("workers", "name"), query: { state: LIVE } },
  "backfill id": { ...below("backfills", "id"), order: "-id" },
};

/** The names that begin with the typed text; none if the server is unreachable, slow or returns an error. */
export async function serverValues(
  client: () => Client,
  line: TypedLine,
  name: string,
): Promise<readonly string[]> {
  const source = SOURCES[`${line.path[0]} ${name}`] ?? SOURCES[name];
  const where = source?.path(line);
  if (source === undefined || where == null) return [];
  try {
    const answer = await client().get<Record<string, Record<string, unknown>[]>>(where, {
      what: "cannot complete",
      query: {
        ...source.query,
        limit: MOST,
        order_by: source.order,
        ...(source.prefix !== undefined && line.current !== "" && { [source.prefix]: line.current }),
      },
      // Not the request's own timeout, which would cause a retry.
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const found = (answer[source.key] ?? []).map((each) => String(each[source.name]));
    return [...(source.also ?? []), ...found];
  } catch {
    return [];
  }
}
