/**
 * Runs that wait for an earlier date yield their run slot to it. A running run whose tasks wait for an earlier date
 * (`dependsOnPast`, `waitForDownstream`) holds one of the run slots of `maxActiveRuns`, or of its backfill's limit. If
 * the earlier date is queued afterwards, because a user cleared or created it, the later runs would wait for it, and it
 * for one of their run slots, forever. So the latest of the runs that only wait return to the queue, and the earliest
 * queued run gets the run slot, in one transaction: the limit holds at all times.
 *
 * The check is made where runs are started, not where they are cleared: it works however the earlier date was queued, and
 * whenever the later runs began to wait. Schedulers check when a run or a DAG has changed, and when one of their runs has
 * nothing left to do but wait. A run slot goes to an earlier date only, so two runs cannot take it from each other in
 * turn.
 *
 *  - Locks: the rows of affected DAGs (or own backfills), then the runs, with SKIP LOCKED, so that it never waits.
 *    Whether a run only waits is checked again in a statement after the lock: its owner may have stored a task since.
 *    From then on the owner's batches are rejected, because the generation is raised: it starts no task.
 *  - A run that returns to the queue keeps its progress and continues from there when it is started again, as a cleared
 *    run does.
 *  - Crash before the commit: no effect. Crash after it, or a lost reply: the started runs belong to this job, which
 *    finds them at its next sweep, or to a job whose lease expires. Concurrent calls: the second skips the locked DAG.
 *    Stale job: as with every claim, other jobs may take over the runs it has started. The former owner, if not woken, is
 *    rejected at its next write, or finds out at its next sweep.
 */
import { SHORT_BREATH } from "../backfill/backfill-claim.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed } from "../job/served-dags.ts";
import { publishRuns } from "../task/state-signals.ts";
import {
  CLAIM_TASKS,
  type ClaimedRun,
  insertInstances,
  isFree,
  isFresh,
  type StartRequest,
  startChosen,
  WAITING_DAGS,
} from "./run-claim.ts";

/** Maximum DAGs, or backfills, per transaction; and maximum runs of each. */
const MAX_GROUPS = 16;
const MAX_RUNS = 64;

/** Runs that share a limit: those of a backfill, or those of the DAG without a backfill. */
interface Group {
  readonly dag_id: string;
  readonly backfill_id: number | null;
}

const GATED = `'$.tasks[*] ? (@.dependsOnPast == true || @.waitForDownstream == true)'`;

/**
 * True if no instance is active or about to be, and a task depends on the past. Also true briefly when the run starts.
 * num_nulls: with IS NOT NULL, PostgreSQL could scan all runs of the DAG by the index of dates.
 */
const isWaiting = (run: string) =>
  `num_nulls(${run}.logical_date) = 0 AND ${run}.retry_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM task_instance t WHERE t.dag_run_id = ${run}.id
                     AND t.state NOT IN ('pending', 'success', 'failed', 'skipped', 'upstream_failed', 'removed'))
   AND EXISTS (SELECT 1 FROM dag_version g
                 CROSS JOIN LATERAL jsonb_path_query(g.manifest, ${GATED}) AS k(task)
                 JOIN task_instance t ON t.dag_run_id = ${run}.id AND t.task_id = k.task->>'taskId' AND t.state = 'pending'
               WHERE g.id = ${run}.version_id)`;

/** OFFSET 0: for the first by date, PostgreSQL would scan all runs of the DAG in that order. */
const latest = (running: string) =>
  `(SELECT max(x.logical_date) FROM (SELECT a.logical_date FROM dag_run a WHERE ${running} OFFSET 0) AS x)`;
const earliest = (queued: string) =>
  `(SELECT min(x.logical_date) FROM (
      SELECT q.logical_date FROM dag_run q WHERE ${queued} AND q.run_after <= now() OFFSET 0) AS x)`;

/**
 * True if a waiting run holds a run slot that an earlier date needs. `running` and `queued` are the conditions for `a`
 * and `q` to belong to the group. Cheap conditions first: most DAGs are below their limit, most others do not depend on
 * the past, and in a backlog the queued runs come after the running ones.
 */
