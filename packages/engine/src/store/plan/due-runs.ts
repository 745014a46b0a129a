/**
 * Creates the runs of schedules: exactly one per due interval, for any number of schedulers.
 *
 * One transaction locks the DAG's row (SKIP LOCKED: another scheduler is already processing a locked DAG), inserts the
 * run and advances the DAG's plan. The unique index on (dag, logical date) is the backstop: a manual or backfill run with
 * the same date is kept, and the plan advances.
 *
 * A DAG with as many queued scheduled runs as may be active is skipped: its backlog stays one planned time in its row
 * instead of thousands of queued runs. It is due again when one of these runs starts or is deleted.
 *
 * Without catchup, a plan that became overdue while the DAG was paused or no scheduler was alive creates one run: the
 * newest that is due. The planner decides which one; a timetable class is called again.
 *
 * A DAG with a timetable class gets no new plan here: the request for the next run is stored with the run
 * (timetable-plans.ts). A DAG that has failed too often is paused instead (failure-pause.ts). For a DAG whose times are
 * part of a condition, a signal is sent and no run is created (schedule-ticks.ts).
 */
import type { DuePlanner, PlannedRun, Scheduling } from "../../model/calendar/planner.ts";
import { pauseFailing, publishPaused } from "../dag/failure-pause.ts";
import type { Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed, type ServedDags } from "../job/served-dags.ts";
import { publishRuns } from "../task/state-signals.ts";
import { publishTicks } from "./schedule-ticks.ts";
import { queryTimetables, requeryTimetables } from "./timetable-plans.ts";

/** A timetable result that was stored before it was due and is used later than this may be outdated. */
const STALE_MS = 1_000;

/**
 * At least one run may be queued at any limit. Two concurrent schedulers may exceed it by one: each counts in its
 * own snapshot, and the limit on active runs is enforced elsewhere. Index: dag_run_backlog.
 */
const HAS_ROOM = `(SELECT count(*) FROM (
     SELECT 1 FROM dag_run q WHERE q.dag_id = d.dag_id AND q.state = 'queued' AND q.run_type = 'scheduled'
     LIMIT greatest(v.max_active_runs, 1)) AS waiting) < greatest(v.max_active_runs, 1)`;

function iso(column: string): string {
  return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;
}

const LOCK_DUE = statement(
  "due-lock",
  `SELECT d.dag_id, d.version_id, v.manifest - 'tasks' AS manifest, d.next_logical_date, d.next_interval_start,
          d.next_interval_end, d.next_run_after, extract(epoch FROM now()) * 1000 AS now,
          (SELECT t.answered_at < d.next_run_after FROM dag_timetable t WHERE t.dag_id = d.dag_id) AS was_planned_ahead
   FROM dag d JOIN dag_version v ON v.id = d.version_id
   WHERE d.next_run_after <= now() AND NOT d.is_paused AND NOT d.is_stale AND ${isServed("d.dag_id", "$2")} AND ${HAS_ROOM}
   ORDER BY d.next_run_after LIMIT $1
   FOR NO KEY UPDATE OF d SKIP LOCKED`,
);

/** The DAG is locked, as required for signals about its schedule. */
const INSERT = statement(
  "due-insert",
  `WITH added AS (INSERT INTO dag_run (dag_id, run_id, run_type, logical_date, interval_start, interval_end, run_after, version_id,
                        triggered_by)
   SELECT u.dag, u.run, 'scheduled', to_timestamp(u.logical / 1000), to_timestamp(u.istart / 1000),
          to_timestamp(u.iend / 1000), to_timestamp(u.after / 1000), u.version, 'timetable'
   FROM unnest($1::text[], $2::text[], $3::float8[], $4::float8[], $5::float8[], $6::float8[], $7::bigint[])
     AS u(dag, run, logical, istart, iend, after, version)
   ON CONFLICT DO NOTHING
   RETURNING id, dag_id, run_id, state, logical_date, run_after
   ), ticked AS (
     INSERT INTO signal (namespace, key, value, sender)
     SELECT 'schedule', a.dag_id, json_build_object('runId', a.run_id, 'logicalDate', ${iso("a.logical_date")},
                                                    'runAfter', ${iso("a.run_after")}), 'engine'
     FROM added a
   ), told AS (${publishRuns("added")})
   SELECT id FROM added`,
);

const ADVANCE = statement(
  "due-advance",
  `UPDATE dag d SET next_logical_date = to_timestamp(u.logical / 1000),
                    next_interval_start = to_timestamp(u.istart / 1000),
                    next_interval_end = to_timestamp(u.iend / 1000), next_run_after = to_timestamp(u.after / 1000)
   FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::float8[]) AS u(dag, logical, istart, iend, after)
   WHERE d.dag_id = u.dag`,
);

