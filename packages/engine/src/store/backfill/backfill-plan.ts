/**
 * Creates the runs of a backfill, date by date. Each date gets its run, or is recorded as having one, in the
 * transaction that advances the backfill to the next date.
 *
 * The backfill's row is locked first, then the runs to clear, by id. The existing runs are read before the locks and
 * again under them. The unique index on (dag, logical date) decides about new runs: if another transaction has created
 * one meanwhile, the whole step is rolled back and repeated.
 *
 * Crash before the commit: no effect. Crash after it: the runs exist and the date has advanced; the next owner starts
 * them. Lost reply: the next step begins at the stored date. Concurrent calls: the second waits for the row, and finds
 * another owner or a later date. Stale owner: the job no longer owns the backfill, and the step does nothing.
 */
import type { Json } from "@tradewind/sdk/manifest";
import {
  backfillDates,
  type DueRun,
  type ExistingRun,
  isOwn,
  type ListedRun,
  listedRun,
  type PlannedDate,
  planDates,
  type Reprocess,
  type TimeSchedule,
} from "../../model/index.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { clearTasks } from "../edit/clear-tasks.ts";
import { cancelRun, markRun } from "../edit/end-run.ts";
import { publishRuns } from "../task/state-signals.ts";
import { SHORT_BREATH } from "./backfill-claim.ts";

/** Dates per step: the number of runs that may be created, within these bounds. */
const MIN_STEP = 20;
const MAX_STEP = 100;
const STOPPED = "the backfill stops after a failure";

interface PlanRow {
  readonly id: number;
  readonly dag_id: string;
  readonly version_id: number | null;
  readonly current_version: number | null;
  readonly schedule: TimeSchedule | { readonly kind: "listed" };
  /** The listed dates from the next date on: one step and one more. Null for other schedules. */
  readonly dues: readonly ListedRun[] | null;
  readonly anchor: Date | null;
  readonly from_date: Date;
  readonly to_date: Date;
  readonly created_at: Date;
  readonly next_date: Date | null;
  readonly next_ordinal: number;
  readonly reprocess: Reprocess;
  readonly is_reverse: boolean;
  readonly max_active: number;
  readonly conf: Json | null;
  readonly stop_on_failure: boolean;
  readonly is_held: boolean;
}

/** The backfills of a DAG that is paused or removed from its file are held: they create no runs. */
const LOCK = statement(
  "backfill-plan-lock",
  `SELECT b.id, b.dag_id, b.version_id, d.version_id AS current_version, b.schedule - 'dues' AS schedule, b.anchor,
          b.from_date, b.to_date,
          CASE WHEN b.schedule ? 'dues' THEN jsonb_path_query_array(b.schedule, '$.dues[$head to $tail]',
            jsonb_build_object('head', b.next_ordinal, 'tail', b.next_ordinal + ${MAX_STEP})) END AS dues,
          b.created_at, b.next_date, b.next_ordinal, b.reprocess, b.is_reverse, b.max_active, b.conf, b.stop_on_failure,
          d.is_paused OR d.is_stale OR b.state = 'paused' AS is_held, ${SHORT_BREATH}
   FROM backfill b JOIN dag d ON d.dag_id = b.dag_id
   WHERE b.id = $1 AND b.owner_job = $2 AND b.state IN ('running', 'paused') AND b.ending IS NULL
   FOR NO KEY UPDATE OF b`,
);

/** A separate statement after the lock: the snapshot of the locking statement may predate the previous step. */
const COUNT = statement(
  "backfill-plan-count",
  `SELECT count(*) FILTER (WHERE state <> 'failed')::int AS open, count(*) FILTER (WHERE state = 'failed')::int AS failed
   FROM ((SELECT state FROM dag_run WHERE backfill_id = $1 AND state IN ('queued', 'running'))
         UNION ALL (SELECT state FROM dag_run WHERE backfill_id = $1 AND state = 'failed' LIMIT 1)) AS own`,
);

/** Index: dag_run_logical_date. */
const EXISTING = statement(
  "backfill-plan-existing",
  "SELECT id, state, logical_date FROM dag_run WHERE dag_id = $1 AND logical_date = ANY($2::timestamptz[])",
);

const LOCK_RUNS = statement(
  "backfill-plan-lock-runs",
  "SELECT id, state FROM dag_run WHERE id = ANY($1) ORDER BY id FOR UPDATE",
);

