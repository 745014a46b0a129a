/**
 * Backfills in the API. A change locks the backfill's row, then its runs by id, as a planning step does: a limit, a
 * pause or a cancellation applies from the next run on.
 *
 * Crash before the commit: no effect. Crash after it: the change is stored, and the job reads it at its next heartbeat
 * if the wake-up is lost. Lost reply: a repeated call changes nothing. Concurrent calls: the second waits for the first
 * and sees its result; an ended backfill cannot be changed.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { BackfillCounts, ListedSchedule, Reprocess, TimeSchedule } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { cancelRun } from "../edit/end-run.ts";
import { Conditions, first, type Listed, list, type Page } from "../page/query.ts";

export type BackfillState = "running" | "paused" | "done" | "failed" | "cancelled";

export interface BackfillRow {
  readonly id: number;
  readonly dag_id: string;
  readonly from_date: Date;
  readonly to_date: Date;
  readonly reprocess: Reprocess;
  readonly is_reverse: boolean;
  readonly max_active: number;
  readonly conf: Json | null;
  readonly stop_on_failure: boolean;
  /** Null: new runs use the DAG's current version. */
  readonly version_id: number | null;
  readonly state: BackfillState;
  readonly ending: "failed" | "cancelled" | null;
  readonly total_runs: number;
  readonly created_by: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly dag_is_paused: boolean;
  readonly dag_is_stale: boolean;
  /** True while a live job owns the backfill. */
  readonly is_owned: boolean;
  /** The first unfinished run that it did not start, if it waits for such runs only. */
  readonly awaited_run: { readonly run_id: string; readonly state: string } | null;
}

export interface NewBackfill {
  readonly dagId: string;
  readonly schedule: TimeSchedule | ListedSchedule;
  readonly anchor: Date | null;
  readonly versionId: number | null;
  readonly from: Date;
  readonly to: Date;
  readonly reprocess: Reprocess;
  readonly isReverse: boolean;
  readonly maxActive: number;
  readonly conf: Json | null;
  readonly stopOnFailure: boolean;
  readonly totalRuns: number;
  readonly firstDate: Date;
  /** Dates up to this moment are due; the dates were chosen with it. */
  readonly now: Date;
  readonly createdBy: string | null;
}

export const BACKFILL_ORDER = { id: "b.id" } as const;

const INSERT = statement(
  "backfill-insert",
  `INSERT INTO backfill (dag_id, schedule, anchor, version_id, from_date, to_date, reprocess, is_reverse, max_active, conf,
                         stop_on_failure, total_runs, next_date, created_at, created_by)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) RETURNING id`,
);

const LOCK = statement(
  "backfill-lock",
  "SELECT id, state, ending, max_active, stop_on_failure FROM backfill WHERE id = $1 FOR NO KEY UPDATE",
);

const SET_STATE = statement(
  "backfill-set-state",
  "UPDATE backfill SET state = $2, updated_at = now() WHERE id = $1",
);

const SET_LIMITS = statement(
  "backfill-set-limits",
  `UPDATE backfill SET max_active = coalesce($2, max_active), stop_on_failure = coalesce($3, stop_on_failure),
                       updated_at = now()
   WHERE id = $1`,
);

const END = statement(
  "backfill-set-ending",
  "UPDATE backfill SET ending = 'cancelled', updated_at = now() WHERE id = $1",
);

const OPEN_RUNS = statement(
  "backfill-open-runs",
  "SELECT id, state FROM dag_run WHERE backfill_id = $1 AND state IN ('queued', 'running') ORDER BY id",
);

/** Scalar subqueries: for an EXISTS beside an OR, PostgreSQL would hash the rows of all backfills. */
const awaitedIn = (states: string) => `(SELECT true FROM backfill_date d JOIN dag_run r ON r.id = d.dag_run_id
       WHERE d.backfill_id = b.id AND d.action = 'awaited' AND r.state IN (${states}) LIMIT 1)`;
const ownIn = (states: string) =>
  `(SELECT true FROM dag_run r WHERE r.backfill_id = b.id AND r.state IN (${states}) LIMIT 1)`;

/**
 * A backfill has ended when it creates no more runs and has none under way, neither its own nor an awaited one. A run
 * that is cleared concurrently, invisible to this statement, becomes an ordinary run: schedulers claim it.
 */
