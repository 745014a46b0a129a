/**
 * How a job acquires runs. Two ways, both safe against any number of concurrent jobs:
 *
 *  - `startQueuedRuns` moves queued runs to running, within the DAG's max active runs. The DAG's row is locked while its
 *    running runs are counted, so two schedulers cannot both take the last slot; with SKIP LOCKED the second one works on
 *    other DAGs meanwhile.
 *  - `takeOverRuns` acquires running runs without an owner, or whose owner's lease expired. The generation grows with
 *    every change of the owner: later writes of the former owner carry the old one and are rejected.
 *
 * Both take a bounded number of runs, and stop after the run with which they hold `CLAIM_TASKS` tasks: what one iteration
 * of the loop loads and decides stays small for runs of any size. A scheduler with peers also stops after the
 * run whose first tasks take its last free slot; if no scheduler has one, after the run that fills its share of the
 * waiting tasks. `leavesMore` returns whether to call again.
 *
 * Crash after the commit: the runs belong to a job whose lease expires, and `takeOverRuns` finds them.
 */
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed, type ServedDags } from "../job/served-dags.ts";
import { RUN_COLUMNS, type RunRow } from "./run-row.ts";

export interface ClaimedRun extends RunRow {
  readonly id: number;
  readonly version_id: number;
  readonly generation: number;
  readonly is_paused: boolean;
  readonly task_count: number;
  /** Tasks that need a slot as soon as the run has started. */
  readonly first_tasks: number;
  readonly try_number: number;
  /** When its next try starts. */
  readonly retry_at: Date | null;
  /** Set after a user ended it: the state it ends in, with `end_reason`, after its teardowns. */
  readonly ending: "success" | "failed" | null;
  readonly end_reason: string | null;
  /** For the run of a sub-DAG: the try of its parent task; otherwise null. */
  readonly parent_try: number | null;
  /** The run has no attempt and no manual command: every task instance is `none`, and there is nothing to load. */
  readonly is_fresh: boolean;
  /** For a queued run that was started: how many could have been started with it, including itself. */
  readonly candidates?: number;
}

/** The columns of a DAG version's task instances, one array each, inserted for a new run. */
export interface InstanceColumns {
  readonly taskIds: readonly string[];
  readonly maxTries: readonly number[];
  readonly pools: readonly string[];
  readonly poolSlots: readonly number[];
  readonly limitKeys: readonly (string | null)[];
  readonly queues: readonly string[];
  readonly weights: readonly number[];
  readonly executors: readonly (string | null)[];
  readonly operators: readonly string[];
}

const CLAIMED = `r.id, ${RUN_COLUMNS}, r.version_id, r.generation, r.try_number, r.retry_at, r.ending,
  r.end_reason, r.parent_try, d.is_paused, v.task_count, v.first_tasks`;

export const CLAIM_TASKS = 20_000;
const ANY_SLOTS = 2_000_000_000;

/** SQL for a queued run: see `is_fresh`. */
export const isFresh = (run: string) =>
  `${run}.started_at IS NULL AND ${run}.clear_number = 0
   AND NOT EXISTS (SELECT 1 FROM run_drive d WHERE d.dag_run_id = ${run}.id)`;

/**
 * Only the job of an open backfill starts its runs, and they do not count against the DAG's max active runs: the backfill
 * has a limit of its own. Runs of an ended backfill (cleared afterwards) are like any other.
 */
export const isFree = (run: string) =>
  `(${run}.backfill_id IS NULL OR NOT EXISTS (
       SELECT 1 FROM backfill b WHERE b.id = ${run}.backfill_id AND b.state IN ('running', 'paused')))
   AND ${isUnreserved(run)}`;

/** A queued run with an owner is reserved: a live driver will start it (submitted-runs.ts). */
function isUnreserved(run: string): string {
  return `(${run}.owner_job IS NULL OR ${run}.state <> 'queued' OR NOT EXISTS (
       SELECT FROM job o
       WHERE o.id = ${run}.owner_job AND o.kind = 'driver' AND o.state = 'running' AND o.lease_until > now()))`;
}
/** SQL: whether a task of a run of this job created it; NULL: all runs. */
const isOfRunsOf = (run: string, job: string) =>
  `(${job}::bigint IS NULL OR EXISTS (
       SELECT FROM dag_run p WHERE p.id = ${run}.parent_run_id AND p.owner_job = ${job} AND p.state = 'running'))`;