/** If another run uses the run id, the backfill's id is appended. */
const INSERT = statement(
  "backfill-plan-insert",
  `WITH added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, logical_date, interval_start, interval_end, run_after, version_id, conf,
                          triggered_by, triggering_user, backfill_id)
     SELECT $1, CASE WHEN EXISTS (SELECT 1 FROM dag_run x WHERE x.dag_id = $1 AND x.run_id = u.run)
                     THEN u.run || '_' || $8::bigint ELSE u.run END,
            'backfill', to_timestamp(u.logical / 1000), to_timestamp(u.istart / 1000), to_timestamp(u.iend / 1000),
            to_timestamp(u.after / 1000), $6, coalesce($7::json, '{}'), 'backfill', b.created_by, b.id
     FROM unnest($2::text[], $3::float8[], $9::float8[], $4::float8[], $5::float8[]) AS u(run, logical, istart, iend, after),
          backfill b
     WHERE b.id = $8
     ON CONFLICT DO NOTHING
     RETURNING id, dag_id, run_id, state, logical_date
   ), told AS (${publishRuns("added")})
   SELECT id, logical_date FROM added`,
);

/** Assigns cleared runs to the backfill, as if it had created them. */
const TAKE = statement(
  "backfill-plan-take",
  `UPDATE dag_run SET backfill_id = $2, run_type = 'backfill', triggered_by = 'backfill', conf = coalesce($3::json, conf)
   WHERE id = ANY($1) RETURNING id, state`,
);

const NOTE_DATES = statement(
  "backfill-plan-note",
  `INSERT INTO backfill_date (backfill_id, ordinal, logical_date, action, dag_run_id)
   SELECT $1, u.ordinal, to_timestamp(u.logical / 1000), u.action, u.run
   FROM unnest($2::int[], $3::float8[], $4::text[], $5::bigint[]) AS u(ordinal, logical, action, run)`,
);

const MOVE_ON = statement(
  "backfill-plan-move-on",
  `UPDATE backfill SET next_date = to_timestamp($2::float8 / 1000), next_ordinal = $3, updated_at = now(),
                       started_at = coalesce(started_at, now())
   WHERE id = $1`,
);

const STOP = statement(
  "backfill-plan-stop",
  "UPDATE backfill SET ending = 'failed', updated_at = now() WHERE id = $1",
);

const QUEUED = statement(
  "backfill-plan-queued",
  "SELECT id FROM dag_run WHERE backfill_id = $1 AND state = 'queued' ORDER BY id",
);

export interface PlanStep {
  /** Runs that can be started now. */
  readonly made: number;
  /** True if the next step may be called immediately. */
  readonly isMore: boolean;
  /** Runs that were cancelled because a run of the backfill failed; other runs may wait for them. */
  readonly cancelled: readonly number[];
}

const NOTHING: PlanStep = { made: 0, isMore: false, cancelled: [] };
/** Another transaction created a run of one of the dates: roll back and repeat the step. */
class Overtaken extends Error {}

/** Creates the runs of the next dates, one step per call, within the backfill's limit. */
export async function planBackfill(db: Database, id: number, jobId: number): Promise<PlanStep> {
  try {
    return await db.transaction((tx) => step(tx, id, jobId));
  } catch (error) {
    if (error instanceof Overtaken) return { ...NOTHING, isMore: true };
    throw error;
  }
}

async function step(tx: Connection, id: number, jobId: number): Promise<PlanStep> {
  const backfill = await tx.one<PlanRow>(LOCK, [id, jobId]);
  if (!backfill) return NOTHING;
  const counted = await tx.one<{ open: number; failed: number }>(COUNT, [id]);
  if (backfill.stop_on_failure && (counted?.failed ?? 0) > 0) {
    await tx.rows(STOP, [id]);
    const queued = await tx.rows<{ id: number }>(QUEUED, [id]);
    for (const run of queued) await cancelRun(tx, run.id, STOPPED);
    return { ...NOTHING, cancelled: queued.map((run) => run.id) };
  }
  if (backfill.is_held || backfill.next_date === null) return NOTHING;
  const room = backfill.max_active - (counted?.open ?? 0);
  if (room <= 0) return NOTHING;
  const { dates, after } = nextDates(backfill, backfill.next_date, room);
  const existing = await existingRuns(tx, backfill.dag_id, dates);
  const planned = planDates(dates, existing, { reprocess: backfill.reprocess, room });
  await record(tx, backfill, planned);
  const next = dates[planned.length] ?? after;
  await tx.rows(MOVE_ON, [id, next?.logicalDate ?? null, backfill.next_ordinal + planned.length]);
  const made = planned.filter(({ action }) => isOwn(action)).length;
  return { ...NOTHING, made, isMore: next !== null && made < room };
}

