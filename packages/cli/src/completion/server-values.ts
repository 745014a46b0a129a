/** Names that only the server knows. It is asked once, and only for a moment: a shell waits for the answer. */
import { type Client, path } from "../client/client.ts";
import type { TypedLine } from "./command-line.ts";

const TIMEOUT_MS = 800;
const MOST = 100;

interface Source {
  /** null: what it belongs to was not typed. */
  path(line: TypedLine): string | null;
  /** Of the array in the answer, and of the name in an element of it. */
  readonly key: string;
  readonly name: string;
  /** The filter by the beginning of the name, where the list has one. */
  readonly prefix?: string;
  readonly order?: string;
  /** Words that stand for one. */
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

/** By the name of an argument or option; where groups differ, by the group and the name. */
const SOURCES: Readonly<Record<string, Source>> = {
  dag: DAGS,
  run: RUNS,
  task: TASKS,
  pool: POOLS,
  "pools name": POOLS,
  "variables key": VARIABLES,
  "connections id": CONNECTIONS,
  "assets uri": ASSETS,
  "backfill id": { ...below("backfills", "id"), order: "-id" },
};

/** Those that begin with what was typed; none when the server is not there, does not know, or is slow. */
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
        limit: MOST,
        order_by: source.order,
        ...(source.prefix !== undefined && line.current !== "" && { [source.prefix]: line.current }),
      },
      // Not a timeout of the request, which would be sent again.
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const found = (answer[source.key] ?? []).map((each) => String(each[source.name]));
    return [...(source.also ?? []), ...found];
  } catch {
    return [];
  }
}