const SETTLE = statement(
  "backfill-settle",
  `UPDATE backfill b
   SET state = CASE WHEN b.ending IS NOT NULL THEN b.ending
                    WHEN ${ownIn("'failed'")} OR ${awaitedIn("'failed'")} THEN 'failed'
                    ELSE 'done' END,
       owner_job = NULL, ended_at = now(), updated_at = now()
   WHERE b.id = ANY($1) AND b.state IN ('running', 'paused') AND (b.ending IS NOT NULL OR b.next_date IS NULL)
     AND ${ownIn("'queued', 'running'")} IS NULL
     AND (b.ending IS NOT NULL OR ${awaitedIn("'queued', 'running'")} IS NULL)
   RETURNING b.id, b.dag_id, b.state`,
);

/** One snapshot for all counts, so that they are consistent. A run that has not started has no instances. */
const COUNTS = statement(
  "backfill-counts",
  `WITH dates AS (
     SELECT d.action, coalesce(r.state, 'gone') AS state, r.id, r.version_id
     FROM backfill_date d LEFT JOIN dag_run r ON r.id = d.dag_run_id WHERE d.backfill_id = $1
   ), instances AS (
     SELECT t.state, count(*)::int AS tasks FROM dates d JOIN task_instance t ON t.dag_run_id = d.id
     WHERE d.action <> 'kept' GROUP BY t.state
   ), missing AS (
     SELECT sum(v.task_count)::int AS tasks FROM dates d JOIN dag_version v ON v.id = d.version_id
     WHERE d.action <> 'kept' AND d.state = 'queued'
       AND NOT EXISTS (SELECT 1 FROM task_instance t WHERE t.dag_run_id = d.id)
   )
   SELECT b.total_runs,
          coalesce((SELECT v.task_count FROM dag g JOIN dag_version v ON v.id = coalesce(b.version_id, g.version_id)
                    WHERE g.dag_id = b.dag_id), 0) AS tasks_per_run,
          (SELECT coalesce(json_agg(json_build_object('action', g.action, 'state', g.state, 'runs', g.runs)), '[]')
           FROM (SELECT action, state, count(*)::int AS runs FROM dates GROUP BY action, state) g) AS dates,
          (SELECT coalesce(json_agg(json_build_object('state', g.state, 'tasks', g.tasks)), '[]')
           FROM (SELECT * FROM instances UNION ALL SELECT 'pending', tasks FROM missing WHERE tasks > 0) g) AS tasks,
          (SELECT coalesce(json_agg(extract(epoch FROM e.ended_at) * 1000 ORDER BY e.ended_at DESC), '[]')
           FROM (SELECT r.ended_at FROM dates d JOIN dag_run r ON r.id = d.id
                 WHERE d.action <> 'kept' AND r.ended_at IS NOT NULL ORDER BY r.ended_at DESC LIMIT 50) e) AS ended,
          extract(epoch FROM now()) * 1000 AS now
   FROM backfill b WHERE b.id = $1`,
);

export async function createBackfill(tx: Connection, input: NewBackfill): Promise<number> {
  const row = await tx.one<{ id: number }>(INSERT, [
    input.dagId,
    JSON.stringify(input.schedule),
    input.anchor,
    input.versionId,
    input.from,
    input.to,
    input.reprocess,
    input.isReverse,
    input.maxActive,
    input.conf === null ? null : JSON.stringify(input.conf),
    input.stopOnFailure,
    input.totalRuns,
    input.firstDate,
    input.now,
    input.createdBy,
  ]);
  if (!row) throw new Error("the insert of a backfill returned no row");
  return row.id;
}

export function listBackfills(
  connection: Connection,
  filter: { readonly dagId?: string; readonly active?: boolean; readonly id?: number },
  page: Page,
): Promise<Listed<BackfillRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where: conditions(filter),
    order: BACKFILL_ORDER,
    tiebreak: "b.id",
    page,
  });
}

export function findBackfill(connection: Connection, id: number): Promise<BackfillRow | undefined> {
  return first(connection, { columns: COLUMNS, from: FROM, where: conditions({ id }) });
}

function conditions(filter: { dagId?: string; active?: boolean; id?: number }): Conditions {
  const where = new Conditions().equals("b.dag_id", filter.dagId).equals("b.id", filter.id);
  if (filter.active === undefined) return where;
  return where.raw(`${filter.active ? "" : "NOT "}(b.state IN ('running', 'paused'))`);
}

/** "over": the backfill has ended or is ending; nothing was changed. `changed` false: it already had the setting. */
export type BackfillEdit =
  | { readonly kind: "done"; readonly changed: boolean; readonly runIds: readonly number[] }
  | { readonly kind: "over"; readonly state: BackfillState }
  | { readonly kind: "not_found" };