const isStuck = (group: { running: string; queued: string; most: string }) =>
  `CASE WHEN (SELECT count(*) FROM dag_run a WHERE ${group.running}) >= ${group.most}
   THEN CASE WHEN EXISTS (SELECT 1 FROM dag_version g
                          WHERE g.id = ANY(ARRAY(SELECT a.version_id FROM dag_run a WHERE ${group.running}))
                            AND jsonb_path_exists(g.manifest, ${GATED}))
   THEN CASE WHEN ${earliest(group.queued)} < ${latest(group.running)}
   THEN ${earliest(group.queued)} < ${latest(`${group.running} AND ${isWaiting("a")}`)}
   END END END`;

const LOCK_DAGS = statement(
  "places-lock-dags",
  `${WAITING_DAGS}
   SELECT d.dag_id, NULL::bigint AS backfill_id
   FROM waiting w JOIN dag d ON d.dag_id = w.dag_id JOIN dag_version v ON v.id = d.version_id
   WHERE NOT d.is_paused AND ${isServed("d.dag_id", "$2")} AND ${isStuck({
     running: "a.dag_id = d.dag_id AND a.state = 'running' AND a.backfill_id IS NULL",
     queued: `q.dag_id = d.dag_id AND q.state = 'queued' AND ${isFree("q")}`,
     most: "v.max_active_runs",
   })}
   ORDER BY d.dag_id LIMIT $1
   FOR NO KEY UPDATE OF d SKIP LOCKED`,
);

const LOCK_BACKFILLS = statement(
  "places-lock-backfills",
  `SELECT b.dag_id, b.id AS backfill_id, ${SHORT_BREATH} FROM backfill b JOIN dag d ON d.dag_id = b.dag_id
   WHERE b.owner_job = $2 AND (b.state = 'running' OR b.ending IS NOT NULL AND b.state = 'paused') AND NOT d.is_paused
     AND ${isStuck({
       running: "a.backfill_id = b.id AND a.state = 'running'",
       queued: "q.backfill_id = b.id AND q.state = 'queued'",
       most: "b.max_active",
     })}
   ORDER BY b.id LIMIT $1
   FOR NO KEY UPDATE OF b SKIP LOCKED`,
);

const IN_GROUP = `CASE WHEN $2::bigint IS NULL THEN ${isFree("q")} ELSE q.backfill_id = $2 END`;

/** Runs that may return to the queue, latest first, and runs that may replace them, earliest first. */
const LOCK_RUNS = statement(
  "places-lock-runs",
  `SELECT r.id FROM dag_run r
   WHERE r.id = ANY(ARRAY(SELECT x.id FROM (
                            SELECT a.id, a.logical_date FROM dag_run a
                            WHERE a.dag_id = $1 AND a.state = 'running' AND a.backfill_id IS NOT DISTINCT FROM $2
                              AND ${isWaiting("a")} OFFSET 0) AS x
                          ORDER BY x.logical_date DESC LIMIT $3)
                 || ARRAY(SELECT x.id FROM (
                            SELECT q.id, q.logical_date FROM dag_run q
                            WHERE q.dag_id = $1 AND q.state = 'queued' AND q.run_after <= now() AND ${IN_GROUP}
                            OFFSET 0) AS x
                          WHERE x.logical_date IS NOT NULL ORDER BY x.logical_date LIMIT $3))
   ORDER BY r.id FOR UPDATE SKIP LOCKED`,
);

/** Reads the runs again after locking them: rows that changed in between no longer qualify. */
const LOCKED = statement(
  "places-locked",
  `SELECT q.id, q.state, q.logical_date, q.owner_job, v.task_count
   FROM dag_run q JOIN dag_version v ON v.id = q.version_id
   WHERE q.id = ANY($1) AND ${IN_GROUP} AND (q.state = 'queued' OR q.state = 'running' AND ${isWaiting("q")})
   ORDER BY q.logical_date`,
);

const ROOM = statement(
  "places-room",
  `SELECT CASE WHEN $2::bigint IS NULL
            THEN (SELECT v.max_active_runs FROM dag d JOIN dag_version v ON v.id = d.version_id WHERE d.dag_id = $1)
            ELSE (SELECT b.max_active FROM backfill b WHERE b.id = $2) END AS most,
          (SELECT count(*)::int FROM dag_run a
           WHERE a.dag_id = $1 AND a.state = 'running' AND a.backfill_id IS NOT DISTINCT FROM $2) AS running`,
);