const NEXT_DUE = statement(
  "due-next",
  `SELECT extract(epoch FROM d.next_run_after - now()) * 1000 AS wait
   FROM dag d JOIN dag_version v ON v.id = d.version_id
   WHERE d.next_run_after IS NOT NULL AND NOT d.is_paused AND NOT d.is_stale AND ${isServed("d.dag_id", "$1")}
     AND ${HAS_ROOM}
   ORDER BY d.next_run_after LIMIT 1`,
);

/**
 * One subquery per state, matching the partial indexes: with both states in one condition, PostgreSQL scans all runs of
 * the DAG. A DAG that is delayed by failures is planned at its logical date, unlike a first run: it is checked again,
 * because a user may have fixed it.
 */
const IS_IDLE = `d.is_continuous AND NOT d.is_paused AND NOT d.is_stale
     AND (d.next_run_after IS NULL OR d.next_run_after > now() AND d.next_run_after = d.next_logical_date)
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = d.dag_id AND r.state = 'queued')
     AND NOT EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = d.dag_id AND r.state = 'running')`;

const LOCK_IDLE = statement(
  "due-lock-idle",
  `SELECT d.dag_id FROM dag d WHERE ${IS_IDLE} AND ${isServed("d.dag_id", "$1")}
   ORDER BY d.dag_id FOR NO KEY UPDATE SKIP LOCKED`,
);

/**
 * Recent scheduled runs that failed in a row with the DAG's current code: since the last success, including manual runs,
 * and since the DAG was unpaused. Ten are enough for the longest delay. Indexes: dag_run_logical_date, dag_run_succeeded.
 */
const FAILED_IN_A_ROW = `SELECT f.ended_at FROM (
       SELECT x.state, x.run_type, x.version_id, x.ended_at FROM dag_run x
       WHERE x.dag_id = d.dag_id AND x.logical_date > now() - interval '1 day'
       ORDER BY x.logical_date DESC LIMIT 50) AS f
     WHERE f.state = 'failed' AND f.run_type = 'scheduled' AND f.version_id = d.version_id
       AND f.ended_at > coalesce(d.failures_since, '-infinity')
       AND f.ended_at > coalesce((SELECT s.ended_at FROM dag_run s
                                  WHERE s.dag_id = d.dag_id AND s.state = 'success'
                                    AND s.ended_at > now() - interval '1 day'
                                  ORDER BY s.ended_at DESC LIMIT 1), '-infinity')
     LIMIT 10`;

/**
 * Plans continuous DAGs without an unfinished run. The next run is due now; after consecutive failures 1 s, 2 s, 4 s, up
 * to 5 minutes after the last one, so that a failing DAG does not run in a tight loop. A separate statement after the
 * lock: the locking statement may not see a run that another scheduler created after it began.
 */
const PLAN_CONTINUOUS = statement(
  "due-continuous",
  `WITH next AS (
     SELECT d.dag_id, greatest(now(), brake.until) AS at
     FROM dag d JOIN dag_version v ON v.id = d.version_id
       CROSS JOIN LATERAL (
         SELECT max(f.ended_at) + least(power(2, count(*) - 1), 300) * interval '1 second' AS until
         FROM (${FAILED_IN_A_ROW}) AS f) AS brake
     WHERE d.dag_id = ANY($1) AND ${IS_IDLE}
       AND coalesce((v.manifest->>'start')::timestamptz <= now(), true)
       AND coalesce((v.manifest->>'end')::timestamptz > greatest(now(), brake.until), true)
   )
   UPDATE dag d SET next_run_after = next.at, next_logical_date = next.at, next_interval_start = next.at,
                    next_interval_end = next.at
   FROM next WHERE d.dag_id = next.dag_id AND d.next_run_after IS DISTINCT FROM next.at
   RETURNING d.dag_id`,
);

interface DueDag {
  readonly dag_id: string;
  readonly version_id: number;
  readonly manifest: Scheduling;
  readonly next_logical_date: Date | null;
  readonly next_interval_start: Date | null;
  readonly next_interval_end: Date | null;
  readonly next_run_after: Date;
  readonly now: string;
  /** For a timetable: its result was stored before the run was due. */
  readonly was_planned_ahead: boolean | null;
}

export interface DueRuns {
  readonly dags: number;
  /** Runs, and signals that were sent instead for DAGs whose condition includes times. */
  readonly created: number;
  /** DAGs that were paused because they failed too often. */
  readonly paused: readonly string[];
  /** Timetables to call now. */
  readonly asked: number;
}