export const RUNNING = `(SELECT count(*) FROM dag_run a
                  WHERE a.dag_id = d.dag_id AND a.state = 'running' AND a.backfill_id IS NULL)`;

/** `waiting`: DAGs with queued runs, by a loose index scan: one row read per DAG, however many runs are queued. */
export const WAITING_DAGS = `WITH RECURSIVE waiting(dag_id) AS (
     (SELECT dag_id FROM dag_run WHERE state = 'queued' ORDER BY dag_id LIMIT 1)
     UNION ALL
     SELECT (SELECT r.dag_id FROM dag_run r WHERE r.state = 'queued' AND r.dag_id > w.dag_id
             ORDER BY r.dag_id LIMIT 1)
     FROM waiting w WHERE w.dag_id IS NOT NULL
   )`;

/**
 * From `queue` (id, task_count and its order): runs with $4 tasks together, and the run that exceeds it; likewise runs
 * that need `slots` together when they start.
 */
export const chosenOf = (queue: string, order: string, slots?: string) => `chosen AS (
     SELECT q.id, ${isFresh("q")} AS is_fresh
     FROM dag_run q WHERE q.id = ANY(ARRAY(
         SELECT id FROM (
           SELECT id, sum(task_count) OVER (ORDER BY ${order}, id) - task_count AS before
                  ${slots === undefined ? "" : `, sum(first_tasks) OVER (ORDER BY ${order}, id) - first_tasks AS taken`}
           FROM ${queue}) o
         WHERE o.before < $4 ${slots === undefined ? "" : `AND o.taken < ${slots}`}))
       AND q.state = 'queued' AND ${isUnreserved("q")}
     FOR UPDATE OF q SKIP LOCKED
   )`;

/** Starts the `chosen` runs (id, is_fresh) from `queue` for job $1; `backfill`: their new backfill. */
export const startChosen = (backfill: string, queue = "chosen") => `moved AS (
     UPDATE dag_run r SET state = 'running', owner_job = $1, owned_since = now(), generation = r.generation + 1, backfill_id = ${backfill},
                          started_at = coalesce(r.started_at, now())
     FROM chosen WHERE r.id = chosen.id
     RETURNING r.*, chosen.is_fresh
   )
   SELECT ${CLAIMED}, r.is_fresh, (SELECT count(*) FROM ${queue}) AS candidates
   FROM moved r JOIN dag_version v ON v.id = r.version_id JOIN dag d ON d.dag_id = r.dag_id
   ORDER BY r.id`;

/**
 * DAGs below their limit with a due queued run, the longest waiting first, locked against other schedulers. As many DAGs
 * as runs are requested suffice: they contain the longest waiting runs. The statement does not wait for locks, so it
 * cannot deadlock. The limit is checked again under the lock.
 */
const LOCK_DAGS = statement(
  "claim-lock-dags",
  `${WAITING_DAGS}
   SELECT d.dag_id
   FROM waiting w JOIN dag d ON d.dag_id = w.dag_id JOIN dag_version v ON v.id = d.version_id
     CROSS JOIN LATERAL (SELECT q.run_after FROM dag_run q
                         WHERE q.dag_id = d.dag_id AND q.state = 'queued' AND q.run_after <= now()
                           AND ${isFree("q")} AND ${isOfRunsOf("q", "$3")}
                         ORDER BY q.run_after, q.id LIMIT 1) AS first
   WHERE NOT d.is_paused AND ${isServed("d.dag_id", "$2")}
     AND v.max_active_runs > ${RUNNING}
   ORDER BY first.run_after LIMIT $1
   FOR NO KEY UPDATE OF d SKIP LOCKED`,
);

/** This scheduler's share of waiting tasks, less the $9 that it has: $7 wait at all $8 schedulers, others in the queue. */
const SHARE = `(SELECT greatest(ceil(($7 + sum(greatest(first_tasks, 1))) / $8::numeric) - $9, 1) FROM oldest)`;

