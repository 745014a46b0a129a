/**
 * Conditions of triggers that read this database: other runs, other tasks, webhook calls. One statement checks all waits
 * of a kind and finds the rows of each by key. Checking twice is harmless: a true condition stays true.
 */
import type { DagRunArgs, DagRunState, ExternalTaskArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import { type Call, type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** A wait, identified by any unique number. */
export interface Wait<Args> {
  readonly id: number;
  readonly args: Args;
}

export interface FoundRun {
  readonly id: number;
  readonly run_id: string;
  readonly logical_date: Date | null;
  readonly state: DagRunState;
}

export interface FoundTask {
  readonly id: number;
  readonly run_id: string;
  readonly map_index: number;
  readonly state: string;
}

export interface FoundCall {
  readonly id: number;
  readonly signal_id: number;
  readonly value: { readonly body: Json; readonly headers: Readonly<Record<string, string>> };
}

/** By run id or by logical date: each has its own unique index. */
const RUN_OF_WAIT = `(
     SELECT r.id, r.run_id, r.logical_date, r.state FROM dag_run r
     WHERE u.run IS NOT NULL AND r.dag_id = u.dag AND r.run_id = u.run
     UNION ALL
     SELECT r.id, r.run_id, r.logical_date, r.state FROM dag_run r
     WHERE u.run IS NULL AND r.dag_id = u.dag AND r.logical_date = u.logical) AS r`;

const RUNS = statement(
  "engine-find-runs",
  `SELECT u.id, r.run_id, r.logical_date, r.state
   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[]) AS u(id, dag, run, logical)
   CROSS JOIN LATERAL ${RUN_OF_WAIT}`,
);

/** Index: dag_run_ended. */
const ENDED_RUNS = statement(
  "engine-find-ended-runs",
  `SELECT r.dag_id, r.run_id, r.logical_date, r.state FROM dag_run r
   WHERE r.ended_at > $1::timestamptz - $2 * interval '1 millisecond' AND r.state IN ('success', 'failed')`,
);

const TASKS = statement(
  "engine-find-tasks",
  `SELECT u.id, r.run_id, t.map_index, t.state
   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::text[], $6::int[])
     AS u(id, dag, run, logical, task, map)
   CROSS JOIN LATERAL ${RUN_OF_WAIT}
   JOIN task_instance t ON t.dag_run_id = r.id AND t.task_id = u.task AND (u.map IS NULL OR t.map_index = u.map)`,
);

/**
 * Index: signal_webhook. In the order of ids, in which calls of one webhook become visible. A try does not receive a call
 * twice: if it has received calls in an earlier wait, its trigger is not shared with other waits.
 */
const CALLS = statement(
  "engine-find-calls",
  `SELECT u.id, s.id AS signal_id, s.value
   FROM unnest($1::bigint[], $2::text[], $3::timestamptz[], $4::bigint[]) AS u(id, name, after, trigger)
   CROSS JOIN LATERAL (
     SELECT coalesce(max((d.outcome->'calls'->>u.name)::bigint), 0) AS last
     FROM (SELECT * FROM deferral w WHERE w.waits_on = u.trigger LIMIT 1) AS w
     JOIN deferral d ON d.dag_run_id = w.dag_run_id AND d.task_id = w.task_id AND d.map_index = w.map_index
       AND d.try_number = w.try_number AND d.outcome IS NOT NULL) AS taken
   CROSS JOIN LATERAL (
     SELECT s.id, s.value FROM signal s
     WHERE s.namespace = 'webhook' AND s.key = u.name AND s.created_at >= u.after AND s.id > taken.last
     ORDER BY s.id LIMIT 1) AS s`,
);

/**
 * Webhook calls without a run, for a DAG that is scheduled on the webhook. It looks back for calls that were stored late;
 * the trigger's row has the time of the last complete check.
 */
const NEW_CALLS = statement(
  "engine-find-new-calls",
  `SELECT t.id, s.id AS signal_id, s.value
   FROM unnest($1::bigint[], $2::text[]) AS u(id, name) JOIN trigger t ON t.id = u.id CROSS JOIN LATERAL (
     SELECT s.id, s.value FROM signal s
     WHERE s.namespace = 'webhook' AND s.key = u.name
       AND s.created_at >= greatest(t.created_at, t.polled_at - interval '1 minute')
       AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = t.dag_id AND r.run_id = 'event__webhook_' || s.id)
     ORDER BY s.created_at, s.id LIMIT $3) AS s`,
);

const MOMENT_AGO = statement("engine-moment-ago", "SELECT now() - $1 * interval '1 millisecond' AS at");

/** By the database's clock, which dates all rows that are read here. */
export async function momentAgo(db: Connection, ms: number): Promise<Date> {
  const row = await db.one<{ at: Date }>(MOMENT_AGO, [ms]);
  if (row === undefined) throw new Error("the database returned no time");
  return row.at;
}

/** The run id of a webhook call, which marks the call as processed. */
export function webhookRunId(signalId: number): string {
  return `event__webhook_${signalId}`;
}

export async function findRuns(
  db: Database,
  waits: readonly Wait<DagRunArgs>[],
): Promise<Map<number, FoundRun>> {
  const rows = await query<FoundRun>(db, waits, () => call(RUNS, ...runColumns(waits)));
  return new Map(rows.map((row) => [row.id, row]));
}

/** Runs that have ended since, or shortly before; `at`: the time of the check. */
export async function findEndedRuns(
  db: Database,
  since: Date,
  overlapMs: number,
): Promise<{ readonly at: Date; readonly runs: (Omit<FoundRun, "id"> & { readonly dag_id: string })[] }> {
  const [moments = [], runs = []] = await db.pipeline([
    call(MOMENT_AGO, 0),
    call(ENDED_RUNS, since, overlapMs),
  ]);
  const [moment] = moments as { readonly at: Date }[];
  return { at: moment?.at ?? since, runs: runs as (Omit<FoundRun, "id"> & { dag_id: string })[] };
}

/** All instances of the task; those of a mapped task are unordered. */
export async function findTasks(
  db: Database,
  waits: readonly Wait<ExternalTaskArgs>[],
): Promise<Map<number, FoundTask[]>> {
  const rows = await query<FoundTask>(db, waits, () =>
    call(
      TASKS,
      ...runColumns(waits),
      waits.map(({ args }) => args.taskId),
      waits.map(({ args }) => args.mapIndex),
    ),
  );
  return Map.groupBy(rows, (row) => row.id);
}

/** The first call since `after` of each webhook that the waits of `trigger` have not received yet. */
export async function findCalls(
  db: Database,
  waits: readonly Wait<{ readonly name: string; readonly after: string; readonly trigger: number }>[],
): Promise<Map<number, FoundCall>> {
  const rows = await query<FoundCall>(db, waits, () =>
    call(
      CALLS,
      ids(waits),
      waits.map(({ args }) => args.name),
      waits.map(({ args }) => args.after),
      waits.map(({ args }) => args.trigger),
    ),
  );
  return new Map(rows.map((row) => [row.id, row]));
}

/** At most `limit` per trigger, in order. */
export function findNewCalls(
  db: Database,
  waits: readonly Wait<{ readonly name: string }>[],
  limit: number,
): Promise<FoundCall[]> {
  return query<FoundCall>(db, waits, () =>
    call(
      NEW_CALLS,
      ids(waits),
      waits.map(({ args }) => args.name),
      limit,
    ),
  );
}

async function query<R>(db: Database, waits: readonly unknown[], question: () => Call): Promise<R[]> {
  if (waits.length === 0) return [];
  const [rows = []] = await db.pipeline([question()]);
  return rows as R[];
}

function runColumns(waits: readonly Wait<Pick<DagRunArgs, "dagId" | "runId" | "logicalDate">>[]): unknown[] {
  return [
    ids(waits),
    waits.map(({ args }) => args.dagId),
    waits.map(({ args }) => args.runId),
    waits.map(({ args }) => args.logicalDate),
  ];
}

function ids(waits: readonly Wait<unknown>[]): number[] {
  return waits.map(({ id }) => id);
}
