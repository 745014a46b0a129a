/**
 * Runs submitted by a driver, a user's own program. They belong to its job as runs belong to a scheduler.
 *
 *  - `reserveRuns` writes the driver as the owner of queued runs: schedulers do not start them while its lease is valid.
 *  - `startSubmitted` starts runs in order, within `maxActiveRuns` of their DAGs. A new run is created and started in one
 *    transaction: no scheduler sees it queued, and a crash leaves no run that was not started.
 *  - `takeOverSubmitted` acquires running runs whose owner is dead.
 *
 * Locks: the rows of the DAGs by id, then the runs by id, with SKIP LOCKED. Crash before the commit: no effect;
 * reservations end with the lease. Crash after it: the runs belong to a job whose lease expires, and a scheduler that
 * serves their DAGs takes them over. Lost reply: the id of a new run is chosen before, so a repeated call finds it.
 * Concurrent calls: the DAG's row is locked while its runs are counted; one date or run id has one run, and the second
 * call finds it. Stale driver: other jobs may take over the runs it starts, with a higher generation.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import {
  CLAIM_TASKS,
  type ClaimedRun,
  insertInstances,
  isFree,
  RUNNING,
  type StartRequest,
  takeOverWhere,
} from "./run-claim.ts";
import { createRun } from "./run-create.ts";
import { startLocked } from "./run-slots.ts";

const FIND = statement(
  "submit-find",
  `SELECT r.id, r.dag_id AS "dagId", r.run_id AS "runId" FROM dag_run r
   JOIN unnest($1::text[], $2::text[]) AS u(dag_id, run_id) ON r.dag_id = u.dag_id AND r.run_id = u.run_id`,
);

const RESERVE = statement(
  "submit-reserve",
  `UPDATE dag_run r SET owner_job = $1
   WHERE r.id = ANY($2::bigint[]) AND r.state = 'queued' AND r.owner_job IS DISTINCT FROM $1 AND ${isFree("r")}`,
);

const RELEASE = statement(
  "submit-release",
  "UPDATE dag_run SET owner_job = NULL WHERE id = ANY($2::bigint[]) AND state = 'queued' AND owner_job = $1",
);

const READ = statement(
  "submit-read",
  `SELECT id, dag_id AS "dagId", run_id AS "runId", state, logical_date AS "logicalDate", started_at AS "startedAt",
          ended_at AS "endedAt", end_reason AS "endReason"
   FROM dag_run WHERE id = ANY($1::bigint[])`,
);

const LOCK_DAGS = statement(
  "submit-lock-dags",
  "SELECT 1 FROM dag WHERE dag_id = ANY($1::text[]) ORDER BY dag_id FOR NO KEY UPDATE",
);

/** A separate statement after the lock, so that it sees runs that others have started. */
const ROOM = statement(
  "submit-room",
  `SELECT d.dag_id AS "dagId", d.is_paused AS "isPaused", v.max_active_runs - ${RUNNING}::int AS free
   FROM dag d JOIN dag_version v ON v.id = d.version_id WHERE d.dag_id = ANY($1::text[])`,
);

/** Locks the existing runs that may start. */
const LOCK_QUEUED = statement(
  "submit-lock-queued",
  `SELECT r.id FROM dag_run r
   WHERE r.id = ANY($2::bigint[]) AND r.state = 'queued' AND r.run_after <= now()
     AND (r.owner_job = $1 OR ${isFree("r")})
   ORDER BY r.id FOR UPDATE SKIP LOCKED`,
);

const LEFT_QUEUE = statement(
  "submit-left-queue",
  "SELECT u.id FROM unnest($1::bigint[]) AS u(id) LEFT JOIN dag_run r ON r.id = u.id WHERE r.state IS DISTINCT FROM 'queued'",
);

/** $5: also from owners that are not drivers. */
const TAKE_OVER = statement(
  "submit-take-over",
  takeOverWhere("r.id = ANY($4::bigint[]) AND ($5::boolean OR j.kind = 'driver')"),
);

/** A submitted run: an existing one, or one to create. */
export interface SubmittedRun {
  readonly dagId: string;
  readonly runId: string;
  /** null: not created yet. */
  readonly id: number | null;
  readonly logicalDate: Date | null;
  readonly interval: { readonly start: Date; readonly end: Date } | null;
  readonly conf: { readonly [key: string]: Json };
}

export interface SubmittedState {
  readonly id: number;
  readonly dagId: string;
  readonly runId: string;
  readonly state: "queued" | "running" | "success" | "failed";
  readonly logicalDate: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly endReason: string | null;
}

/** The outcome of a start; a run without one still waits. */
type StartOutcome =
  /** It exists: started by this call, or by another. */
  | { readonly kind: "there"; readonly id: number }
  /** Its DAG is deleted or stale. */
  | { readonly kind: "refused"; readonly reason: string };

