/**
 * Runs that wait for the past make way for it. A running run whose tasks wait for an earlier date (`dependsOnPast`,
 * `waitForDownstream`) holds one of the places that `maxActiveRuns`, or the limit of its backfill, leaves. Should the
 * earlier date come to be queued afterwards, because somebody cleared it or made it by hand, the later ones would wait for
 * it, and it for one of their places, forever. So the latest of those that do nothing but wait go back to the queue, and
 * the earliest that is queued gets the place, in one transaction: the limit holds at every moment.
 *
 * It is looked for where runs are started and not where they are cleared: whatever put the earlier date into the queue,
 * and whenever the later ones began to wait, it is found. Schedulers look when a run or a DAG has changed, and when a run of
 * theirs has nothing left to do but wait. A place goes to an earlier date only, so no two runs take it
 * from each other in turn.
 *
 *  - Locks: the rows of DAGs (or of own backfills) in which that is so, then the runs in question: passing over locked
 *    ones, so that nobody waits here. Whether a run only waits is asked again in a statement after the lock: its owner
 *    may have stored a task since the first began. From then on the owner's batches are refused, for the generation
 *    is raised: a task that it was about to start is not started.
 *  - What goes back keeps all it has done, and goes on from there when it is started again, as a cleared run does.
 *  - Dies before: nothing happened. Dies after, or the answer is lost: those that were started belong to this job, which
 *    finds them at its next sweep, or to one whose lease runs out. Two at once: the second passes over the locked DAG.
 *    Woke up late: as with every claim, others may take at once what it has started. The former owner, not woken, is
 *    refused at its next write, or finds out at its next sweep.
 */
import { SHORT_BREATH } from "../backfill/backfill-claim.ts";
import type { Connection, Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { isServed } from "../job/served-dags.ts";
import { tellRuns } from "../task/state-signals.ts";
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

/** DAGs, or backfills, in one transaction; and of each so many runs. */
const MAX_GROUPS = 16;
const MAX_RUNS = 64;

/** Runs that share a limit: those of a backfill, or those of the DAG that belong to none. */
interface Group {
  readonly dag_id: string;
  readonly backfill_id: number | null;
}

const GATED = `'$.tasks[*] ? (@.dependsOnPast == true || @.waitForDownstream == true)'`;

/**
 * Nothing of it is under way or about to be, and a task of it asks for the past. Also true for a moment when it begins.
 * num_nulls: said with IS NOT NULL, it would invite PostgreSQL to read the DAG's whole history by the index of dates.
 */
const isWaiting = (run: string) =>
  `num_nulls(${run}.logical_date) = 0 AND ${run}.retry_at IS NULL
   AND NOT EXISTS (SELECT 1 FROM task_instance t WHERE t.dag_run_id = ${run}.id
                     AND t.state NOT IN ('none', 'success', 'failed', 'skipped', 'upstream_failed', 'removed'))
   AND EXISTS (SELECT 1 FROM dag_version g
                 CROSS JOIN LATERAL jsonb_path_query(g.manifest, ${GATED}) AS k(task)
                 JOIN task_instance t ON t.dag_run_id = ${run}.id AND t.task_id = k.task->>'taskId' AND t.state = 'none'
               WHERE g.id = ${run}.version_id)`;

/** OFFSET 0: asked for the first by date, PostgreSQL would walk the DAG's whole history in that order. */
const latest = (running: string) =>
  `(SELECT max(x.logical_date) FROM (SELECT a.logical_date FROM dag_run a WHERE ${running} OFFSET 0) AS x)`;
const earliest = (queued: string) =>
  `(SELECT min(x.logical_date) FROM (
      SELECT q.logical_date FROM dag_run q WHERE ${queued} AND q.run_after <= now() OFFSET 0) AS x)`;

/**
 * Whether somebody who waits has a place that an earlier date needs. `running` and `queued` are the conditions for `a` and
 * `q` to belong to the group. Step by step, the cheap questions first: most DAGs have room, most others no past, and of
 * those with a backlog the queued ones come after the running ones.
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

/** Those that may go back, the latest first, and those that may come for them, the earliest first. */
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

/** As they are now that they are locked. Rows that somebody changed in between are not what they were chosen for. */
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

/** When it was queued and when it started stay as they were: its deadlines and its time limit count on. */
const GO_BACK = statement(
  "places-go-back",
  `WITH back AS (
     UPDATE dag_run SET state = 'queued', owner_job = NULL, generation = generation + 1 WHERE id = ANY($1)
     RETURNING dag_id, run_id, state
   ) ${tellRuns("back")}`,
);

/** Of runs that are queued and locked. */
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
  /** They are this job's now. */
  readonly started: readonly ClaimedRun[];
  /** They are queued again: whoever owned them is to be told. */
  readonly wentBack: readonly number[];
}

/** Of DAGs, as `startQueuedRuns`; `isOfOwnRuns`: only runs of this job go back, so that it owns no more than before. */
export function makeWay(db: Database, request: Omit<StartRequest, "limit">): Promise<Exchange> {
  const values = [MAX_GROUPS, request.dags ?? null];
  return db.transaction(async (tx) => exchange(tx, await tx.rows<Group>(LOCK_DAGS, values), request));
}

/** Of the job's own backfills, as `startBackfillRuns`. */
export function makeWayInBackfills(db: Database, request: Omit<StartRequest, "limit">): Promise<Exchange> {
  return db.transaction(async (tx) =>
    exchange(tx, await tx.rows<Group>(LOCK_BACKFILLS, [MAX_GROUPS, request.jobId]), request),
  );
}

/** What a job has claimed in this turn: what it started and then put back is not its own any more. */
export function afterExchange(claimed: readonly ClaimedRun[], { started, wentBack }: Exchange): ClaimedRun[] {
  return [...claimed.filter(({ id }) => !wentBack.includes(id)), ...started];
}

/** Runs that are queued, and locked by this transaction. Their instances are inserted by the caller. */
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
 * Each that comes is earlier than the one that goes for it. `surplus`: so many more go, for so many run beyond the limit,
 * which was lowered.
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