/** A paused backfill creates and starts no runs; its running runs continue. */
export async function pauseBackfill(tx: Connection, id: number, isPaused: boolean): Promise<BackfillEdit> {
  const row = await lock(tx, id);
  if ("kind" in row) return row;
  const state = isPaused ? "paused" : "running";
  if (row.state !== state) await tx.rows(SET_STATE, [id, state]);
  return { kind: "done", changed: row.state !== state, runIds: [] };
}

export async function setBackfillLimits(
  tx: Connection,
  id: number,
  limits: { readonly maxActive?: number | undefined; readonly stopOnFailure?: boolean | undefined },
): Promise<BackfillEdit> {
  const row = await lock(tx, id);
  if ("kind" in row) return row;
  const { maxActive = row.max_active, stopOnFailure = row.stop_on_failure } = limits;
  const changed = maxActive !== row.max_active || stopOnFailure !== row.stop_on_failure;
  if (changed) await tx.rows(SET_LIMITS, [id, maxActive, stopOnFailure]);
  return { kind: "done", changed, runIds: [] };
}

/**
 * Stops creating runs. Running runs are ended as failed, or continue to their end with `letFinish`; queued runs are
 * ended in any case. A second call without `letFinish` ends the runs that were allowed to finish.
 */
export async function cancelBackfill(tx: Connection, id: number, letFinish: boolean): Promise<BackfillEdit> {
  const row = await lock(tx, id, true);
  if ("kind" in row) return row;
  await tx.rows(END, [id]);
  const open = await tx.rows<{ id: number; state: string }>(OPEN_RUNS, [id]);
  const ended = open.filter((run) => !letFinish || run.state === "queued");
  for (const run of ended) await cancelRun(tx, run.id, "the backfill was cancelled");
  await endBackfills(tx, [id]);
  return {
    kind: "done",
    changed: row.ending === null || ended.length > 0,
    runIds: ended.map((run) => run.id),
  };
}

/** Ends those of these backfills that are complete, and returns them. */
export function endBackfills(
  db: Connection,
  ids: readonly number[],
): Promise<{ readonly id: number; readonly dag_id: string; readonly state: BackfillState }[]> {
  return db.rows(SETTLE, [ids]);
}

export interface CountedBackfill extends BackfillCounts {
  /** When its runs ended, newest first, at most 50. Milliseconds, as `now`. */
  readonly endedAt: readonly number[];
  readonly now: number;
}

export async function countBackfill(db: Connection, id: number): Promise<CountedBackfill | undefined> {
  const row = await db.one<{
    total_runs: number;
    tasks_per_run: number;
    dates: BackfillCounts["dates"];
    tasks: BackfillCounts["tasks"];
    ended: number[];
    now: string;
  }>(COUNTS, [id]);
  if (!row) return undefined;
  return {
    totalRuns: row.total_runs,
    dates: row.dates,
    tasks: row.tasks,
    tasksPerRun: row.tasks_per_run,
    endedAt: row.ended.map(Number),
    now: Number(row.now),
  };
}

interface Locked {
  readonly state: BackfillState;
  readonly ending: "failed" | "cancelled" | null;
  readonly max_active: number;
  readonly stop_on_failure: boolean;
}

async function lock(
  tx: Connection,
  id: number,
  mayEnd = false,
): Promise<Locked | Exclude<BackfillEdit, { kind: "done" }>> {
  const row = await tx.one<Locked>(LOCK, [id]);
  if (!row) return { kind: "not_found" };
  const isOver = (row.state !== "running" && row.state !== "paused") || (row.ending !== null && !mayEnd);
  return isOver ? { kind: "over", state: row.ending ?? row.state } : row;
}

const FROM = "backfill b JOIN dag d ON d.dag_id = b.dag_id";
const COLUMNS = `b.id, b.dag_id, b.from_date, b.to_date, b.reprocess, b.is_reverse, b.max_active, b.conf, b.stop_on_failure,
  b.version_id, b.state, b.ending, b.total_runs, b.created_by, b.created_at, b.updated_at, b.started_at, b.ended_at,
  d.is_paused AS dag_is_paused, d.is_stale AS dag_is_stale,
  EXISTS (SELECT 1 FROM job j WHERE j.id = b.owner_job AND j.state = 'running' AND j.lease_until > now()) AS is_owned,
  (SELECT json_build_object('run_id', r.run_id, 'state', r.state)
   FROM backfill_date w JOIN dag_run r ON r.id = w.dag_run_id
   WHERE w.backfill_id = b.id AND w.action = 'awaited' AND r.state IN ('queued', 'running')
     AND b.next_date IS NULL AND ${ownIn("'queued', 'running'")} IS NULL
   ORDER BY w.ordinal LIMIT 1) AS awaited_run`;
