/**
 * Creating the runs a schedule asks for: exactly one per due interval, whatever number of schedulers look at once.
 *
 * The DAG row is locked (SKIP LOCKED: another scheduler at the same DAG is already doing it), the run is inserted and
 * the DAG's plan is advanced in one transaction. The unique index on (dag, logical date) is the second belt: a manual
 * or backfill run that took the date first is kept, and the plan moves on.
 *
 * A DAG that has as many scheduled runs waiting as it may have active ones is passed over: what it is behind with stays
 * one planned moment in its row instead of thousands of queued runs. It is due again as soon as one of them starts or
 * goes.
 *
 * Without catchup, a plan that lay there while the DAG was paused or no scheduler was alive gives one run: the newest that
 * is due. Which one that is, the planner says; of a timetable of its own, the timetable is asked again.
 *
 * A DAG with a timetable of its own gets no new plan here: the question what comes next is stored with the run
 * (timetable-plans.ts). One that has failed too often is paused instead (failure-pause.ts). One whose times are a part of
 * a condition is told of them, and gets no run here (schedule-ticks.ts).
 */
import type { DuePlanner, PlannedRun, Scheduling } from "../../model/calendar/planner.ts";
import { pauseFailing, tellPaused } from "../dag/failure-pause.ts";
import type { Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed, type ServedDags } from "../job/served-dags.ts";
import { tellRuns } from "../task/state-signals.ts";
import { tellTicks } from "./schedule-ticks.ts";
import { askTimetables, askTimetablesAgain } from "./timetable-plans.ts";

/** A plan that a timetable gave before it was due and that is acted on later than this may be out of date. */
const STALE_MS = 1_000;

/**
 * At least one may wait, whatever the limit. Two schedulers at once may make it one more: each counts by its own
 * snapshot, and the limit on active runs is kept elsewhere. Index: dag_run_backlog.
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

/** Whoever tells of a DAG's schedule has locked the DAG. */
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
   ), told AS (${tellRuns("added")})
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
 * State by state, as the partial indexes have them: asked for both at once, PostgreSQL walks the DAG's whole history. One
 * that failures hold back is planned at its logical date, as no first run is: it is looked at again, for somebody may have
 * helped it.
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
 * Scheduled runs of today that failed in a row with the DAG's present code: since the last success, whoever started it, and
 * since somebody unpaused the DAG. Ten are enough for the longest delay. Indexes: dag_run_logical_date, dag_run_succeeded.
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
 * Continuous DAGs with no unfinished run: their next run is due now; after failures in a row 1 s, 2 s, 4 s, up to 5 minutes
 * after the last of them, or one that fails at once would do nothing else. A statement of its own after the lock: the one
 * that locked may not see the run that another scheduler planned and created since it began.
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
  /** Of a timetable's answer: it was given before the run was due. */
  readonly was_planned_ahead: boolean | null;
}

export interface DueRuns {
  readonly dags: number;
  /** Runs; and times that were told instead, to DAGs whose condition they are a part of. */
  readonly created: number;
  /** DAGs that were paused, because they failed too often. */
  readonly paused: readonly string[];
  /** Timetables that are to be asked now. */
  readonly asked: number;
}

/**
 * Creates due runs of at most `limit` DAGs, one each; call again while it answers more than zero DAGs, and when queued
 * runs started or went.
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
    // Jitter may have moved the newer run, which takes the place of the planned one, into the future.
    const due = plans.filter(({ dag, run }) => run.runAfter <= Number(dag.now));
    const ticking = due.filter(({ dag }) => isTicking(dag));
    await tellTicks(
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
    await askTimetables(tx, asked);
    await askTimetablesAgain(tx, outdated);
    await tellPaused(tx, paused);
    return {
      dags: locked.length,
      created: inserted.length + ticking.length,
      paused,
      asked: asked.length + outdated.length,
    };
  });
}

/** Milliseconds until the next DAG with room is due (negative: overdue), null when none is planned. */
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

/** Only the timetable itself knows whether a later run is due by now. An answer given after the moment is up to date. */
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
