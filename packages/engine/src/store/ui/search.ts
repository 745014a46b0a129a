/**
 * The search of the command palette. Names of DAGs, tasks and settings are scanned: thousands of short texts, no manifests. Of
 * runs, only recent ones are read: the latest of all DAGs, and the latest of the DAGs that are named.
 */
import type { RunState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { Conditions } from "../page/query.ts";

export interface Found {
  readonly kind: "dag" | "run" | "task" | "asset" | "connection" | "pool" | "variable";
  /** What the words were looked for in. */
  readonly name: string;
  readonly dag_id: string | null;
  readonly run_id: string | null;
  readonly task_id: string | null;
  /** Of a run. */
  readonly state: RunState | null;
  /** Of a DAG. */
  readonly is_paused: boolean | null;
}

/** Per kind. */
const MOST_FOUND = 10;
/** DAGs whose tasks are compared one by one. */
const MOST_DAGS = 100;
const RECENT_RUNS = 2_000;
const RECENT_RUNS_OF_DAG = 300;
const NAMED_DAGS = 5;

const NO_RUN = "NULL AS run_id, NULL AS state";
const NO_DAG = `NULL AS dag_id, NULL AS task_id, NULL::boolean AS is_paused, ${NO_RUN}`;

/** @param words In lower case, at least one; each must occur. */
export async function search(connection: Connection, words: readonly string[]): Promise<Found[]> {
  const found = await Promise.all([
    dags(connection, words),
    tasks(connection, words),
    recentRuns(connection, words),
    runsOfNamedDags(connection, words),
    ...SETTINGS.map((setting) => settings(connection, words, setting)),
  ]);
  return found.flat();
}

function dags(connection: Connection, words: readonly string[]): Promise<Found[]> {
  const where = new Conditions().raw("NOT d.is_stale");
  contains(where, lower("d.dag_id"), words);
  const text = `SELECT 'dag' AS kind, d.dag_id AS name, d.dag_id, NULL AS task_id, d.is_paused, ${NO_RUN} FROM dag d ${where}
    ORDER BY ${best(where, "d.dag_id", words)} LIMIT ${MOST_FOUND}`;
  return connection.rows(adhoc(text), where.values);
}

/** Some words may name the DAG, the others the task. DAGs with a task of that name come first. */
function tasks(connection: Connection, words: readonly string[]): Promise<Found[]> {
  const where = new Conditions();
  contains(where, "d.text", words);
  const last = where.bind(`"${words.at(-1)}`);
  // OFFSET keeps PostgreSQL from computing the text again for each use.
  const from = `(SELECT d.dag_id, d.task_ids FROM (
      SELECT d.dag_id, v.task_ids, ${lower("d.dag_id || v.task_ids")} AS text FROM dag d JOIN dag_version v ON v.id = d.version_id
      WHERE NOT d.is_stale OFFSET 0) d ${where}
    ORDER BY position(${last} || '"' in d.text) > 0 DESC, position(${last} in d.text) > 0 DESC, d.dag_id
    LIMIT ${MOST_DAGS}) d CROSS JOIN LATERAL jsonb_array_elements_text(d.task_ids::jsonb) AS k(task_id)`;
  const ofTask = new Conditions(where);
  contains(ofTask, lower("d.dag_id || ' ' || k.task_id"), words);
  ofTask.raw(
    `(${words.map((word) => `position(${ofTask.bind(word)} in ${lower("k.task_id")}) > 0`).join(" OR ")})`,
  );
  const text = `SELECT 'task' AS kind, k.task_id AS name, d.dag_id, k.task_id, NULL::boolean AS is_paused, ${NO_RUN}
    FROM ${from} ${ofTask} ORDER BY ${best(ofTask, "k.task_id", words.slice(-1))}, d.dag_id LIMIT ${MOST_FOUND}`;
  return connection.rows(adhoc(text), where.values);
}

const RUN = `SELECT 'run' AS kind, r.run_id AS name, r.dag_id, r.run_id, NULL AS task_id, NULL::boolean AS is_paused, r.state`;
/** Ids have no other letters than those of ASCII, which the collation C converts fast. */
const lower = (id: string) => `lower((${id}) COLLATE "C")`;
/** What the words may occur in; dates as they are shown in UTC. */
const RUN_TEXT = lower(
  `r.dag_id || ' ' || r.run_id || ' ' || coalesce(to_char(r.logical_date AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI'), '')`,
);

/** Of all DAGs, by the primary key. */
function recentRuns(connection: Connection, words: readonly string[]): Promise<Found[]> {
  const where = new Conditions();
  contains(where, RUN_TEXT, words);
  contains(where, lower("r.run_id"), words.slice(-1));
  const text = `${RUN} FROM (SELECT * FROM dag_run ORDER BY id DESC LIMIT ${RECENT_RUNS}) r ${where}
    ORDER BY r.id DESC LIMIT ${MOST_FOUND}`;
  return connection.rows(adhoc(text), where.values);
}

/** The first word names the DAG, the others its run. Index: dag_run_latest. */
async function runsOfNamedDags(
  connection: Connection,
  [first, ...words]: readonly string[],
): Promise<Found[]> {
  if (first === undefined || words.length === 0) return [];
  const named = new Conditions().raw("NOT d.is_stale");
  contains(named, lower("d.dag_id"), [first]);
  const ofNamed = `(SELECT d.dag_id FROM dag d ${named} ORDER BY ${best(named, "d.dag_id", [first])} LIMIT ${NAMED_DAGS}) d`;
  const where = new Conditions(named);
  contains(where, RUN_TEXT, words);
  const text = `${RUN} FROM ${ofNamed} CROSS JOIN LATERAL (SELECT x.* FROM dag_run x WHERE x.dag_id = d.dag_id
      ORDER BY x.run_after DESC, x.id DESC LIMIT ${RECENT_RUNS_OF_DAG}) r ${where}
    ORDER BY r.run_after DESC, r.id DESC LIMIT ${MOST_FOUND}`;
  return connection.rows(adhoc(text), named.values);
}

const SETTINGS = [
  { kind: "asset", table: "asset", name: "uri" },
  { kind: "connection", table: "connection", name: "conn_id" },
  { kind: "pool", table: "pool", name: "name" },
  { kind: "variable", table: "variable", name: "key" },
] as const;

function settings(
  connection: Connection,
  words: readonly string[],
  { kind, name, table }: (typeof SETTINGS)[number],
): Promise<Found[]> {
  const where = new Conditions();
  // Counters of limits are pools, too.
  if (kind === "pool") where.raw("NOT starts_with(x.name, '@')");
  contains(where, `lower(x.${name})`, words);
  const text = `SELECT '${kind}' AS kind, x.${name} AS name, ${NO_DAG} FROM ${table} x ${where}
    ORDER BY ${best(where, `x.${name}`, words)} LIMIT ${MOST_FOUND}`;
  return connection.rows(adhoc(text), where.values);
}

function contains(where: Conditions, text: string, words: readonly string[]): void {
  for (const word of words) where.raw(`position(${where.bind(word)} in ${text}) > 0`);
}

/** Equal names first, then those that begin with the words, then short ones. */
function best(where: Conditions, name: string, words: readonly string[]): string {
  const all = where.bind(words.join(" "));
  return `lower(${name}) = ${all} DESC, starts_with(lower(${name}), ${all}) DESC, length(${name}), ${name}`;
}