/** Starts as many queued runs per locked DAG as its max active runs allows, oldest first. */
const START = statement(
  "claim-start-runs",
  `WITH room AS (
     SELECT d.dag_id, v.max_active_runs - ${RUNNING} AS free
     FROM dag d JOIN dag_version v ON v.id = d.version_id
     WHERE d.dag_id = ANY($2)
   ), oldest AS (
     SELECT q.id, q.run_after, v.task_count, v.first_tasks
     FROM room CROSS JOIN LATERAL (
       SELECT r.id, r.run_after, r.version_id FROM dag_run r
       WHERE r.dag_id = room.dag_id AND r.state = 'queued' AND r.run_after <= now() AND ${isFree("r")}
         AND ${isOfRunsOf("r", "$6")}
       ORDER BY r.run_after, r.id LIMIT least(greatest(room.free, 0), $3)
     ) q JOIN dag_version v ON v.id = q.version_id
     ORDER BY q.run_after, q.id LIMIT $3
   ), ${chosenOf("oldest", "run_after", `least($5, ${SHARE})`)}, ${startChosen("NULL", "oldest")}`,
);

/**
 * One row per task of a run that starts. For a run that has rows already, its owner adds the missing ones, because it
 * knows which maps are expanded. The signals of the start are sent here: the starting statement may have begun before
 * another process, which had the runs until then, sent its signals.
 */
const INSERT_INSTANCES = statement(
  "claim-insert-instances",
  `WITH told AS (
     INSERT INTO signal (namespace, key, value, sender)
     SELECT 'run', u.key, '{"state":"running"}'::json, $12 FROM unnest($11::text[]) AS u(key)
   )
   INSERT INTO task_instance (dag_run_id, task_id, max_tries, pool, pool_slots, limit_key, queue, priority_weight,
                              executor, operator)
   SELECT r.id, t.* FROM unnest($1::bigint[]) AS r(id)
   CROSS JOIN unnest($2::text[], $3::int[], $4::text[], $5::int[], $6::text[], $7::text[], $8::int[], $9::text[],
                     $10::text[]) AS t
   ON CONFLICT DO NOTHING`,
);

/** Gives the runs in `orphan` to job $1, with at most $3 tasks together. `more`: further columns to set. */
export const takeOrphans = (more = "") =>
  `chosen AS (
     SELECT id FROM (SELECT id, sum(task_count) OVER (ORDER BY id) - task_count AS before FROM orphan) o
     WHERE o.before < $3
   ), moved AS (
     UPDATE dag_run r SET owner_job = $1, owned_since = now(), generation = r.generation + 1${more}
     FROM chosen WHERE r.id = chosen.id
     RETURNING r.*
   )
   SELECT ${CLAIMED}, false AS is_fresh
   FROM moved r JOIN dag_version v ON v.id = r.version_id JOIN dag d ON d.dag_id = r.dag_id
   ORDER BY r.id`;

/** Runs `r` of dead owners `j` that match the condition: at most $2, with $3 tasks together, for job $1. */
export const takeOverWhere = (condition: string) =>
  `WITH orphan AS (
     SELECT r.id, v.task_count
     FROM dag_run r LEFT JOIN job j ON j.id = r.owner_job JOIN dag_version v ON v.id = r.version_id
     WHERE r.state = 'running' AND (j.id IS NULL OR j.state <> 'running' OR j.lease_until <= now())
       AND ${isFree("r")} AND ${condition}
     ORDER BY r.id LIMIT $2
     FOR UPDATE OF r SKIP LOCKED
   ), ${takeOrphans(", backfill_id = NULL")}`;

const TAKE_OVER = statement("claim-take-over", takeOverWhere(isServed("r.dag_id", "$4")));

/** The current rows of runs that this job still owns, after an edit raised the generation. */
const REREAD = statement(
  "claim-reread",
  `SELECT ${CLAIMED}, false AS is_fresh
   FROM dag_run r JOIN dag_version v ON v.id = r.version_id JOIN dag d ON d.dag_id = r.dag_id
   WHERE r.id = ANY($2) AND r.owner_job = $1 AND r.state = 'running'`,
);

/** When the next queued run becomes due. */
const NEXT_QUEUED = statement(
  "claim-next-queued",
  `SELECT run_after FROM dag_run WHERE state = 'queued' AND run_after > now() AND ${isServed("dag_id", "$1")}
   ORDER BY run_after LIMIT 1`,
);

