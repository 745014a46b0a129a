/** DAGs as the table of the web UI shows them. Everything but the page itself is read for the DAGs of the page only. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { FINISHED } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { adhoc, statement } from "../database/statement.ts";
import { COUNTED_EXACTLY, Conditions, type ListedPage, listPage, type Page } from "../page/query.ts";
import type { ScheduleError } from "../plan/timetable-plans.ts";

/** What the table needs of a manifest; the others are not in the column. */
type DagHeader = Pick<DagManifest, "description" | "owner" | "schedule" | "tags">;

export interface DagTableRow {
  readonly dag_id: string;
  readonly file: string;
  readonly is_paused: boolean;
  readonly pause_reason: string | null;
  readonly next_logical_date: Date | null;
  readonly next_run_after: Date | null;
  readonly schedule_error: ScheduleError | null;
  readonly schedule_failures: number | null;
  readonly schedule_retry_at: Date | null;
  /** The first line. */
  readonly import_error: string | null;
  readonly version_number: number | null;
  readonly task_count: number | null;
  readonly header: DagHeader | null;
}

export interface DagTableFilter {
  /** Each must occur in the id, owner, tags or description. */
  readonly words: readonly string[];
  readonly tags?: readonly string[] | undefined;
  readonly owner?: string | undefined;
  readonly isPaused?: boolean | undefined;
  readonly hasImportError?: boolean | undefined;
  readonly isRunning?: boolean | undefined;
  readonly hasNeverRun?: boolean | undefined;
  readonly dagIds?: readonly string[] | undefined;
}

/** @param problems The DAGs that come first in the order "problems". */
const dagTableOrder = (where: Conditions, problems: readonly string[]) => ({
  dag_id: "d.dag_id",
  next_run: "coalesce(d.next_run_after, 'infinity')",
  last_run: `coalesce((SELECT r.run_after FROM dag_run r WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1), '-infinity')`,
  problems: `(CASE WHEN d.dag_id = ANY(${where.bind(problems)}::text[]) OR ${HAS_ERROR} THEN 0 ELSE 1 END)`,
});
export const DAG_TABLE_ORDERS = ["dag_id", "next_run", "last_run", "problems"] as const;

export interface Bounded {
  readonly count: number;
  /** There are more than `count`. */
  readonly more: boolean;
}

export async function listDagTable(
  connection: Connection,
  filter: DagTableFilter,
  page: Page & { readonly problems: readonly string[] },
): Promise<ListedPage<DagTableRow>> {
  const where = conditions(filter);
  const order = orderFor(where, page);
  return listPage(connection, { columns: COLUMNS, from: FROM, where, order, tiebreak: "d.dag_id", page });
}

/** PostgreSQL rejects a parameter that no part of the statement uses. */
function orderFor(where: Conditions, page: Page & { readonly problems: readonly string[] }) {
  return page.orderBy?.some((key) => key.endsWith("problems")) === true
    ? dagTableOrder(where, page.problems)
    : dagTableOrder(new Conditions(), page.problems);
}

export async function countDagTable(connection: Connection, filter: DagTableFilter): Promise<Bounded> {
  const where = conditions(filter);
  const text = `SELECT count(*)::int AS count FROM (SELECT FROM ${FROM} ${where} LIMIT ${COUNTED_EXACTLY + 1}) c`;
  return bounded(await connection.one(adhoc(text), where.values));
}

export function bounded(row: { readonly count: number } | undefined): Bounded {
  const count = row?.count ?? 0;
  return { count: Math.min(count, COUNTED_EXACTLY), more: count > COUNTED_EXACTLY };
}

export interface DagFacets {
  readonly total: number;
  readonly paused: number;
  readonly running: number;
  readonly never_run: number;
  readonly import_error: number;
  readonly failing: number;
  readonly late: number;
  readonly tags: readonly { readonly name: string; readonly count: number }[];
  readonly owners: readonly { readonly name: string; readonly count: number }[];
}

