/**
 * Plans of DAGs whose schedule is a timetable class in their bundle. A request is a row (`dag_timetable`); a scheduler
 * takes it for a limited time, calls the class outside of any transaction, and stores the result as the DAG's plan.
 *
 * Crash before the result is stored: the request is due again when that time expires. Crash after it, or a lost reply:
 * the plan is stored. Concurrent or late calls: the number of the request has changed, and the result is dropped; the
 * class is a pure function, so a repeated call is harmless. A new version of the DAG, or a run created from the plan, is
 * a new request.
 *
 * Locks: the row of `dag` before that of `dag_timetable`; taking requests locks only the latter, and does not wait.
 */

import type { PlannedRun, Scheduling } from "../../model/calendar/planner.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed, type ServedDags } from "../job/served-dags.ts";

/** A run that a timetable returned. */
interface TimetableRun {
  readonly logicalDate: number;
  readonly intervalStart: number;
  readonly intervalEnd: number;
}

/** The arguments of a call, and the code to call. */
export interface Question {
  readonly dagId: string;
  /** Identifies the request. */
  readonly asked: number;
  readonly bundleHash: string;
  readonly dag: Scheduling;
  readonly last: TimetableRun | null;
  readonly failures: number;
  readonly standing: Standing;
  readonly now: number;
}

/** Why a timetable has no result. */
export interface ScheduleError {
  readonly code: string;
  readonly message: string;
  /** ISO instant. */
  readonly at: string;
}

const SET = statement(
  "timetable-set",
  `INSERT INTO dag_timetable AS t (dag_id, ask_at, asked, last_logical_date, last_interval_start, last_interval_end)
   SELECT u.dag, now(), 1, to_timestamp(u.logical / 1000), to_timestamp(u.istart / 1000), to_timestamp(u.iend / 1000)
   FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[]) AS u(dag, logical, istart, iend)
   ON CONFLICT (dag_id) DO UPDATE SET ask_at = now(), asked = t.asked + 1, failures = 0, error = NULL,
     last_logical_date = excluded.last_logical_date, last_interval_start = excluded.last_interval_start,
     last_interval_end = excluded.last_interval_end`,
);

/** Repeats the request after the same last run. */
const SET_AGAIN = statement(
  "timetable-set-again",
  `UPDATE dag_timetable SET ask_at = now(), asked = asked + 1, failures = 0, error = NULL WHERE dag_id = ANY($1::text[])`,
);

const REMOVE = statement("timetable-remove", "DELETE FROM dag_timetable WHERE dag_id = ANY($1::text[])");

/** Standing of a timetable: its current code has returned a result before. */
export const TRIED = 0;
/** Its code is new. */
export const UNKNOWN = 1;
/** Its last call failed and is retried. */
export const FAILING = 2;
/** The worst standing to include; better ones are included, too. */
export type Standing = typeof TRIED | typeof UNKNOWN | typeof FAILING;

/** The last run has the version of the code that returned it. Index: dag_run_logical_date. */
const STANDING = `CASE WHEN t.failures > 0 THEN ${FAILING}
       WHEN EXISTS (SELECT 1 FROM dag_run r WHERE r.dag_id = t.dag_id AND r.logical_date = t.last_logical_date
                      AND r.version_id = d.version_id) THEN ${TRIED}
       ELSE ${UNKNOWN} END`;

/**
 * Stale DAGs wait until their file declares them again. Ordered by standing, then by due time, so that each timetable is
 * called once before any is called twice.
 */
const TAKE = statement(
  "timetable-take",
  `WITH due AS (
     SELECT t.dag_id FROM dag_timetable t JOIN dag d ON d.dag_id = t.dag_id
     WHERE t.ask_at <= now() AND NOT d.is_stale AND ${isServed("t.dag_id", "$4")} AND ${STANDING} <= $3
     ORDER BY ${STANDING}, t.ask_at LIMIT $1 FOR UPDATE OF t SKIP LOCKED
   )
   UPDATE dag_timetable t SET ask_at = now() + $2 * interval '1 millisecond', asked = t.asked + 1
   FROM due JOIN dag d ON d.dag_id = due.dag_id JOIN dag_version v ON v.id = d.version_id
   WHERE t.dag_id = due.dag_id
   RETURNING t.dag_id, t.asked, t.failures, t.last_logical_date, t.last_interval_start, t.last_interval_end,
             v.bundle_hash, v.manifest - 'tasks' - 'groups' AS manifest, extract(epoch FROM now()) * 1000 AS now,
             ${STANDING} AS standing`,
);

const LOCK_DAG = statement("timetable-lock-dag", "SELECT 1 FROM dag WHERE dag_id = $1 FOR NO KEY UPDATE");

const SETTLE = statement(
  "timetable-settle",
  `UPDATE dag_timetable SET ask_at = NULL, failures = 0, error = NULL, answered_at = now()
   WHERE dag_id = $1 AND asked = $2 RETURNING 1`,
);

const PLAN = statement(
  "timetable-plan",
  `UPDATE dag SET next_logical_date = to_timestamp($2::float8 / 1000), next_interval_start = to_timestamp($3::float8 / 1000),
                  next_interval_end = to_timestamp($4::float8 / 1000), next_run_after = to_timestamp($5::float8 / 1000)
   WHERE dag_id = $1`,
);

const FAIL = statement(
  "timetable-fail",
  `UPDATE dag_timetable SET ask_at = now() + $3 * interval '1 millisecond', failures = failures + 1, error = $4::json
   WHERE dag_id = $1 AND asked = $2 RETURNING 1`,
);

