/**
 * Moments as schedules: `on(new DateTimeTrigger(…))` creates one run when the moment has come. No triggerer runs such a
 * trigger. The first triggerer that polls creates its run; the trigger then sleeps forever, so that no second run is
 * created. A moment after the DAG's `end` creates no run; an earlier moment does, however late it is found.
 */
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { publishRuns, publishScheduleTriggers } from "../task/state-signals.ts";

const IS_DUE = "t.timed IS NOT NULL AND t.dag_id IS NOT NULL AND t.wake_at <= now()";
const IS_AWAKE = "NOT d.is_paused AND NOT d.is_stale";
const DAG = "JOIN dag d ON d.dag_id = t.dag_id JOIN dag_version v ON v.id = d.version_id";
const IS_IN_TIME = "coalesce((v.manifest->>'end')::timestamptz >= t.wake_at, true)";

/** Lock order: DAGs before triggers. */
const LOCK_DAGS = statement(
  "timed-lock-dags",
  `SELECT 1 FROM dag d WHERE d.dag_id = ANY(ARRAY(SELECT t.dag_id FROM trigger t WHERE ${IS_DUE})) AND ${IS_AWAKE}
   ORDER BY d.dag_id FOR KEY SHARE`,
);

/** The keys of their signals (state-signals.ts), for all due triggers: which of them this job fires is not known yet. */
const LOCK_KEYS = statement(
  "timed-lock-keys",
  `SELECT tw_lock_signals(array_agg('trigger'::text), array_agg(due.dag_id)) FROM (
     SELECT t.dag_id FROM trigger t ${DAG} WHERE ${IS_DUE} AND ${IS_AWAKE} AND ${IS_IN_TIME}
   ) AS due HAVING count(*) > 0`,
);

const STORE = statement(
  "timed-store-runs",
  `WITH due AS (
     SELECT t.id, t.kind, t.dag_id, d.version_id, t.timed->>'payload' AS payload,
            to_char(t.wake_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS moment
     FROM trigger t ${DAG} WHERE ${IS_DUE} AND ${IS_AWAKE} AND ${IS_IN_TIME}
     FOR UPDATE OF t SKIP LOCKED
   ), slept AS (
     UPDATE trigger t SET wake_at = 'infinity' FROM due WHERE t.id = due.id
   ), added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, conf, version_id, triggered_by)
     SELECT dag_id, 'event__' || moment, 'signal_triggered', json_build_object('event', coalesce(payload, moment)),
            version_id, 'trigger' FROM due
     ON CONFLICT DO NOTHING RETURNING id, dag_id, run_id, state
   ), told AS (${publishRuns("added")}
   ), fired AS (${publishScheduleTriggers("(SELECT *, 'event__' || moment AS run_id FROM due)", "event", "'engine'")}
   )
   SELECT id FROM added`,
);

const NEXT = statement(
  "timed-next-run",
  `SELECT extract(epoch FROM t.wake_at - now()) * 1000 AS wait FROM trigger t ${DAG}
   WHERE t.timed IS NOT NULL AND t.dag_id IS NOT NULL AND t.wake_at < 'infinity' AND ${IS_AWAKE} AND ${IS_IN_TIME}
   ORDER BY t.wake_at LIMIT 1`,
);

/** Creates the runs of DAGs whose moment has come; returns their number. */
export async function storeTimedRuns(db: Database): Promise<number> {
  const [, , rows = []] = await db.pipeline([call(LOCK_DAGS), call(LOCK_KEYS), call(STORE)]);
  return rows.length;
}

/** Milliseconds until the next scheduled moment (negative: overdue), null if there is none. */
export async function nextTimedRunIn(db: Connection): Promise<number | null> {
  const row = await db.one<{ wait: string }>(NEXT);
  return row ? Number(row.wait) : null;
}
