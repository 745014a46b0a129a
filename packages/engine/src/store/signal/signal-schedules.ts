/**
 * Schedules on signals: each time a DAG's condition is met, one run is created. Position, condition state and runs change
 * in one transaction, and only if the position is still the one that was computed from: of any number of triggerers, one
 * stores the result.
 *
 * Crash before the commit: no effect, the signals are still there. Crash after it: everything is stored. Lost reply: the
 * position shows the result. Concurrent calls: the second skips the locked row, or finds another position, and reads
 * again. A paused DAG keeps its position, and so its signals.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { publishRuns } from "../task/state-signals.ts";
import type { ScheduleTerms } from "./signal-schedules-publish.ts";
import { type LogPosition, laterPosition } from "./signals-position.ts";
import { endOf, heldEnd, type LogEndRow, readFar } from "./signals-read.ts";

export interface ScheduleRow extends ScheduleMark {
  readonly dagId: string;
  readonly terms: ScheduleTerms;
  /** Signals up to this version were sent before the DAG was first published. */
  readonly afterVersion: number | null;
  readonly state: Json;
  readonly isAwake: boolean;
}

/** The version of a schedule that a result was computed from. */
export interface ScheduleMark {
  readonly name: string;
  readonly revision: string;
  readonly position: LogPosition;
}

export interface ScheduleMove {
  readonly to: LogPosition;
  readonly state: Json;
  /** Number of matched signals. */
  readonly received: number;
  /** In order. */
  readonly runs: readonly ScheduleRun[];
}

export interface ScheduleRun {
  readonly runId: string;
  readonly conf: Json;
  /** For a schedule on signals: the versions that met its condition. */
  readonly causes?: readonly number[];
  /** For a schedule on assets: the events of the run, and their partition. */
  readonly events?: readonly number[];
  readonly partition?: string | null;
}

interface Row {
  readonly name: string;
  readonly dag_id: string;
  readonly revision: string;
  readonly schedule: ScheduleTerms;
  readonly tx: string;
  readonly signal_id: number;
  readonly after_version: number | null;
  readonly state: Json;
  readonly is_awake: boolean;
}

const COLUMNS = `l.name, l.dag_id, l.revision, l.schedule, l.tx, l.signal_id, l.after_version,
   NOT d.is_paused AND NOT d.is_stale AS is_awake`;

/** Without the states: they may be large. */
const LIST = statement(
  "schedule-list",
  `SELECT ${COLUMNS}, NULL::json AS state FROM signal_listener l JOIN dag d ON d.dag_id = l.dag_id ORDER BY l.name`,
);

const READ = statement(
  "schedule-read",
  `SELECT ${COLUMNS}, l.state FROM signal_listener l JOIN dag d ON d.dag_id = l.dag_id
   WHERE l.name = ANY($1::text[]) ORDER BY l.name`,
);

/** Lock order: DAGs before listeners. Waits for a DAG that is being deleted. */
const LOCK_DAG = statement("schedule-lock-dag", "SELECT 1 FROM dag WHERE dag_id = $1 FOR KEY SHARE");

const MOVE = statement(
  "schedule-move",
  `WITH held AS (
     SELECT l.name, d.dag_id, d.version_id FROM signal_listener l JOIN dag d ON d.dag_id = l.dag_id
     WHERE l.name = $1 AND l.revision = $2 AND l.tx = $3::xid8 AND l.signal_id = $4
       AND NOT d.is_paused AND NOT d.is_stale
     FOR NO KEY UPDATE OF l SKIP LOCKED
   ), moved AS (
     UPDATE signal_listener l SET tx = $5::xid8, signal_id = $6, state = $7, processed = l.processed + $8,
                                  updated_at = now(), seen_at = now()
     FROM held WHERE l.name = held.name RETURNING held.dag_id, held.version_id
   ), added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, conf, version_id, triggered_by, partition_key)
     SELECT m.dag_id, u.run, $11 || '_triggered', u.conf, m.version_id, $11, u.partition
     FROM moved m
     CROSS JOIN unnest($9::text[], $10::json[], $12::text[]) WITH ORDINALITY AS u(run, conf, partition, at)
     ORDER BY u.at
     ON CONFLICT DO NOTHING RETURNING id, dag_id, run_id, state
   ), linked AS (
     INSERT INTO asset_event_run (dag_run_id, event_id)
     SELECT a.id, e.event FROM unnest($13::text[], $14::bigint[]) AS e(run, event) JOIN added a ON a.run_id = e.run
   ), caused AS (
     INSERT INTO signal_effect (signal_id, dag_run_id, kind)
     SELECT c.signal, a.id, 'create' FROM unnest($15::text[], $16::bigint[]) AS c(run, signal) JOIN added a ON a.run_id = c.run
     ON CONFLICT DO NOTHING
   ), told AS (${publishRuns("added")})
   SELECT (SELECT count(*) FROM moved) AS moved, (SELECT coalesce(json_agg(run_id), '[]') FROM added) AS added`,
);

/**
 * Schedules without a matching signal between their position and this one. Called only now and then: it serves retention,
 * and readers that start later.
 */
const PASS = statement(
  "schedule-pass",
  `WITH idle AS (
     SELECT l.name FROM unnest($1::text[], $2::uuid[]) AS u(name, revision)
     JOIN signal_listener l ON l.name = u.name AND l.revision = u.revision
     WHERE (l.tx, l.signal_id) < ($3::xid8, $4) AND l.updated_at < now() - $5 * interval '1 millisecond'
     ORDER BY l.name FOR NO KEY UPDATE OF l SKIP LOCKED
   )
   UPDATE signal_listener l SET tx = $3::xid8, signal_id = $4, updated_at = now(), seen_at = now()
   FROM idle WHERE l.name = idle.name`,
);

