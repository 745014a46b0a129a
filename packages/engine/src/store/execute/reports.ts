/**
 * Reports of workers. A report is accepted only from the worker that has claimed the assignment, and while the assignment
 * exists. It wakes the schedulers in the same statement: the next task must not wait for a sweep.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Connection, pointRows } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { type Call, call, statement } from "../database/statement.ts";
import { type AssignmentKind, hasReader } from "./assignments.ts";

type ReportType = "started" | "ended";

export interface NewReport {
  readonly assignmentId: string;
  readonly workerJob: number;
  readonly type: ReportType;
  readonly content: Json;
  /** How long ago it happened, by the worker's clock. */
  readonly agoMs: number;
}

const NEW = new RowArrays<NewReport>({
  id: ["uuid", ({ assignmentId }) => assignmentId],
  worker_job: ["bigint", ({ workerJob }) => workerJob],
  type: ["text", ({ type }) => type],
  content: ["json", ({ content }) => content],
  ago_ms: ["bigint", ({ agoMs }) => Math.round(agoMs)],
});

/** An end without a reader deletes the assignment. A repeated report finds its row, or no assignment any more. */
const INSERT = statement(
  "report-insert",
  `WITH given AS (
     SELECT u.*, coalesce(a.worker_job = u.worker_job, false) AS is_held, NOT ${hasReader("a")} AS is_unread
     FROM ${NEW.source} AS u LEFT JOIN assignment a ON a.id = u.id
   ), stored AS (
     INSERT INTO report (assignment_id, type, content, at)
     SELECT id, type, content, now() - ago_ms * interval '1 millisecond' FROM given WHERE is_held AND NOT is_unread
     ON CONFLICT (assignment_id, type) DO NOTHING RETURNING 1
   ), unread AS (
     DELETE FROM assignment a USING given g WHERE a.id = g.id AND g.is_held AND g.is_unread AND g.type = 'ended'
   )
   SELECT id, is_held, pg_notify('tradewind', 'reports') FROM given`,
);

/** Returns the assignments whose report counts. The other ones are superseded: their worker drops them. */
export async function insertReports(db: Connection, reports: readonly NewReport[]): Promise<Set<string>> {
  const rows = await pointRows<{ id: string; is_held: boolean }>(db, INSERT, NEW.values(reports));
  return new Set(rows.filter((row) => row.is_held).map((row) => row.id));
}

/**
 * An assignment ended without a report of its worker, e.g. because its pod is gone. Returns where to log that. The lock waits
 * for an owner that is deleting the assignment with its end, and then skips it.
 */
const REPORT_END = statement(
  "report-end",
  `WITH existing AS (
     SELECT a.id, u.content FROM unnest($1::uuid[], $2::json[]) AS u(id, content) JOIN assignment a ON a.id = u.id
     ORDER BY a.id FOR KEY SHARE OF a
   ), stored AS (
     INSERT INTO report (assignment_id, type, content, at)
     SELECT id, 'ended', content, now() FROM existing
     ON CONFLICT (assignment_id, type) DO NOTHING RETURNING assignment_id
   )
   SELECT a.id, a.content->>'logKey' AS log_key, pg_notify('tradewind', 'reports')
   FROM stored JOIN assignment a ON a.id = stored.assignment_id`,
);

export interface ReportedEnd {
  readonly id: string;
  readonly log_key: string;
}

/**
 * @param ends Contents by assignment. Any process may report such an end; one that was reported before counts.
 * @returns Those that count.
 */
export async function reportEnds(db: Connection, ends: ReadonlyMap<string, Json>): Promise<ReportedEnd[]> {
  if (ends.size === 0) return [];
  const contents = [...ends.values()].map((content) => JSON.stringify(content));
  return await db.rows<ReportedEnd>(REPORT_END, [[...ends.keys()], contents]);
}

/** What workers that have ended still had. The reports of a dead worker are not awaited. */
const LOSE = statement(
  "report-lose",
  `INSERT INTO report (assignment_id, type, content, at)
   SELECT a.id, 'ended', json_build_object('lost', concat_ws(' ', 'its worker', j.name, 'on', j.hostname,
            CASE j.state WHEN 'stopped' THEN 'has stopped' ELSE 'is gone' END)), now()
   FROM assignment a JOIN job j ON j.id = a.worker_job
   WHERE j.state <> 'running'
   ON CONFLICT (assignment_id, type) DO NOTHING`,
);

/** Belongs to the transaction that ends workers, after that statement: it must see all claims made before. */
export const LOSE_CALL: Call = call(LOSE);

/**
 * Ends that no job reads, because their run or callback ended at the same moment, or before its worker was declared dead.
 */
const DROP_UNREAD = statement(
  "report-drop-unread",
  `DELETE FROM assignment a USING report r
   WHERE r.assignment_id = a.id AND r.type = 'ended' AND NOT ${hasReader("a")}`,
);

export async function dropUnreadReports(db: Connection): Promise<void> {
  await db.rows(DROP_UNREAD);
}

export interface StoredReport {
  readonly id: number;
  readonly assignment_id: string;
  readonly kind: AssignmentKind;
  readonly type: ReportType;
  readonly content: Json;
  readonly at: Date;
  readonly dag_run_id: number | null;
  readonly worker_job: number | null;
  readonly hostname: string | null;
  readonly executor: string;
}

const READ = statement(
  "report-read",
  `SELECT r.id, r.assignment_id, a.kind, r.type, r.content, r.at, a.dag_run_id, a.worker_job, j.hostname, a.executor
   FROM report r
   CROSS JOIN LATERAL (SELECT * FROM assignment WHERE id = r.assignment_id OFFSET 0) AS a
   LEFT JOIN job j ON j.id = a.worker_job
   WHERE r.id <> ALL($2::bigint[])
     AND $1 = CASE a.kind WHEN 'callback' THEN (SELECT c.owner_job FROM callback c WHERE c.id = a.id)
                ELSE (SELECT d.owner_job FROM dag_run d WHERE d.id = a.dag_run_id) END
   ORDER BY r.id LIMIT $3`,
);

export const READ_LIMIT = 2_000;

/** Reports for the runs and callbacks of this job, oldest first, without those in `known`. */
export function readReports(db: Connection, jobId: number, known: Iterable<number>): Promise<StoredReport[]> {
  return pointRows(db, READ, [jobId, [...known], READ_LIMIT]);
}

const DELETE = statement("report-delete", "DELETE FROM report WHERE id = ANY($1::bigint[])");

export function deleteReportsCall(ids: readonly number[]): Call {
  return call(DELETE, ids);
}