/** The number of DAGs that each further filter would show. */
export async function countFacets(
  connection: Connection,
  filter: DagTableFilter,
  problems: { readonly failing: readonly string[]; readonly late: readonly string[] },
): Promise<DagFacets> {
  const where = conditions(filter);
  const [failing, late] = [where.bind(problems.failing), where.bind(problems.late)];
  const row = await connection.one<DagFacets>(
    adhoc(`WITH chosen AS MATERIALIZED (
        SELECT d.dag_id, d.is_paused, ${HAS_ERROR} AS has_error, v.header->'tags' AS tags, v.header->>'owner' AS owner
        FROM ${FROM} ${where}
      )
      SELECT (SELECT count(*)::int FROM chosen) AS total,
        (SELECT count(*)::int FROM chosen WHERE is_paused) AS paused,
        (SELECT count(*)::int FROM chosen WHERE has_error) AS import_error,
        (SELECT count(*)::int FROM chosen d WHERE dag_id = ANY(${failing}::text[])) AS failing,
        (SELECT count(*)::int FROM chosen d WHERE dag_id = ANY(${late}::text[])) AS late,
        (SELECT count(*)::int FROM chosen d WHERE ${IS_RUNNING}) AS running,
        (SELECT count(*)::int FROM chosen d WHERE NOT ${HAS_RUN}) AS never_run,
        (SELECT coalesce(json_agg(t), '[]') FROM (
           SELECT t.name, count(*)::int AS count FROM chosen, jsonb_array_elements_text(tags) AS t(name)
           GROUP BY t.name ORDER BY 2 DESC, 1 LIMIT ${MAX_FACETS}) t) AS tags,
        (SELECT coalesce(json_agg(o), '[]') FROM (
           SELECT owner AS name, count(*)::int AS count FROM chosen WHERE owner IS NOT NULL
           GROUP BY owner ORDER BY 2 DESC, 1 LIMIT ${MAX_FACETS}) o) AS owners`),
    where.values,
  );
  return row!;
}

const MAX_FACETS = 100;
const HAS_ERROR = "EXISTS (SELECT FROM import_error e WHERE e.file = d.file)";
/** Scalar subqueries: one index probe per DAG instead of a hash of all runs. */
const IS_RUNNING =
  "(SELECT true FROM dag_run r WHERE r.dag_id = d.dag_id AND r.state = 'running' LIMIT 1) IS NOT NULL";
const HAS_RUN =
  "(SELECT true FROM dag_run r WHERE r.dag_id = d.dag_id ORDER BY r.run_after DESC, r.id DESC LIMIT 1) IS NOT NULL";

const FROM =
  "dag d LEFT JOIN dag_version v ON v.id = d.version_id LEFT JOIN dag_timetable t ON t.dag_id = d.dag_id";
const COLUMNS = `d.dag_id, d.file, d.is_paused, d.pause_reason, d.next_logical_date, d.next_run_after, t.error AS schedule_error,
  t.failures AS schedule_failures, t.ask_at AS schedule_retry_at, v.number AS version_number, v.task_count, v.header,
  (SELECT left(split_part(e.message, E'\\n', 1), 500) FROM import_error e WHERE e.file = d.file) AS import_error`;
const SEARCHED = `lower(d.dag_id || ' ' || coalesce(v.header->>'owner', '') || ' ' || coalesce(v.header->>'tags', '')
  || ' ' || coalesce(v.header->>'description', ''))`;

