/** The drive of a run: its position in the signal log, its rule state, and its pending manual commands. */
import type { Json } from "@tradewind/sdk/manifest";
import type { StartChanges } from "../../model/index.ts";
import { type Call, type Connection, call } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { type LogPosition, micros } from "../signal/signals-position.ts";
import type { SignalRow } from "../signal/signals-read.ts";
import { startCalls } from "./run-starts.ts";

export interface DriveRow {
  readonly dag_run_id: number;
  readonly tx: string;
  readonly signal_id: number;
  readonly since: Date;
  readonly since_micros: number;
  readonly ahead: AheadPositions | null;
  readonly state: Json;
  readonly manual_commands: readonly ManualCommand[];
}

/** Readers of the log within a run that are ahead of the run's position: its rules, and the `onSignal` of tasks. */
export interface AheadPositions {
  readonly rules?: LogPosition;
  readonly tasks?: Readonly<Record<string, LogPosition>>;
}

/** A manual command. `taskId` null: close the run. */
export interface ManualCommand {
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
  readonly by: string;
}

export interface DriveWrite {
  readonly runId: number;
  readonly position: LogPosition;
  readonly ahead: AheadPositions | null;
  /** null: unchanged. */
  readonly state: Json | null;
  readonly starts: readonly StartChanges[];
}

/**
 * The position starts when the run was queued: a caller may send signals to a run as soon as it is created. Transactions
 * that are open now may hold signals of that time at positions that are not visible yet, hence the snapshot's xmin.
 */
const OPEN = statement(
  "drive-open",
  `INSERT INTO run_drive (dag_run_id, tx, signal_id, since)
   SELECT r.id, least((SELECT min(tx) FROM (SELECT s.tx FROM signal s WHERE s.created_at >= r.queued_at OFFSET 0) AS later),
                      pg_snapshot_xmin(pg_current_snapshot())), 0, r.queued_at
   FROM dag_run r WHERE r.id = ANY($1) ON CONFLICT DO NOTHING`,
);

const LOAD = statement(
  "drive-load",
  `SELECT dag_run_id, tx, signal_id, since, ${micros("since")} AS since_micros, ahead, state, manual_commands
   FROM run_drive WHERE dag_run_id = ANY($1)`,
);

const STORE = statement(
  "drive-store",
  `UPDATE run_drive d SET tx = u.tx, signal_id = u.signal_id, ahead = u.ahead, state = coalesce(u.state, d.state),
     manual_commands = '[]', updated_at = now()
   FROM unnest($1::bigint[], $2::xid8[], $3::bigint[], $4::json[], $5::json[]) AS u(run, tx, signal_id, ahead, state)
   WHERE d.dag_run_id = u.run`,
);

const CLOSE = statement("drive-close", "DELETE FROM run_drive WHERE dag_run_id = ANY($1)");

/** Creates missing rows. The start depends on the run only, not on which process loads it first. */
export async function openDrives(db: Connection, runIds: readonly number[]): Promise<void> {
  if (runIds.length > 0) await db.rows(OPEN, [runIds]);
}

export function loadDrives(db: Connection, runIds: readonly number[]): Promise<DriveRow[]> {
  return db.rows<DriveRow>(LOAD, [runIds]);
}

/** An ended instance that starts again: its output is deleted. */
export interface AgainWrite {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
}

/** A signal that the `onSignal` of a task failed to process. */
export interface DeadLetterWrite {
  readonly listener: string;
  readonly signalId: number;
  /** null: a retry succeeded. The dead letter is deleted in the transaction of its effect. */
  readonly error: string | null;
  readonly attempts: number;
  /** True for a dead letter that was retried; its signal may no longer be in the log. */
  readonly isRetried?: boolean;
}

const AGAIN = statement(
  "drive-again",
  `DELETE FROM xcom x USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   WHERE x.dag_run_id = u.run AND x.task_id = u.task AND x.map_index = u.map`,
);

const BURY = statement(
  "drive-bury",
  `INSERT INTO signal_dead_letter (listener, signal_id, tx, namespace, key, value, sender, sent_at, error, attempts)
   SELECT g.listener, s.id, s.tx, s.namespace, s.key, s.value, s.sender, s.created_at, g.error, g.attempts
   FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[]) AS g(listener, id, error, attempts)
   JOIN signal s ON s.id = g.id
   ON CONFLICT (listener, signal_id) DO UPDATE SET error = excluded.error, attempts = excluded.attempts`,
);

const BURY_AGAIN = statement(
  "drive-bury-again",
  `UPDATE signal_dead_letter d SET error = g.error, attempts = d.attempts + g.attempts, retry_at = NULL
   FROM unnest($1::text[], $2::bigint[], $3::text[], $4::int[]) AS g(listener, id, error, attempts)
   WHERE d.listener = g.listener AND d.signal_id = g.id`,
);

