/**
 * Cause and effect of signals: what a signal has caused, and which signals caused a run or a try. Every query reads a
 * limited number of rows, however long the log is and however much a signal has caused.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { EffectKind } from "./signal-effects.ts";
import { SIGNAL_COLUMNS, type SignalRow } from "./signals-read.ts";

export interface EffectRow {
  readonly kind: EffectKind;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_state: string;
  /** '': the run itself. */
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
  /** Of the try if it is known, else of the task or the run. */
  readonly state: string | null;
  /** When it happened: the run was created, the try queued, the wait fired. */
  readonly at: Date;
  /** When the run or the try started, or the task continued after its wait. */
  readonly started_at: Date | null;
  readonly wait_name: string | null;
  readonly waited_since: Date | null;
}

/** Index: signal_pkey. */
const SIGNAL = statement("chain-signal", `SELECT ${SIGNAL_COLUMNS} FROM signal s WHERE s.id = $1`);

/** Indexes: signal_effect_pkey, asset_event_run_event; the rest by primary keys and task_attempt_instance. */
const EFFECTS = statement(
  "chain-effects",
  `WITH effect AS (
     (SELECT dag_run_id, task_id, map_index, try_number, kind, attempt, created_at FROM signal_effect
      WHERE signal_id = $1 ORDER BY dag_run_id, task_id, map_index, try_number, kind LIMIT $2)
     UNION ALL
     (SELECT dag_run_id, '', -1, 0, 'create', NULL, NULL FROM asset_event_run
      WHERE event_id = $1 ORDER BY dag_run_id LIMIT $2)
   )
   SELECT e.kind, r.dag_id, r.run_id, r.state AS run_state, e.task_id, e.map_index, e.try_number,
     CASE WHEN e.task_id = '' THEN r.state WHEN t.try_number > e.try_number THEN coalesce(a.state, t.state)
          ELSE t.state END AS state,
     CASE WHEN e.kind = 'create' THEN r.created_at ELSE coalesce(d.fired_at, e.created_at) END AS at,
     CASE e.kind WHEN 'create' THEN r.started_at WHEN 'resume' THEN d.ended_at WHEN 'start' THEN coalesce(a.started_at, t.started_at)
          WHEN 'restart' THEN coalesce(a.started_at, t.started_at) END AS started_at,
     d.name AS wait_name, d.deferred_at AS waited_since
   FROM effect e CROSS JOIN LATERAL (SELECT x.* FROM dag_run x WHERE x.id = e.dag_run_id OFFSET 0) AS r
   LEFT JOIN LATERAL (SELECT i.* FROM task_instance i WHERE e.task_id <> '' AND i.dag_run_id = e.dag_run_id
                      AND i.task_id = e.task_id AND i.map_index = e.map_index OFFSET 0) AS t ON true
   LEFT JOIN LATERAL (SELECT x.state, x.started_at FROM task_attempt x WHERE e.task_id <> '' AND x.dag_run_id = e.dag_run_id
                      AND x.task_id = e.task_id AND x.map_index = e.map_index AND x.try_number = e.try_number
                      ORDER BY x.dag_run_id, x.task_id, x.map_index, x.try_number LIMIT 1) AS a ON true
   LEFT JOIN LATERAL (SELECT w.* FROM deferral w WHERE w.attempt = e.attempt OFFSET 0) AS d ON true
   ORDER BY at, r.dag_id, r.run_id, e.task_id, e.map_index LIMIT $2`,
);

/** The effects of a signal, the earliest first; of more than `limit`, those of the earliest runs. */
export function effectsOf(db: Connection, version: number, limit: number): Promise<EffectRow[]> {
  return db.rows<EffectRow>(EFFECTS, [version, limit]);
}

export function findSignal(db: Connection, version: number): Promise<SignalRow | undefined> {
  return db.one<SignalRow>(SIGNAL, [version]);
}

/** The number of effects of a signal, by what they are. */
interface EffectCounts {
  readonly id: number;
  readonly runs: number;
  readonly tasks: number;
  readonly dead_letters: number;
}

const COUNTS = statement(
  "chain-counts",
  `SELECT u.id, e.runs + r.runs AS runs, e.tasks, d.letters AS dead_letters
   FROM unnest($1::bigint[]) AS u(id)
   CROSS JOIN LATERAL (
     SELECT count(*) FILTER (WHERE kind IN ('create', 'close')) AS runs,
            count(*) FILTER (WHERE kind NOT IN ('create', 'close')) AS tasks
     FROM (SELECT kind FROM signal_effect WHERE signal_id = u.id LIMIT $2) AS e) AS e
   CROSS JOIN LATERAL (
     SELECT count(*) AS runs FROM (SELECT FROM asset_event_run WHERE event_id = u.id LIMIT $2) AS r) AS r
   CROSS JOIN LATERAL (
     SELECT count(*) AS letters FROM (SELECT FROM signal_dead_letter WHERE signal_id = u.id LIMIT $2) AS d) AS d`,
);

