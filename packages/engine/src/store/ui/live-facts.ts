/** What the live stream compares with its last reading, to find out what has changed. */
import type { Connection, Database } from "../database/database.ts";
import { call, statement } from "../database/statement.ts";
import { type LogPosition, laterPosition, startNow } from "../signal/signals-position.ts";
import { endOf, heldEnd, type LogEndRow, readFar } from "../signal/signals-read.ts";

export interface LiveDagRow {
  readonly dag_id: string;
  readonly version: number | null;
  readonly is_paused: boolean;
  readonly is_stale: boolean;
}

const DAGS = statement(
  "ui-live-dags",
  `SELECT d.dag_id, v.number AS version, d.is_paused, d.is_stale
   FROM dag d LEFT JOIN dag_version v ON v.id = d.version_id`,
);

export function liveDags(connection: Connection): Promise<LiveDagRow[]> {
  return connection.rows(DAGS);
}

export interface LiveImportErrorRow {
  readonly file: string;
  readonly id: number;
  readonly at: Date;
}

const IMPORT_ERRORS = statement(
  "ui-live-import-errors",
  "SELECT file, id, created_at AS at FROM import_error",
);

export function liveImportErrors(connection: Connection): Promise<LiveImportErrorRow[]> {
  return connection.rows(IMPORT_ERRORS);
}

export interface LiveJobRow {
  readonly id: number;
  readonly kind: string;
  readonly name: string | null;
  readonly state: string;
  /** Running, with a valid lease. */
  readonly is_alive: boolean;
  readonly is_draining: boolean;
  readonly slots: number | null;
  readonly free_slots: number;
}

const JOBS = statement(
  "ui-live-jobs",
  `SELECT id, kind, name, state, state = 'running' AND lease_until > now() AS is_alive, is_draining, slots, free_slots
   FROM job WHERE state = 'running' OR id = ANY($1::bigint[])`,
);

/** Running ones, and `known` ones that may have ended. */
export function liveJobs(connection: Connection, known: readonly number[]): Promise<LiveJobRow[]> {
  return connection.rows(JOBS, [known]);
}

export interface LiveBackfillRow {
  readonly id: number;
  readonly dag_id: string;
  readonly state: string;
  readonly total_runs: number;
  /** Dates that were handled, and their runs by state. */
  readonly handled: number;
  readonly queued: number;
  readonly running: number;
  readonly failed: number;
}

const BACKFILLS = statement(
  "ui-live-backfills",
  `SELECT b.id, b.dag_id, b.state, b.total_runs, b.next_ordinal AS handled, c.*
   FROM backfill b CROSS JOIN LATERAL (
     SELECT count(*) FILTER (WHERE r.state = 'queued')::int AS queued, count(*) FILTER (WHERE r.state = 'running')::int AS running,
       count(*) FILTER (WHERE r.state = 'failed')::int AS failed
     FROM dag_run r WHERE r.backfill_id = b.id) c
   WHERE b.state IN ('running', 'paused') OR b.id = ANY($1::bigint[])`,
);

/** Open ones, and `known` ones that may have ended. */
export function liveBackfills(connection: Connection, known: readonly number[]): Promise<LiveBackfillRow[]> {
  return connection.rows(BACKFILLS, [known]);
}

export interface LivePoolRow {
  readonly name: string;
  readonly slots: number;
  readonly occupied: number;
}

const POOLS = statement(
  "ui-live-pools",
  "SELECT name, slots, occupied FROM pool WHERE NOT starts_with(name, '@')",
);

export function livePools(connection: Connection): Promise<LivePoolRow[]> {
  return connection.rows(POOLS);
}

export interface LiveApprovalRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly map_index: number;
}

/** The newest open ones. Index: deferral_approval. */
const APPROVALS = statement(
  "ui-live-approvals",
  `SELECT d.trigger_id AS id, r.dag_id, r.run_id, d.task_id, d.map_index
   FROM deferral d JOIN dag_run r ON r.id = d.dag_run_id
   WHERE d.kind = 'tradewind.approval' AND d.waits_on IS NOT NULL ORDER BY d.trigger_id DESC LIMIT 1000`,
);

export function liveApprovals(connection: Connection): Promise<LiveApprovalRow[]> {
  return connection.rows(APPROVALS);
}

/** Index: signal_position. Returns at least one row, for the end of the log. */
const SIGNALS = statement(
  "ui-live-signals",
  `SELECT b.tx AS end_tx, b.id AS end_id, b.held, s.namespace, s.count, s.newest
   FROM ${heldEnd(["$3::xid8", "$4::bigint"], ["$1::xid8", "$2"])} AS b
   LEFT JOIN LATERAL (
     SELECT n.namespace, count(*)::int AS count, max(n.id) AS newest FROM signal n
     WHERE (n.tx, n.id) > ($1::xid8, $2) AND (n.tx, n.id) <= (b.tx, b.id) GROUP BY n.namespace
   ) AS s ON true`,
);

interface SignalCountRow extends LogEndRow {
  readonly namespace: string | null;
  readonly count: number;
  readonly newest: number;
}

export interface SignalCounts {
  readonly position: LogPosition;
  readonly counts: readonly {
    readonly namespace: string;
    readonly count: number;
    readonly newest: number;
  }[];
  /** An open transaction holds back later signals. */
  readonly isHeld: boolean;
}

export async function signalsSince(db: Database, after: LogPosition | null): Promise<SignalCounts> {
  if (after === null) return { position: (await startNow(db)).position, counts: [], isHeld: false };
  const { held, rows } = await readFar(db, async (upTo) => {
    const [found] = await db.pipeline([
      call(SIGNALS, after.tx, after.id, upTo?.tx ?? null, upTo?.id ?? null),
    ]);
    const rows = found as SignalCountRow[];
    return { rows, held: endOf(rows).held };
  });
  const counts = rows.flatMap(({ count, namespace, newest }) =>
    namespace === null ? [] : [{ namespace, count, newest }],
  );
  return { position: laterPosition(after, endOf(rows).end), counts, isHeld: held !== null };
}