/** The dates of one step, and the date after them. */
function nextDates(backfill: PlanRow, from: Date, room: number): { dates: DueRun[]; after: DueRun | null } {
  const limit = Math.min(MAX_STEP, Math.max(MIN_STEP, room));
  const dates: DueRun[] = [];
  for (const run of datesFrom(backfill, from.getTime())) {
    if (dates.length === limit) return { dates, after: run };
    dates.push(run);
  }
  return { dates, after: null };
}

function datesFrom(backfill: PlanRow, from: number): Iterable<DueRun> {
  const { schedule } = backfill;
  if (schedule.kind === "listed") return (backfill.dues ?? []).map(listedRun);
  const range = {
    from: backfill.from_date.getTime(),
    to: backfill.to_date.getTime(),
    until: backfill.created_at.getTime(),
    isReverse: backfill.is_reverse,
    anchor: backfill.anchor?.getTime() ?? null,
  };
  return backfillDates(schedule, range, from);
}

/** The existing runs by logical date. */
export async function existingRuns(
  tx: Connection,
  dagId: string,
  dates: readonly DueRun[],
): Promise<Map<number, ExistingRun>> {
  const rows = await tx.rows<ExistingRun & { logical_date: Date }>(EXISTING, [
    dagId,
    dates.map((run) => new Date(run.logicalDate)),
  ]);
  return new Map(rows.map((row) => [row.logical_date.getTime(), row]));
}

async function record(tx: Connection, backfill: PlanRow, planned: readonly PlannedDate[]): Promise<void> {
  await clear(tx, backfill, planned);
  const made = await insert(
    tx,
    backfill,
    planned.filter(({ action }) => action === "created").map(({ run }) => run),
  );
  await tx.rows(NOTE_DATES, [
    backfill.id,
    planned.map((_, n) => backfill.next_ordinal + n),
    planned.map(({ run }) => run.logicalDate),
    planned.map(({ action }) => action),
    planned.map(({ run, existing }) => existing?.id ?? made.get(run.logicalDate) ?? null),
  ]);
}

async function clear(tx: Connection, backfill: PlanRow, planned: readonly PlannedDate[]): Promise<void> {
  const before = new Map(
    planned.flatMap(({ action, existing }) =>
      action === "cleared" && existing ? [[existing.id, existing.state]] : [],
    ),
  );
  if (before.size === 0) return;
  const ids = [...before.keys()];
  const locked = await tx.rows<ExistingRun>(LOCK_RUNS, [ids]);
  if (locked.length < ids.length || locked.some((run) => run.state !== before.get(run.id)))
    throw new Overtaken();
  await clearTasks(tx, {
    runs: ids.map((dagRunId) => ({ dagRunId, tasks: null })),
    only: "any",
    resetRuns: true,
    latestVersion: backfill.version_id === null,
    refuseRunning: false,
    dryRun: false,
  });
  const taken = await tx.rows<ExistingRun>(TAKE, [ids, backfill.id, confOf(backfill)]);
  // A run that was cancelled before it had tasks has nothing to clear and is still in its end state.
  for (const { id, state } of taken) if (state !== "queued") await markRun(tx, id, "queued");
}

/** The ids of the new runs, by logical date. */
async function insert(
  tx: Connection,
  backfill: PlanRow,
  runs: readonly DueRun[],
): Promise<Map<number, number>> {
  if (runs.length === 0) return new Map();
  const rows = await tx.rows<{ id: number; logical_date: Date }>(INSERT, [
    backfill.dag_id,
    runs.map((run) => `backfill__${new Date(run.logicalDate).toISOString()}`),
    runs.map((run) => run.logicalDate),
    runs.map((run) => run.intervalEnd),
    runs.map((run) => run.runAfter),
    backfill.version_id ?? backfill.current_version,
    confOf(backfill),
    backfill.id,
    runs.map((run) => run.intervalStart),
  ]);
  if (rows.length < runs.length) throw new Overtaken();
  return new Map(rows.map((row) => [row.logical_date.getTime(), row.id]));
}

function confOf({ conf }: PlanRow): string | null {
  return conf === null ? null : JSON.stringify(conf);
}
