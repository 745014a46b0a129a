/**
 * What triggers that look into this database wait for: other runs, other tasks, calls of webhooks. One statement asks
 * for all waits of a kind; each finds its rows by key. Looking twice is harmless: what is true is true again.
 */
import type { DagRunArgs, DagRunState, ExternalTaskArgs } from "@tradewind/sdk/builtin-triggers";
import type { Json } from "@tradewind/sdk/manifest";
import { type Call, type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** A wait, by any number that tells it from the others. */
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

/** Either by its id or by its date: each has a unique index of its own. */
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
 * Index: signal_webhook. In the order of their ids, in which calls of one webhook become visible. What a try has taken in
 * an earlier wait it does not take again: a trigger that such a try waits for is its own, and has no other waits.
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
 * Calls of a webhook that is a DAG's schedule, which have no run yet. The look back allows for calls that were stored
 * late; the time of the last complete look is on the trigger's row.
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

/** By the database's clock, which dates everything that is looked for here. */
export async function momentAgo(db: Connection, ms: number): Promise<Date> {
  const row = await db.one<{ at: Date }>(MOMENT_AGO, [ms]);
  if (row === undefined) throw new Error("the database did not tell the time");
  return row.at;
}

/** The run that a call of a webhook starts; by it the call is known to be dealt with. */
export function webhookRunId(signalId: number): string {
  return `event__webhook_${signalId}`;
}

export async function findRuns(
  db: Database,
  waits: readonly Wait<DagRunArgs>[],
): Promise<Map<number, FoundRun>> {
  const rows = await ask<FoundRun>(db, waits, () => call(RUNS, ...runColumns(waits)));
  return new Map(rows.map((row) => [row.id, row]));
}

/** Those that have ended since, or a little before; `at`: when it was looked. */
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

/** All instances of the task, of a mapped one in no particular order. */
export async function findTasks(
  db: Database,
  waits: readonly Wait<ExternalTaskArgs>[],
): Promise<Map<number, FoundTask[]>> {
  const rows = await ask<FoundTask>(db, waits, () =>
    call(
      TASKS,
      ...runColumns(waits),
      waits.map(({ args }) => args.taskId),
      waits.map(({ args }) => args.mapIndex),
    ),
  );
  return Map.groupBy(rows, (row) => row.id);
}

/** The first call since `after` of each that whoever waits for `trigger` has not taken yet. */
export async function findCalls(
  db: Database,
  waits: readonly Wait<{ readonly name: string; readonly after: string; readonly trigger: number }>[],
): Promise<Map<number, FoundCall>> {
  const rows = await ask<FoundCall>(db, waits, () =>
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

/** At most `limit` of each trigger, in their order. */
export function findNewCalls(
  db: Database,
  waits: readonly Wait<{ readonly name: string }>[],
  limit: number,
): Promise<FoundCall[]> {
  return ask<FoundCall>(db, waits, () =>
    call(
      NEW_CALLS,
      ids(waits),
      waits.map(({ args }) => args.name),
      limit,
    ),
  );
}

async function ask<R>(db: Database, waits: readonly unknown[], question: () => Call): Promise<R[]> {
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