const RELEASE = statement(
  "timetable-release",
  `UPDATE dag_timetable t SET ask_at = now() FROM unnest($1::text[], $2::bigint[]) AS u(dag, asked)
   WHERE t.dag_id = u.dag AND t.asked = u.asked AND t.ask_at IS NOT NULL`,
);

const NEXT = statement(
  "timetable-next",
  `SELECT extract(epoch FROM t.ask_at - now()) * 1000 AS wait
   FROM dag_timetable t JOIN dag d ON d.dag_id = t.dag_id
   WHERE t.ask_at IS NOT NULL AND NOT d.is_stale AND ${isServed("t.dag_id", "$2")} AND ${STANDING} <= $1 ORDER BY t.ask_at LIMIT 1`,
);

/** Index: dag_run_logical_date. */
const LAST = statement(
  "timetable-last-scheduled",
  `SELECT logical_date AS last_logical_date, interval_start AS last_interval_start, interval_end AS last_interval_end
   FROM dag_run WHERE dag_id = $1 AND logical_date < $2 AND run_type = 'scheduled' ORDER BY logical_date DESC LIMIT 1`,
);

/** Requests the run after `last` for these DAGs. The caller has locked their rows. */
export async function queryTimetables(
  tx: Connection,
  dags: readonly { readonly dagId: string; readonly last: PlannedRun | null }[],
): Promise<void> {
  if (dags.length === 0) return;
  await tx.rows(SET, [
    dags.map(({ dagId }) => dagId),
    dags.map(({ last }) => last?.logicalDate ?? null),
    dags.map(({ last }) => last?.intervalStart ?? last?.logicalDate ?? null),
    dags.map(({ last }) => last?.intervalEnd ?? last?.logicalDate ?? null),
  ]);
}

/** Their plan is outdated: requests the next run as of now. The caller has locked the rows of the DAGs. */
export async function requeryTimetables(tx: Connection, dagIds: readonly string[]): Promise<void> {
  if (dagIds.length > 0) await tx.rows(SET_AGAIN, [dagIds]);
}

/** These DAGs no longer have a timetable class. */
export async function forgetTimetables(tx: Connection, dagIds: readonly string[]): Promise<void> {
  if (dagIds.length > 0) await tx.rows(REMOVE, [dagIds]);
}

interface QuestionRow {
  readonly dag_id: string;
  readonly asked: number;
  readonly failures: number;
  readonly last_logical_date: Date | null;
  readonly last_interval_start: Date | null;
  readonly last_interval_end: Date | null;
  readonly bundle_hash: string;
  readonly manifest: Scheduling;
  readonly now: string;
  readonly standing: Standing;
}

/** Takes due requests of timetables with this standing or better, for a limited time. */
export async function claimQuestions(
  db: Database,
  limit: number,
  holdMs: number,
  worst: Standing = FAILING,
  dags: ServedDags = null,
): Promise<Question[]> {
  const rows = await db.rows<QuestionRow>(TAKE, [limit, holdMs, worst, dags]);
  return rows.map((row) => ({
    dagId: row.dag_id,
    asked: row.asked,
    bundleHash: row.bundle_hash,
    dag: row.manifest,
    last: lastOf(row),
    failures: row.failures,
    standing: row.standing,
    now: Math.floor(Number(row.now)),
  }));
}

type LastRow = Pick<QuestionRow, "last_logical_date" | "last_interval_start" | "last_interval_end">;

/** The last scheduled run of the DAG before this moment. */
export async function lastScheduledRun(
  db: Connection,
  dagId: string,
  before: Date,
): Promise<TimetableRun | null> {
  const row = await db.one<LastRow>(LAST, [dagId, before]);
  return row === undefined ? null : lastOf(row);
}

function lastOf(row: LastRow): TimetableRun | null {
  const at = row.last_logical_date?.getTime();
  if (at === undefined) return null;
  return {
    logicalDate: at,
    intervalStart: row.last_interval_start?.getTime() ?? at,
    intervalEnd: row.last_interval_end?.getTime() ?? at,
  };
}

/** Returns whether the request was still current. */
export function storeAnswer(
  db: Database,
  { dagId, asked }: Pick<Question, "dagId" | "asked">,
  run: PlannedRun | null,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.rows(LOCK_DAG, [dagId]);
    if ((await tx.one(SETTLE, [dagId, asked])) === undefined) return false;
    const plan = [run?.logicalDate, run?.intervalStart, run?.intervalEnd, run?.runAfter];
    await tx.rows(PLAN, [dagId, ...plan.map((instant) => instant ?? null)]);
    return true;
  });
}

/** Retries after `retryMs`. Returns whether the request was still current. */
export async function storeFailure(
  db: Database,
  { dagId, asked }: Pick<Question, "dagId" | "asked">,
  { error, retryMs }: { readonly error: ScheduleError; readonly retryMs: number },
): Promise<boolean> {
  return (await db.one(FAIL, [dagId, asked, retryMs, JSON.stringify(error)])) !== undefined;
}

/** Releases requests: they are due now. */
export async function releaseQuestions(db: Database, questions: readonly Question[]): Promise<void> {
  await db.rows(RELEASE, [questions.map(({ dagId }) => dagId), questions.map(({ asked }) => asked)]);
}

/** Milliseconds until the next of these requests is due (negative: overdue), null if there is none. */
export async function nextQuestionIn(
  db: Connection,
  worst: Standing = FAILING,
  dags: ServedDags = null,
): Promise<number | null> {
  const row = await db.one<{ wait: string }>(NEXT, [worst, dags]);
  return row ? Number(row.wait) : null;
}