function conditions(filter: DagTableFilter): Conditions {
  const where = new Conditions()
    .raw("NOT d.is_stale")
    .equals("d.is_paused", filter.isPaused)
    .equals("v.header->>'owner'", filter.owner);
  for (const word of filter.words)
    where.raw(`position(${where.bind(word.toLowerCase())} in ${SEARCHED}) > 0`);
  if (filter.tags?.length) where.raw(`v.header->'tags' ?& ${where.bind(filter.tags)}::text[]`);
  if (filter.dagIds !== undefined) where.raw(`d.dag_id = ANY(${where.bind(filter.dagIds)}::text[])`);
  if (filter.hasImportError) where.raw(HAS_ERROR);
  if (filter.isRunning) where.raw(IS_RUNNING);
  if (filter.hasNeverRun) where.raw(`NOT ${HAS_RUN}`);
  return where;
}

/** Facts about the runs of the DAGs of a page. */
export interface DagRunFacts {
  readonly dag_id: string;
  /** Up to 1,000. */
  readonly queued: number;
  readonly running: number;
  readonly last_failed_run: string | null;
  readonly last_failed_at: Date | null;
}

const FACTS = statement(
  "ui-dag-run-facts",
  `SELECT k.dag_id,
     (SELECT count(*)::int FROM (SELECT FROM dag_run r WHERE r.dag_id = k.dag_id AND r.state = 'queued' LIMIT 1000) q) AS queued,
     (SELECT count(*)::int FROM (SELECT FROM dag_run r WHERE r.dag_id = k.dag_id AND r.state = 'running' LIMIT 1000) a) AS running,
     f.run_id AS last_failed_run, f.ended_at AS last_failed_at
   FROM unnest($1::text[]) AS k(dag_id) LEFT JOIN LATERAL (
     SELECT r.run_id, coalesce(r.ended_at, r.run_after) AS ended_at FROM dag_run r
     WHERE r.dag_id = k.dag_id AND r.state = 'failed' ORDER BY r.run_after DESC, r.id DESC LIMIT 1) f ON true`,
);

export async function readDagRunFacts(
  connection: Connection,
  dagIds: readonly string[],
): Promise<ReadonlyMap<string, DagRunFacts>> {
  const rows = await connection.rows<DagRunFacts>(FACTS, [dagIds]);
  return new Map(rows.map((row) => [row.dag_id, row]));
}

/** The latest run of a DAG with the progress of its tasks. */
export interface LastRunFacts {
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_type: string;
  readonly tasks: number;
  readonly finished: number;
  readonly waiting: number;
  /** A task that failed; null if none has. */
  readonly failed_task: string | null;
  readonly failed_reason: string | null;
}

/** Runs with more task instances are counted up to this number. */
const COUNTED_TASKS = 2_000;

const LAST_RUNS = statement(
  "ui-last-run-facts",
  `SELECT k.dag_id, r.run_id, r.run_type, c.* FROM unnest($1::text[]) AS k(dag_id) CROSS JOIN LATERAL (
     SELECT x.id, x.run_id, x.run_type FROM dag_run x WHERE x.dag_id = k.dag_id
     ORDER BY x.run_after DESC, x.id DESC LIMIT 1) r
   CROSS JOIN LATERAL (
     SELECT count(*)::int AS tasks, count(*) FILTER (WHERE t.state = ANY($2))::int AS finished,
       count(*) FILTER (WHERE t.state = 'deferred')::int AS waiting,
       (array_agg(t.task_id ORDER BY t.ended_at) FILTER (WHERE t.state = 'failed'))[1] AS failed_task,
       (array_agg(left(t.reason, 500) ORDER BY t.ended_at) FILTER (WHERE t.state = 'failed'))[1] AS failed_reason
     FROM (SELECT * FROM task_instance i WHERE i.dag_run_id = r.id LIMIT ${COUNTED_TASKS}) t) c`,
);

export async function readLastRunFacts(
  connection: Connection,
  dagIds: readonly string[],
): Promise<ReadonlyMap<string, LastRunFacts>> {
  const rows = await connection.rows<LastRunFacts>(LAST_RUNS, [dagIds, [...FINISHED]]);
  return new Map(rows.map((row) => [row.dag_id, row]));
}