/**
 * Creates due runs of at most `limit` DAGs, one each. Call it again while it returns more than zero DAGs, and when queued
 * runs have started or were deleted.
 */
export function createDueRuns(
  db: Database,
  planner: DuePlanner,
  limit: number,
  dags: ServedDags = null,
): Promise<DueRuns> {
  return db.transaction(async (tx) => {
    const locked = await tx.rows<DueDag>(LOCK_DUE, [limit, dags]);
    if (locked.length === 0) return { dags: 0, created: 0, paused: [], asked: 0 };
    const limited = locked.flatMap(({ dag_id, manifest: { pauseAfterFailures: most } }) =>
      most === undefined ? [] : [{ dagId: dag_id, limit: most }],
    );
    const paused = await pauseFailing(tx, limited);
    const open = locked.filter(({ dag_id }) => !paused.includes(dag_id));
    const outdated = open.filter(isOutdated).map(({ dag_id }) => dag_id);
    const plans = open
      .filter(({ dag_id }) => !outdated.includes(dag_id))
      .map((dag) => ({ dag, run: planner.due(dag.manifest, plannedRun(dag), Number(dag.now)) }));
    // Jitter may have moved the newer run, which replaces the planned one, into the future.
    const due = plans.filter(({ dag, run }) => run.runAfter <= Number(dag.now));
    const ticking = due.filter(({ dag }) => isTicking(dag));
    await publishTicks(
      tx,
      ticking.map(({ dag, run }) => ({ dagId: dag.dag_id, ...run })),
    );
    const making = due.filter(({ dag }) => !isTicking(dag));
    const inserted = await tx.rows(INSERT, [
      making.map(({ dag }) => dag.dag_id),
      making.map(({ run }) => `scheduled__${new Date(run.logicalDate ?? run.runAfter).toISOString()}`),
      ...planColumns(making.map(({ run }) => run)),
      making.map(({ dag }) => dag.version_id),
    ]);
    const next = plans.map(({ dag, run }) =>
      run.runAfter <= Number(dag.now) ? planner.next(dag.manifest, run, Number(dag.now)) : run,
    );
    await tx.rows(ADVANCE, [
      [...plans.map(({ dag }) => dag.dag_id), ...outdated],
      ...planColumns([...next, ...outdated.map(() => null)]),
    ]);
    const asked = due.flatMap(({ dag, run }) => (isTimetable(dag) ? [{ dagId: dag.dag_id, last: run }] : []));
    await queryTimetables(tx, asked);
    await requeryTimetables(tx, outdated);
    await publishPaused(tx, paused);
    return {
      dags: locked.length,
      created: inserted.length + ticking.length,
      paused,
      asked: asked.length + outdated.length,
    };
  });
}

/** Milliseconds until the next DAG below its limit is due (negative: overdue), null if none is planned. */
export async function nextDueIn(db: Database, dags: ServedDags = null): Promise<number | null> {
  const row = await db.one<{ wait: string }>(NEXT_DUE, [dags]);
  return row ? Number(row.wait) : null;
}

export function planContinuous(db: Database, dags: ServedDags = null): Promise<number> {
  return db.transaction(async (tx) => {
    const idle = await tx.rows<{ dag_id: string }>(LOCK_IDLE, [dags]);
    if (idle.length === 0) return 0;
    return (await tx.rows(PLAN_CONTINUOUS, [idle.map((dag) => dag.dag_id)])).length;
  });
}

/** Only the timetable can decide whether a later run is due by now. A result stored after the due time is current. */
function isOutdated(dag: DueDag): boolean {
  const { catchup, jitterMs = 0 } = dag.manifest;
  const lateMs = Number(dag.now) - dag.next_run_after.getTime();
  return isTimetable(dag) && !catchup && dag.was_planned_ahead === true && lateMs > STALE_MS + jitterMs;
}

function isTimetable({ manifest }: DueDag): boolean {
  return manifest.schedule.kind === "timetable";
}

function isTicking({ manifest }: DueDag): boolean {
  return manifest.schedule.kind === "signal";
}

function plannedRun(dag: DueDag): PlannedRun {
  return {
    logicalDate: dag.next_logical_date?.getTime() ?? null,
    intervalStart: dag.next_interval_start?.getTime() ?? null,
    intervalEnd: dag.next_interval_end?.getTime() ?? null,
    runAfter: dag.next_run_after.getTime(),
  };
}

function planColumns(runs: readonly (PlannedRun | null)[]): (number | null)[][] {
  return [
    runs.map((run) => run?.logicalDate ?? null),
    runs.map((run) => run?.intervalStart ?? null),
    runs.map((run) => run?.intervalEnd ?? null),
    runs.map((run) => run?.runAfter ?? null),
  ];
}