const DIG_UP = statement(
  "drive-dig-up",
  `DELETE FROM signal_dead_letter d USING unnest($1::text[], $2::bigint[]) AS g(listener, id)
   WHERE d.listener = g.listener AND d.signal_id = g.id`,
);

/** Index: signal_dead_letter_retry. */
const RETRIED = statement(
  "drive-retried-letters",
  `SELECT listener, signal_id AS id, tx, namespace, key, value, sender, sent_at AS created_at FROM signal_dead_letter
   WHERE listener = ANY($1::text[]) AND retry_at IS NOT NULL ORDER BY tx, signal_id`,
);

/** A dead letter that its task is to process once more. */
export interface RetriedLetter extends SignalRow {
  readonly listener: string;
}

/** In the order of their signals. Setting `retry_at` raises the run's generation: its owner reloads the run. */
export async function loadRetriedLetters(
  db: Connection,
  listeners: readonly string[],
): Promise<RetriedLetter[]> {
  return listeners.length === 0 ? [] : await db.rows<RetriedLetter>(RETRIED, [listeners]);
}

/**
 * The calls of a batch for signal-driven runs; none for other runs. They follow the calls that store outputs: an instance
 * that ends and starts again in one batch has no output; the object of a large output has no reference and is removed.
 */
export function drivenCalls({
  again,
  deadLetters,
  drives,
  ends,
}: {
  readonly again: readonly AgainWrite[];
  readonly deadLetters: readonly DeadLetterWrite[];
  readonly drives: readonly DriveWrite[];
  readonly ends: readonly { readonly runId: number }[];
}): Call[] {
  const calls: Call[] = [];
  const ended = new Set(ends.map(({ runId }) => runId));
  const over = drives.filter(({ runId }) => ended.has(runId)).map(({ runId }) => runId);
  const open = drives.filter(({ runId }) => !ended.has(runId));
  if (open.length > 0) calls.push(storeDrives(open), ...startCalls(open));
  if (over.length > 0) calls.push(closeDrives(over));
  if (again.length > 0)
    calls.push(
      call(
        AGAIN,
        again.map(({ runId }) => runId),
        again.map(({ taskId }) => taskId),
        again.map(({ mapIndex }) => mapIndex),
      ),
    );
  return [...calls, ...letterCalls(deadLetters)];
}

function letterCalls(letters: readonly DeadLetterWrite[]): Call[] {
  const failed = letters.filter(({ error }) => error !== null);
  const names = (of: readonly DeadLetterWrite[]) => [
    of.map(({ listener }) => listener),
    of.map(({ signalId }) => signalId),
  ];
  const terms = (of: readonly DeadLetterWrite[]) => [
    ...names(of),
    of.map(({ error }) => error?.replaceAll("\u0000", "") ?? ""),
    of.map(({ attempts }) => attempts),
  ];
  const buried = failed.filter(({ isRetried }) => !isRetried);
  const again = failed.filter(({ isRetried }) => isRetried);
  const done = letters.filter(({ error }) => error === null);
  return [
    ...(buried.length > 0 ? [call(BURY, ...terms(buried))] : []),
    ...(again.length > 0 ? [call(BURY_AGAIN, ...terms(again))] : []),
    ...(done.length > 0 ? [call(DIG_UP, ...names(done))] : []),
  ];
}

function storeDrives(drives: readonly DriveWrite[]): Call {
  return call(
    STORE,
    drives.map(({ runId }) => runId),
    drives.map(({ position }) => position.tx),
    drives.map(({ position }) => position.id),
    drives.map(({ ahead }) => (ahead === null ? null : JSON.stringify(ahead))),
    drives.map(({ state }) => (state === null ? null : JSON.stringify(state))),
  );
}

/** Called when the runs end. A run that is cleared later receives signals from then on. */
export function closeDrives(runIds: readonly number[]): Call {
  return call(CLOSE, runIds);
}

const OPEN_NOW = statement(
  "drive-open-now",
  `INSERT INTO run_drive (dag_run_id, tx, signal_id, since)
   VALUES ($1, pg_snapshot_xmin(pg_current_snapshot()), 0, now()) ON CONFLICT DO NOTHING RETURNING 1`,
);

/** For a run without a drive: it receives the signals of this transaction. true: its owner has to reload the run. */
export async function openDriveNow(tx: Connection, runId: number): Promise<boolean> {
  return (await tx.rows(OPEN_NOW, [runId])).length > 0;
}

const ADD_ORDER = statement(
  "drive-add-order",
  "UPDATE run_drive SET manual_commands = (manual_commands::jsonb || $2::jsonb)::json, updated_at = now() WHERE dag_run_id = $1",
);

/** The caller has locked the run and raises its generation in the same transaction. */
export async function addManualCommand(tx: Connection, runId: number, order: ManualCommand): Promise<void> {
  await tx.rows(ADD_ORDER, [runId, JSON.stringify(order)]);
}