export interface StartedRuns<Run> {
  readonly started: readonly ClaimedRun[];
  readonly outcomes: ReadonlyMap<Run, StartOutcome>;
  /** Paused DAGs, whose runs do not start. */
  readonly paused: readonly string[];
}

export function findRuns(
  db: Connection,
  runs: readonly { readonly dagId: string; readonly runId: string }[],
): Promise<{ readonly id: number; readonly dagId: string; readonly runId: string }[]> {
  return db.rows(FIND, [runs.map(({ dagId }) => dagId), runs.map(({ runId }) => runId)]);
}

export async function reserveRuns(db: Connection, jobId: number, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await db.rows(RESERVE, [jobId, ids]);
}

export async function releaseRuns(db: Connection, jobId: number, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await db.rows(RELEASE, [jobId, ids]);
}

/** Missing runs were deleted. */
export function readSubmitted(db: Connection, ids: readonly number[]): Promise<SubmittedState[]> {
  return db.rows<SubmittedState>(READ, [ids]);
}

/** `fromAny` false: only runs of other drivers. */
export function takeOverSubmitted(
  db: Connection,
  by: { readonly jobId: number; readonly limit: number; readonly fromAny: boolean },
  ids: readonly number[],
): Promise<ClaimedRun[]> {
  return db.rows<ClaimedRun>(TAKE_OVER, [by.jobId, by.limit, CLAIM_TASKS, ids, by.fromAny]);
}

/** Starts at most `limit` of the runs, in order; a run whose DAG is at its limit does not block runs of other DAGs. */
export function startSubmitted<Run extends SubmittedRun>(
  db: Database,
  request: Pick<StartRequest, "jobId" | "limit" | "columns">,
  runs: readonly Run[],
): Promise<StartedRuns<Run>> {
  return db.transaction(async (tx) => {
    const dagIds = [...new Set(runs.map(({ dagId }) => dagId))];
    await tx.rows(LOCK_DAGS, [dagIds]);
    const rows = await tx.rows<{ dagId: string; isPaused: boolean; free: number }>(ROOM, [dagIds]);
    const paused = rows.filter(({ isPaused }) => isPaused).map(({ dagId }) => dagId);
    const free = new Map(rows.map(({ dagId, isPaused, free }) => [dagId, isPaused ? 0 : free]));
    const ids = runs.flatMap(({ id }) => (id === null ? [] : [id]));
    const locked = await tx.rows<{ id: number }>(LOCK_QUEUED, [request.jobId, ids]);
    const startable = new Set(locked.map(({ id }) => id));
    const outcomes = new Map<Run, StartOutcome>();
    const chosen: number[] = [];
    for (const run of runs) {
      const room = free.get(run.dagId);
      if (chosen.length >= request.limit) break;
      if (run.id === null && room === undefined) {
        outcomes.set(run, { kind: "refused", reason: `DAG "${run.dagId}" is no longer published` });
        continue;
      }
      if ((room ?? 0) <= 0 || (run.id !== null && !startable.has(run.id))) continue;
      const id = run.id ?? (await create(tx, run, outcomes));
      if (id === null) continue;
      outcomes.set(run, { kind: "there", id });
      chosen.push(id);
      free.set(run.dagId, room! - 1);
    }
    // Started or ended by others meanwhile.
    const left = new Set((await tx.rows<{ id: number }>(LEFT_QUEUE, [ids])).map(({ id }) => id));
    for (const run of runs)
      if (run.id !== null && left.has(run.id)) outcomes.set(run, { kind: "there", id: run.id });
    const started =
      chosen.length > 0 ? await startLocked(tx, { jobId: request.jobId, ids: chosen, backfillId: null }) : [];
    await insertInstances(tx, started, request);
    return { started, outcomes, paused };
  });
}

/** null: not created; the outcome has the reason. */
async function create<Run extends SubmittedRun>(
  tx: Connection,
  run: Run,
  outcomes: Map<Run, StartOutcome>,
): Promise<number | null> {
  const { conf, dagId, interval, logicalDate, runId } = run;
  const made = await createRun(tx, {
    ...{ dagId, runId, logicalDate, interval, conf },
    ...{ runAfter: null, note: null, triggeredBy: "cli", triggeringUser: null },
  });
  switch (made.kind) {
    case "created":
      return made.dagRunId;
    case "conflict": {
      const [found] = await findRuns(tx, [{ dagId, runId: made.existingRunId }]);
      if (found) outcomes.set(run, { kind: "there", id: found.id });
      return null;
    }
    default:
      outcomes.set(run, { kind: "refused", reason: `DAG "${dagId}" is no longer published` });
      return null;
  }
}
