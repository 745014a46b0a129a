/**
 * Assignments: work for executors whose processes outlive their scheduler. A row is created by the scheduler that submits
 * it, claimed by a worker, and deleted with its end, in the batch of the run's owner.
 *
 * An attempt counts only while `task_instance.attempt` names it. Every statement that lets a worker go on checks that, so an
 * edit, a take-over or a cascade needs no statement of its own to revoke an assignment.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Connection, pointRows } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { type Call, call, statement } from "../database/statement.ts";

export type AssignmentKind = "attempt" | "callback" | "reaction";

type AssignmentConfig = Readonly<Record<string, Json>>;

export interface NewAssignment {
  readonly id: string;
  readonly kind: AssignmentKind;
  /** null: a callback whose run may be deleted. */
  readonly dagRunId: number | null;
  readonly taskId: string | null;
  readonly mapIndex: number | null;
  readonly executor: string;
  readonly queue: string;
  readonly priority: number;
  /** For the executor; null: none. */
  readonly config: AssignmentConfig | null;
  readonly content: Json;
}

const NEW = new RowArrays<NewAssignment>({
  id: ["uuid", ({ id }) => id],
  kind: ["text", ({ kind }) => kind],
  dag_run_id: ["bigint", ({ dagRunId }) => dagRunId],
  task_id: ["text", ({ taskId }) => taskId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  executor: ["text", ({ executor }) => executor],
  queue: ["text", ({ queue }) => queue],
  priority: ["integer", ({ priority }) => priority],
  config: ["json", ({ config }) => config ?? undefined],
  content: ["json", ({ content }) => content],
});

// These conditions are subqueries in the place of a value: EXISTS may be planned as a join or a hash of the whole table.

/** SQL: a job reads the reports of assignment `a`: the owner of its run, or of its callback. */
export const hasReader = (a: string) =>
  `coalesce(CASE ${a}.kind WHEN 'callback' THEN (SELECT true FROM callback c WHERE c.id = ${a}.id)
    ELSE (SELECT r.state = 'running' FROM dag_run r WHERE r.id = ${a}.dag_run_id) END, false)`;

/** SQL: assignment `a` may run: its attempt is current, or its callback or the run of its reaction still exists. */
export const isCurrent = (a: string) =>
  `coalesce(CASE ${a}.kind WHEN 'attempt' THEN (
      SELECT t.attempt = ${a}.id AND t.state IN ('queued', 'running', 'restarting') FROM task_instance t
      WHERE t.dag_run_id = ${a}.dag_run_id AND t.task_id = ${a}.task_id AND t.map_index = ${a}.map_index)
    ELSE ${hasReader(a)} END, false)`;

/** SQL: the end of assignment `a` is reported. */
export const hasEnded = (a: string) =>
  `coalesce((SELECT true FROM report e WHERE e.assignment_id = ${a}.id AND e.type = 'ended'), false)`;

/** Repeated after a lost answer, or by the next owner of a callback, it changes nothing. */
const INSERT = statement(
  "assignment-insert",
  `INSERT INTO assignment (${NEW.names})
   SELECT u.* FROM ${NEW.source} AS u
   WHERE u.dag_run_id IS NULL OR (SELECT true FROM dag_run r WHERE r.id = u.dag_run_id)
   ON CONFLICT (id) DO NOTHING`,
);

export async function insertAssignments(db: Connection, rows: readonly NewAssignment[]): Promise<void> {
  await pointRows(db, INSERT, NEW.values(rows));
}

/**
 * The row lock decides against a concurrent cancel or claim; the lock of the worker's row decides against the statement that
 * declares it dead (store/job/job-lease.ts). A worker claims again what it holds if an answer was lost: if the assignment
 * must not run any more, it is `void`, and its worker reports the end without running it. The worker of a pod has no
 * queues: its token names the assignment. No other statement deletes a superseded assignment whose scheduler died before its
 * cancel.
 */
const CLAIM = statement(
  "assignment-claim",
  `WITH worker AS (
     SELECT id, queues FROM job WHERE id = $1 AND kind = 'worker' AND state = 'running' FOR SHARE
   ), found AS (
     SELECT a.id, a.worker_job, a.cancel IS NOT NULL AS is_cancelled, ${isCurrent("a")} AS is_current,
       w.queues IS NULL OR a.queue = ANY(w.queues) AS is_served
     FROM worker w CROSS JOIN (SELECT unnest($2::uuid[]) AS id ORDER BY 1) AS u
     CROSS JOIN LATERAL (SELECT * FROM assignment WHERE id = u.id OFFSET 0 FOR NO KEY UPDATE) AS a
     WHERE NOT ${hasEnded("a")}
   ), superseded AS (
     DELETE FROM assignment a USING found f WHERE a.id = f.id AND f.worker_job IS NULL AND NOT f.is_current
   )
   UPDATE assignment a SET worker_job = $1, claimed_at = coalesce(a.claimed_at, now())
   FROM found f
   WHERE a.id = f.id
     AND (f.worker_job = $1 OR f.worker_job IS NULL AND NOT f.is_cancelled AND f.is_current AND f.is_served)
   RETURNING a.id, a.content, (f.is_cancelled OR NOT f.is_current) AS is_void`,
);

export interface ClaimedAssignment {
  readonly id: string;
  readonly content: Json;
  /** It was cancelled or superseded after the worker had claimed it. */
  readonly is_void: boolean;
}

/** The claimed ones among these; the others are superseded, cancelled, ended, or claimed by another worker. */
export function claimAssignments(
  db: Connection,
  workerJob: number,
  ids: readonly string[],
): Promise<ClaimedAssignment[]> {
  return pointRows(db, CLAIM, [workerJob, ids]);
}

const READ = statement(
  "assignment-read",
  `SELECT a.id, a.content FROM assignment a WHERE a.worker_job = $1 AND a.id = ANY($2::uuid[]) AND ${isCurrent("a")}`,
);

/** The current ones among these that the worker has claimed. */
export async function readAssignments(
  db: Connection,
  workerJob: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Json>> {
  const rows = await pointRows<{ id: string; content: Json }>(db, READ, [workerJob, ids]);
  return new Map(rows.map(({ content, id }) => [id, content]));
}

const LOG_KEYS = statement(
  "assignment-log-keys",
  "SELECT id, log_key FROM assignment WHERE worker_job = $1 AND id = ANY($2::uuid[])",
);

/** The logs of those among these that the worker has: also of superseded attempts, until they have ended. */
export async function readLogKeys(
  db: Connection,
  workerJob: number,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await pointRows<{ id: string; log_key: string }>(db, LOG_KEYS, [workerJob, ids]);
  return new Map(rows.map(({ id, log_key: key }) => [id, key]));
}

/** Stops these: an unclaimed one is deleted, the worker of a claimed one is notified. Returns those without a worker. */
const CANCEL = statement(
  "assignment-cancel",
  `WITH wanted AS (
     SELECT a.id, a.worker_job, u.cancel
     FROM assignment a JOIN unnest($1::uuid[], $2::json[]) AS u(id, cancel) ON u.id = a.id
     ORDER BY a.id FOR UPDATE OF a
   ), unclaimed AS (
     DELETE FROM assignment a USING wanted w WHERE a.id = w.id AND w.worker_job IS NULL RETURNING a.id
   ), claimed AS (
     UPDATE assignment a SET cancel = w.cancel FROM wanted w WHERE a.id = w.id AND w.worker_job IS NOT NULL
   )
   SELECT u.id FROM unnest($1::uuid[]) AS u(id)
   WHERE NOT EXISTS (SELECT FROM wanted w WHERE w.id = u.id AND w.worker_job IS NOT NULL)`,
);

/** Returns the ids that no worker has: their end will never be reported. */
export async function cancelAssignments(
  db: Connection,
  cancels: ReadonlyMap<string, Json>,
): Promise<string[]> {
  const terms = [...cancels.values()].map((cancel) => JSON.stringify(cancel));
  return (await db.rows<{ id: string }>(CANCEL, [[...cancels.keys()], terms])).map(({ id }) => id);
}

/** Like a cancel, but only of attempts that are no longer current: the runs may have other owners by now. */
const ABANDON = statement(
  "assignment-abandon",
  `WITH stale AS (
     SELECT a.id, a.worker_job FROM assignment a
     WHERE a.id = ANY($1::uuid[]) AND NOT ${isCurrent("a")} ORDER BY a.id FOR UPDATE OF a
   ), unclaimed AS (
     DELETE FROM assignment a USING stale s WHERE a.id = s.id AND s.worker_job IS NULL
   )
   UPDATE assignment a SET cancel = coalesce(a.cancel, $2::json) FROM stale s
   WHERE a.id = s.id AND s.worker_job IS NOT NULL`,
);

export async function abandonAssignments(
  db: Connection,
  ids: readonly string[],
  cancel: Json,
): Promise<void> {
  await db.rows(ABANDON, [ids, JSON.stringify(cancel)]);
}

export interface StoredAssignment {
  readonly id: string;
  readonly kind: AssignmentKind;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly executor: string;
  readonly queue: string;
  readonly priority: number;
  readonly config: AssignmentConfig | null;
  readonly is_claimed: boolean;
}

const OF_RUNS = statement(
  "assignment-of-runs",
  `SELECT id, kind, dag_run_id, task_id, map_index, executor, queue, priority, config, worker_job IS NOT NULL AS is_claimed
   FROM assignment WHERE dag_run_id = ANY($1) AND kind <> 'callback'`,
);

/** The attempts and reactions of these runs. */
export function loadAssignments(db: Connection, runIds: readonly number[]): Promise<StoredAssignment[]> {
  return db.rows(OF_RUNS, [runIds]);
}

const DELETE = statement("assignment-delete", "DELETE FROM assignment WHERE id = ANY($1::uuid[])");

export function deleteAssignmentsCall(ids: readonly string[]): Call {
  return call(DELETE, ids);
}

export async function deleteAssignments(db: Connection, ids: readonly string[]): Promise<void> {
  if (ids.length > 0) await db.rows(DELETE, [ids]);
}

const DESCRIBE = statement(
  "assignment-describe",
  `SELECT id, kind, task_id, map_index, content->'run'->>'dagId' AS dag_id, content->'run'->>'runId' AS run_id,
     (content->>'tryNumber')::integer AS try_number
   FROM assignment WHERE id = ANY($1::uuid[])`,
);

export interface DescribedAssignment {
  readonly id: string;
  readonly kind: AssignmentKind;
  readonly task_id: string | null;
  readonly map_index: number | null;
  readonly dag_id: string;
  readonly run_id: string;
  readonly try_number: number;
}

/** Those that exist. */
export function describeAssignments(db: Connection, ids: readonly string[]): Promise<DescribedAssignment[]> {
  return db.rows(DESCRIBE, [ids]);
}

const EXISTING = statement("assignment-existing", "SELECT id FROM assignment WHERE id = ANY($1::uuid[])");

export async function existingAssignments(db: Connection, ids: readonly string[]): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  return new Set((await db.rows<{ id: string }>(EXISTING, [ids])).map(({ id }) => id));
}

export interface WaitingAssignment {
  readonly id: string;
  readonly queue: string;
  readonly priority: number;
  readonly config: AssignmentConfig | null;
  /** As text, because a page may end between two rows of the same millisecond. */
  readonly created_at: string;
}

/** In the order of the index `assignment_waiting`: a page reads no more rows than it returns. */
const UNCLAIMED = statement(
  "assignment-unclaimed",
  `SELECT id, queue, priority, config, created_at::text FROM assignment
   WHERE executor = $1 AND worker_job IS NULL AND created_at < now() - $2 * interval '1 millisecond'
     AND (queue, created_at, id) > ($3, $4::timestamptz, $5::uuid)
     AND NOT EXISTS (SELECT FROM report r WHERE r.assignment_id = assignment.id AND r.type = 'ended')
   ORDER BY queue, assignment.created_at, id LIMIT $6`,
);

const BEGINNING = { queue: "", created_at: "-infinity", id: "00000000-0000-0000-0000-000000000000" };

/** Assignments that have waited for a worker for this long, by queue, oldest first, after `after`. */
export function unclaimedAssignments(
  db: Connection,
  executor: string,
  page: {
    readonly waitedMs: number;
    readonly after?: Pick<WaitingAssignment, "created_at" | "id" | "queue">;
    readonly limit: number;
  },
): Promise<WaitingAssignment[]> {
  const { created_at, id, queue } = page.after ?? BEGINNING;
  return db.rows(UNCLAIMED, [executor, page.waitedMs, queue, created_at, id, page.limit]);
}