/** Index: signal_position. Returns at least one row, for the end of the log. */
const SCAN = statement(
  "schedule-scan",
  `SELECT b.tx AS end_tx, b.id AS end_id, b.held, s.*
   FROM ${heldEnd(["$5::xid8", "$6::bigint"], ["$1::xid8", "$2"])} AS b
   LEFT JOIN LATERAL (
     SELECT s.tx, s.id, s.namespace, s.key FROM signal s
     WHERE (s.tx, s.id) > ($1::xid8, $2) AND (s.tx, s.id) <= (b.tx, b.id) AND ($3::text[] IS NULL OR s.namespace = ANY($3))
     ORDER BY s.tx, s.id LIMIT $4
   ) AS s ON true
   ORDER BY s.tx, s.id`,
);

/** A signal without its value. */
export interface SentName extends LogPosition {
  readonly namespace: string;
  readonly key: string;
}

export interface ScannedLog {
  readonly names: readonly SentName[];
  /** The end of the range read. */
  readonly position: LogPosition;
  /** The end of the readable log. */
  readonly head: LogPosition;
  /** There are more signals, held back by an older open transaction. */
  readonly isHeld: boolean;
}

export async function listSchedules(db: Connection): Promise<ScheduleRow[]> {
  return (await db.rows<Row>(LIST)).map(scheduleOf);
}

export async function readSchedules(db: Connection, names: readonly string[]): Promise<ScheduleRow[]> {
  return (await db.rows<Row>(READ, [names])).map(scheduleOf);
}

/**
 * null: another process has moved it or is about to, or the DAG is paused; nothing was stored. `dropped`: ids of runs
 * that existed, ended or not. A route creates one run per value, ever.
 */
export async function moveSchedule(
  db: Database,
  from: ScheduleMark & Pick<ScheduleRow, "dagId" | "terms">,
  { received: heard, runs, state, to }: ScheduleMove,
): Promise<{ added: number; dropped: readonly string[] } | null> {
  const events = runs.flatMap(({ events = [], runId }) => events.map((event) => ({ runId, event })));
  const causes = causesOf(runs);
  const [, rows = []] = await db.pipeline([
    call(LOCK_DAG, from.dagId),
    call(
      MOVE,
      from.name,
      from.revision,
      from.position.tx,
      from.position.id,
      to.tx,
      to.id,
      JSON.stringify(state),
      heard,
      runs.map(({ runId }) => runId),
      runs.map(({ conf }) => JSON.stringify(conf)),
      from.terms.gather === undefined ? "signal" : "asset",
      runs.map(({ partition }) => partition ?? null),
      events.map(({ runId }) => runId),
      events.map(({ event }) => event),
      causes.map(({ runId }) => runId),
      causes.map(({ version }) => version),
    ),
  ]);
  const [{ added, moved }] = rows as [{ moved: number; added: string[] }];
  if (moved === 0) return null;
  const made = new Set(added);
  // Of two firings of one page for the same run, the first has created it.
  return { added: added.length, dropped: runs.flatMap(({ runId }) => (made.delete(runId) ? [] : [runId])) };
}

/** Of two firings of one page for the same run, only the first creates it. */
function causesOf(runs: ScheduleMove["runs"]): { readonly runId: string; readonly version: number }[] {
  const firsts = new Map<string, ScheduleRun>();
  for (const run of runs) if (!firsts.has(run.runId)) firsts.set(run.runId, run);
  return [...firsts.values()].flatMap(({ causes = [], runId }) =>
    causes.map((version) => ({ runId, version })),
  );
}

export async function passSchedules(
  db: Database,
  idle: readonly Pick<ScheduleMark, "name" | "revision">[],
  to: LogPosition,
  everyMs: number,
): Promise<void> {
  if (idle.length === 0) return;
  const revisions = idle.map(({ revision }) => revision);
  await db.pipeline([
    call(
      PASS,
      idle.map(({ name }) => name),
      revisions,
      to.tx,
      to.id,
      everyMs,
    ),
  ]);
}

/** The namespaces and keys of signals after a position, in these namespaces (null: all). */
export async function scanLog(
  db: Database,
  after: LogPosition,
  namespaces: readonly string[] | null,
  limit: number,
): Promise<ScannedLog> {
  const { end, held, names } = await readFar(db, async (upTo) => {
    const [found = []] = await db.pipeline([
      call(SCAN, after.tx, after.id, namespaces, limit, upTo?.tx ?? null, upTo?.id ?? null),
    ]);
    const rows = found as (SentName & LogEndRow)[];
    const names = rows.filter(({ id }) => id !== null);
    return { names, ...endOf(rows) };
  });
  const head = laterPosition(after, end);
  const last = names.length === limit ? names.at(-1) : undefined;
  return { names, position: last ? { tx: last.tx, id: last.id } : head, head, isHeld: held !== null };
}

function scheduleOf(row: Row): ScheduleRow {
  return {
    name: row.name,
    dagId: row.dag_id,
    revision: row.revision,
    terms: row.schedule,
    position: { tx: row.tx, id: row.signal_id },
    afterVersion: row.after_version,
    state: row.state,
    isAwake: row.is_awake,
  };
}
