/** Callbacks as rows: written with their event, deleted after a worker has run them (`endCallbacks`). At least once. */
import type { Json } from "@tradewind/sdk/manifest";
import type { CallbackCall, CancelledWait } from "@tradewind/sdk/program";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { ServedDags } from "../job/served-dags.ts";
import { RUN_COLUMNS, type RunRow } from "../run/run-row.ts";

export interface StoredCallback extends RunRow {
  readonly id: string;
  readonly dag_run_id: number;
  readonly task_id: string | null;
  readonly map_index: number | null;
  readonly group_id: string | null;
  readonly event: CallbackCall["event"];
  /** For the event "deadline": which deadline, which of its actions, and when it was due. */
  readonly deadline_ordinal: number | null;
  readonly deadline_place: number | null;
  readonly deadline_due_at: Date | null;
  readonly try_number: number;
  readonly error: Json;
  readonly bundle_hash: string;
  /** null: its DAG was deleted. */
  readonly version_id: number | null;
  /** Of its task; null: the default. */
  readonly executor: string | null;
  readonly queue: string | null;
  /** For the event "cancel". */
  readonly wait: CancelledWait | null;
}

const COLUMNS = `c.id, v.id AS version_id, t.executor, t.queue, c.dag_run_id, c.task_id, c.map_index, c.group_id, c.event, c.try_number, c.error, ${RUN_COLUMNS}, v.bundle_hash,
  (y.report->>'ordinal')::int AS deadline_ordinal, y.place AS deadline_place, (y.report->>'dueAt')::timestamptz AS deadline_due_at, NULL::json AS wait`;

const LOAD = statement(
  "callback-load",
  `SELECT ${COLUMNS} FROM callback c JOIN dag_run r ON r.id = c.dag_run_id JOIN dag_version v ON v.id = r.version_id
     LEFT JOIN delivery y ON y.id = c.delivery_id
     LEFT JOIN task_instance t ON t.dag_run_id = c.dag_run_id AND t.task_id = c.task_id AND t.map_index = c.map_index
   WHERE c.id = ANY($1)`,
);

/** For waits (wait-cancels.ts). Their runs may be deleted. */
const LOAD_CANCELS = statement(
  "callback-load-cancels",
  `SELECT c.id, c.task_id, c.map_index, c.try_number, c.bundle_hash, c.wait, c.run, v.id AS version_id, t.executor, t.queue
   FROM callback c
     LEFT JOIN dag_version v ON v.dag_id = c.run->>'dag_id' AND v.number = (c.run->>'version_number')::integer
     LEFT JOIN task_instance t
       ON t.dag_run_id = (c.run->>'dag_run_id')::bigint AND t.task_id = c.task_id AND t.map_index = c.map_index
   WHERE c.id = ANY($1) AND c.dag_run_id IS NULL`,
);

/** Maximum per transaction; there may be more. */
export const ADOPT_LIMIT = 500;

/**
 * Adopts callbacks that no process runs: those of ended jobs, and the job's own callbacks that it is not running (its
 * workers failed, or the reply of the insert was lost). An expired lease is not enough: after a database outage all
 * leases have expired while their owners still run their callbacks. `tries` counts the jobs and workers that died while
 * running the callback; after five the row is kept for inspection. $4: the DAGs that the job serves.
 */
const ADOPT = statement(
  "callback-adopt",
  `UPDATE callback SET owner_job = $1, tries = tries + CASE WHEN owner_job IS NULL OR owner_job = $1 THEN 0 ELSE 1 END
   WHERE id IN (
     SELECT c.id FROM callback c LEFT JOIN job j ON j.id = c.owner_job
     WHERE c.tries < 5 AND c.id <> ALL($2::uuid[])
       AND (j.id IS NULL OR j.state <> 'running'
            OR c.owner_job = $1 AND c.created_at < now() - $3 * interval '1 millisecond')
       AND ($4::text[] IS NULL OR c.owner_job = $1
            OR coalesce(c.run->>'dag_id', (SELECT r.dag_id FROM dag_run r WHERE r.id = c.dag_run_id)) = ANY($4))
     ORDER BY c.created_at LIMIT ${ADOPT_LIMIT} FOR UPDATE OF c SKIP LOCKED)
   RETURNING id`,
);

/** Deletes the assignment with its reports: the callback is assigned again, unless it was lost too often. */
const LOSE = statement(
  "callback-lose",
  `WITH gone AS (DELETE FROM assignment WHERE id = $1)
   UPDATE callback SET tries = tries + 1 WHERE id = $1 RETURNING tries < 5 AS may_run`,
);

/** The worker that ran the callback has died. False: it is not run again. */
export async function loseCallback(db: Connection, id: string): Promise<boolean> {
  return (await db.one<{ may_run: boolean }>(LOSE, [id]))?.may_run === true;
}

const DELETED = statement(
  "callback-deleted",
  "SELECT u.id FROM unnest($1::uuid[]) AS u(id) WHERE NOT EXISTS (SELECT FROM callback c WHERE c.id = u.id)",
);

/** Those among these that have no row any more. */
export async function deletedCallbacks(db: Connection, ids: readonly string[]): Promise<string[]> {
  return (await db.rows<{ id: string }>(DELETED, [ids])).map(({ id }) => id);
}

const IS_OPEN = statement(
  "callback-is-open",
  "SELECT EXISTS (SELECT 1 FROM callback WHERE dag_run_id = $1 AND tries < 5) AS open",
);

/** True if callbacks of the run are pending or running. */
export async function hasOpenCallbacks(db: Connection, runId: number): Promise<boolean> {
  return (await db.rows<{ open: boolean }>(IS_OPEN, [runId]))[0]?.open === true;
}

/** A younger row of the job itself may be stored and not yet submitted. */
const ON_ITS_WAY_MS = 5_000;

export async function loadCallbacks(db: Connection, ids: readonly string[]): Promise<StoredCallback[]> {
  const ofRuns = await db.rows<StoredCallback>(LOAD, [ids]);
  if (ofRuns.length === ids.length) return ofRuns;
  return [...ofRuns, ...(await db.rows<CancelRow>(LOAD_CANCELS, [ids])).map(storedCancel)];
}

interface CancelRow {
  readonly id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
  readonly bundle_hash: string;
  readonly version_id: number | null;
  readonly executor: string | null;
  readonly queue: string | null;
  readonly wait: CancelledWait;
  readonly run: {
    readonly [K in keyof RunRow]: RunRow[K] extends Date | null ? string | null : RunRow[K];
  } & {
    readonly dag_run_id: number;
  };
}

function storedCancel({ run, ...row }: CancelRow): StoredCallback {
  const date = (text: string | null) => (text === null ? null : new Date(text));
  return {
    ...row,
    ...run,
    logical_date: date(run.logical_date),
    interval_start: date(run.interval_start),
    interval_end: date(run.interval_end),
    run_after: new Date(run.run_after as unknown as string),
    started_at: date(run.started_at),
    group_id: null,
    event: "cancel",
    deadline_ordinal: null,
    deadline_place: null,
    deadline_due_at: null,
    error: null,
  };
}

/** `inHand`: the ids of callbacks that this process is running. */
export async function adoptCallbacks(
  db: Connection,
  jobId: number,
  running: readonly string[],
  dags: ServedDags = null,
): Promise<string[]> {
  return (await db.rows<{ id: string }>(ADOPT, [jobId, running, ON_ITS_WAY_MS, dags])).map((row) => row.id);
}