/** Queued and start times stay: deadlines and the run's timeout continue to count. */
const GO_BACK = statement(
  "places-go-back",
  `WITH back AS (
     UPDATE dag_run SET state = 'queued', owner_job = NULL, generation = generation + 1 WHERE id = ANY($1)
     RETURNING dag_id, run_id, state
   ) ${publishRuns("back")}`,
);

/** For runs that are queued and locked. */
const START = statement(
  "places-start",
  `WITH chosen AS (
     SELECT q.id, ${isFresh("q")} AS is_fresh FROM dag_run q WHERE q.id = ANY($2)
   ), ${startChosen("$3")}`,
);

interface LockedRun {
  readonly id: number;
  readonly state: "queued" | "running";
  readonly logical_date: Date;
  readonly owner_job: number | null;
  readonly task_count: number;
}

export interface Exchange {
  /** Runs that belong to this job now. */
  readonly started: readonly ClaimedRun[];
  /** Runs that are queued again: their former owners have to be notified. */
  readonly wentBack: readonly number[];
}

/** For DAGs, as `startQueuedRuns`; `isOfOwnRuns`: only runs of this job return, so that it owns no more than before. */
export function makeWay(db: Database, request: Omit<StartRequest, "limit">): Promise<Exchange> {
  const values = [MAX_GROUPS, request.dags ?? null];
  return db.transaction(async (tx) => exchange(tx, await tx.rows<Group>(LOCK_DAGS, values), request));
}

/** For the job's own backfills, as `startBackfillRuns`. */
export function makeWayInBackfills(db: Database, request: Omit<StartRequest, "limit">): Promise<Exchange> {
  return db.transaction(async (tx) =>
    exchange(tx, await tx.rows<Group>(LOCK_BACKFILLS, [MAX_GROUPS, request.jobId]), request),
  );
}

/** The runs that a job has claimed in this iteration, without those that it then returned to the queue. */
export function afterExchange(claimed: readonly ClaimedRun[], { started, wentBack }: Exchange): ClaimedRun[] {
  return [...claimed.filter(({ id }) => !wentBack.includes(id)), ...started];
}

/** For runs that are queued and locked by this transaction. The caller inserts their instances. */
export function startLocked(
  tx: Connection,
  start: { readonly jobId: number; readonly ids: readonly number[]; readonly backfillId: number | null },
): Promise<ClaimedRun[]> {
  return tx.rows<ClaimedRun>(START, [start.jobId, start.ids, start.backfillId]);
}

async function exchange(
  tx: Connection,
  groups: readonly Group[],
  request: Omit<StartRequest, "limit">,
): Promise<Exchange> {
  const started: ClaimedRun[] = [];
  const wentBack: number[] = [];
  for (const { dag_id, backfill_id } of groups) {
    const ids = await tx.rows<{ id: number }>(LOCK_RUNS, [dag_id, backfill_id, MAX_RUNS]);
    const locked = await tx.rows<LockedRun>(LOCKED, [ids.map(({ id }) => id), backfill_id]);
    const isOpen = ({ owner_job, state }: LockedRun) =>
      state === "queued" || request.isOfOwnRuns !== true || owner_job === request.jobId;
    const runs = locked.filter(isOpen);
    const room = await tx.one<{ most: number; running: number }>(ROOM, [dag_id, backfill_id]);
    const { back, start } = pairs(runs, room ? Math.max(room.running - room.most, 0) : 0);
    if (start.length === 0) continue;
    await tx.rows(GO_BACK, [back]);
    started.push(...(await startLocked(tx, { jobId: request.jobId, ids: start, backfillId: backfill_id })));
    wentBack.push(...back);
  }
  await insertInstances(tx, started, request);
  return { started, wentBack };
}

/**
 * Each run that starts is earlier than the run that it replaces. `surplus`: the number of additional runs that return,
 * because they exceed a lowered limit.
 */
function pairs(runs: readonly LockedRun[], surplus: number): { back: number[]; start: number[] } {
  const coming = runs.filter(({ state }) => state === "queued");
  const going = runs.filter(({ state }) => state === "running").reverse();
  const start: number[] = [];
  let tasks = 0;
  for (const [n, run] of coming.entries()) {
    const other = going[surplus + n];
    if (other === undefined || other.logical_date <= run.logical_date || tasks >= CLAIM_TASKS) break;
    start.push(run.id);
    tasks += run.task_count;
  }
  return { start, back: going.slice(0, surplus + start.length).map(({ id }) => id) };
}