const GENERATIONS = statement(
  "claim-generations",
  `SELECT r.id, r.generation, d.is_paused FROM dag_run r JOIN dag d ON d.dag_id = r.dag_id
   WHERE r.owner_job = $1 AND r.state = 'running'`,
);

/** Ready tasks that wait for slots. */
export interface WaitingTasks {
  readonly own: number;
  /** At all schedulers that serve the same DAGs. */
  readonly all: number;
  readonly schedulers: number;
}

const UNSHARED: WaitingTasks = { own: 0, all: 0, schedulers: 1 };

export interface StartAmount {
  readonly limit: number;
  /** Free slots for the first tasks of the runs; absent: unlimited. */
  readonly slots?: number | undefined;
  /** Set if no scheduler has free slots: starts at least one run, and at most its share of the waiting tasks. */
  readonly waiting?: WaitingTasks | undefined;
}

export interface StartRequest extends StartAmount {
  readonly jobId: number;
  /** Absent: all. */
  readonly dags?: ServedDags;
  /** Only runs created by a task of a run of this job. */
  readonly isOfOwnRuns?: boolean;
  readonly columns: (tx: Connection, versionId: number) => Promise<InstanceColumns>;
}

export function startQueuedRuns(db: Database, request: StartRequest): Promise<ClaimedRun[]> {
  const parentOwner = request.isOfOwnRuns === true ? request.jobId : null;
  const { own, all, schedulers } = request.waiting ?? UNSHARED;
  return db.transaction(async (tx) => {
    const dags = await tx.rows<{ dag_id: string }>(LOCK_DAGS, [
      request.limit,
      request.dags ?? null,
      parentOwner,
    ]);
    if (dags.length === 0) return [];
    const runs = await tx.rows<ClaimedRun>(START, [
      request.jobId,
      dags.map((d) => d.dag_id),
      request.limit,
      CLAIM_TASKS,
      request.slots ?? ANY_SLOTS,
      parentOwner,
      all,
      schedulers,
      own,
    ]);
    await insertInstances(tx, runs, request);
    return runs;
  });
}

/** For runs that this transaction has started; also sends their signals. */
export async function insertInstances(
  tx: Connection,
  runs: readonly ClaimedRun[],
  request: Pick<StartRequest, "jobId" | "columns">,
): Promise<void> {
  for (const [versionId, started] of byVersion(runs)) {
    const c = await request.columns(tx, versionId);
    await tx.rows(INSERT_INSTANCES, [
      started.filter((run) => run.is_fresh).map((run) => run.id),
      c.taskIds,
      c.maxTries,
      c.pools,
      c.poolSlots,
      c.limitKeys,
      c.queues,
      c.weights,
      c.executors,
      c.operators,
      started.map((run) => `${run.dag_id}/${run.run_id}`),
      `scheduler:${request.jobId}`,
    ]);
  }
}

export function takeOverRuns(
  db: Connection,
  jobId: number,
  limit: number,
  dags: ServedDags = null,
): Promise<ClaimedRun[]> {
  return db.rows<ClaimedRun>(TAKE_OVER, [jobId, limit, CLAIM_TASKS, dags]);
}

/** True if a claim of at most `limit` runs ended because it was full: there may be more. */
export function leavesMore(claimed: readonly ClaimedRun[], limit: number): boolean {
  if (claimed.length >= limit || claimed.length < (claimed[0]?.candidates ?? 0)) return true;
  return claimed.reduce((sum, run) => sum + run.task_count, 0) >= CLAIM_TASKS;
}

export function rereadRuns(db: Connection, jobId: number, ids: readonly number[]): Promise<ClaimedRun[]> {
  return db.rows<ClaimedRun>(REREAD, [jobId, ids]);
}

export async function nextQueuedAt(db: Connection, dags: ServedDags = null): Promise<Date | null> {
  return (await db.one<{ run_after: Date }>(NEXT_QUEUED, [dags]))?.run_after ?? null;
}

/** The stored runs of this job: compared with memory, they show edits whose wake-up was lost. */
export function ownedRuns(
  db: Connection,
  jobId: number,
): Promise<{ id: number; generation: number; is_paused: boolean }[]> {
  return db.rows(GENERATIONS, [jobId]);
}

function byVersion(runs: readonly ClaimedRun[]): Map<number, ClaimedRun[]> {
  return Map.groupBy(runs, (run) => run.version_id);
}