/** Of each signal, at most `limit` effects of each kind are counted. */
export async function countEffects(
  db: Connection,
  versions: readonly number[],
  limit: number,
): Promise<Map<number, EffectCounts>> {
  const rows = versions.length === 0 ? [] : await db.rows<EffectCounts>(COUNTS, [versions, limit]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** A named listener, and where it stands with a signal; or a dead letter of it. */
export interface RecipientRow {
  readonly name: string;
  readonly host: string | null;
  /** null: a dead letter, possibly of a task's `onSignal`. */
  readonly filter: Json;
  /** waiting: its position is before the signal. */
  readonly state: "received" | "waiting" | "retrying" | "dead";
  readonly error: string | null;
  readonly dead_letter_id: number | null;
}

/** Indexes: signal_dead_letter_signal and the primary keys of few small rows. Filters are evaluated by the caller. */
const RECIPIENTS = statement(
  "chain-recipients",
  `(SELECT d.listener AS name, NULL AS host, NULL::json AS filter, 'dead' AS state, d.error, d.id AS dead_letter_id
    FROM signal_dead_letter d WHERE d.signal_id = $1 ORDER BY d.id LIMIT $2)
   UNION ALL
   (SELECT l.name, l.host, l.filter,
      CASE WHEN (l.tx, l.signal_id) < (s.tx, s.id) THEN 'waiting' WHEN r.signal_id <= s.id THEN 'retrying' ELSE 'received' END,
      r.error, NULL
    FROM signal s JOIN signal_listener l ON l.dag_id IS NULL
    LEFT JOIN signal_retry r ON r.listener = l.name AND r.namespace = s.namespace AND r.key = s.key
    WHERE s.id = $1
      AND (l.after_version IS NULL OR s.id > l.after_version) AND (l.since IS NULL OR s.created_at >= l.since)
      AND NOT EXISTS (SELECT FROM signal_dead_letter d WHERE d.signal_id = s.id AND d.listener = l.name)
    ORDER BY l.name LIMIT $2)`,
);

export function recipientsOf(db: Connection, version: number, limit: number): Promise<RecipientRow[]> {
  return db.rows<RecipientRow>(RECIPIENTS, [version, limit]);
}

/** A signal that caused a run or a try. Its name is null if retention has deleted it. */
export interface CauseRow {
  readonly id: number;
  readonly kind: EffectKind;
  readonly try_number: number;
  readonly map_index: number;
  readonly at: Date;
  readonly namespace: string | null;
  readonly key: string | null;
  readonly sender: string | null;
  readonly sent_at: Date | null;
}

/** Index: signal_effect_run, read backwards. $4: tries up to this one. */
const CAUSES = statement(
  "chain-causes",
  `SELECT e.signal_id AS id, e.kind, e.try_number, e.map_index, e.created_at AS at, s.namespace, s.key, s.sender,
          s.created_at AS sent_at
   FROM (SELECT * FROM signal_effect c WHERE c.dag_run_id = $1 AND c.task_id = $2 AND c.map_index = $3 AND c.try_number <= $4
         ORDER BY c.dag_run_id DESC, c.task_id DESC, c.map_index DESC, c.try_number DESC LIMIT $5) AS e
   LEFT JOIN LATERAL (SELECT x.* FROM signal x WHERE x.id = e.signal_id OFFSET 0) AS s ON true
   ORDER BY e.try_number DESC, e.created_at, e.signal_id`,
);

const ASSET_CAUSES = statement(
  "chain-asset-causes",
  `SELECT v.id, 'create' AS kind, 0 AS try_number, -1 AS map_index, r.created_at AS at, 'asset' AS namespace, a.uri AS key,
          v.sender, v.created_at AS sent_at
   FROM (SELECT * FROM asset_event_run WHERE dag_run_id = $1 ORDER BY event_id LIMIT $2) AS e
   JOIN dag_run r ON r.id = e.dag_run_id JOIN asset_event v ON v.id = e.event_id JOIN asset a ON a.id = v.asset_id
   ORDER BY v.id`,
);

interface CausesQuery {
  readonly dagRunId: number;
  /** null: the run itself. */
  readonly task: { readonly taskId: string; readonly mapIndex: number; readonly upToTry: number } | null;
  readonly limit: number;
}

/** The signals that caused a run, or the latest tries of a task of it. */
export async function causesOf(db: Connection, { dagRunId, limit, task }: CausesQuery): Promise<CauseRow[]> {
  if (task !== null)
    return db.rows<CauseRow>(CAUSES, [dagRunId, task.taskId, task.mapIndex, task.upToTry, limit]);
  const rows = await db.rows<CauseRow>(CAUSES, [dagRunId, "", -1, 0, limit]);
  return [...rows, ...(await db.rows<CauseRow>(ASSET_CAUSES, [dagRunId, limit]))].slice(0, limit);
}
