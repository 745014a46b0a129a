/**
 * Firing: all waits on the trigger get their outcome and the trigger's row is deleted, in one transaction. Only the owner
 * of a run changes task states; it finds the fired waits of its runs afterwards.
 *
 * The trigger is locked first, in a separate statement. The firing statement sees every subscriber from before the lock;
 * a later subscriber waits for the lock, finds the row deleted and creates another. A wait that its owner ended meanwhile
 * (timeout, clear) no longer references the trigger when its lock is granted, and is skipped.
 *
 * Concurrent fires: the second waits for the lock and then finds no row. Lost reply: a second fire finds no row: the
 * event is already stored.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { ErrorFacts, TriggerEnding } from "@tradewind/sdk/program";
import { call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { LOCK_TRIGGERS } from "./triggers.ts";

/** As stored with each wait. */
export type WaitOutcome =
  | {
      readonly kind: "event";
      readonly payload: Json;
      /** Webhook calls by name: see engine-conditions.ts. */
      readonly calls?: Readonly<Record<string, number>>;
      /** The versions of its signals: see signal-effects.ts. */
      readonly signals?: readonly number[];
    }
  | { readonly kind: "ending"; readonly ending: TriggerEnding }
  | { readonly kind: "failed"; readonly error: ErrorFacts };

export interface Fire {
  readonly id: number;
  readonly outcome: WaitOutcome;
}

/** A wait that was ended by a fire. */
export interface FiredWait {
  readonly attempt: string;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
}

/** Skips triggers that another triggerer has locked to fire. The trigger of a schedule has no waits; see event-runs. */
const LOCK_DUE = statement(
  "trigger-lock-due",
  `SELECT id, wake_at, timed FROM trigger WHERE timed IS NOT NULL AND dag_id IS NULL AND wake_at <= now()
   ORDER BY wake_at LIMIT $1 FOR UPDATE SKIP LOCKED`,
);

/**
 * $1 null: timed triggers, which have no owner. The waits are locked in the common order. The signal has no payload: it
 * may be large, and each wait stores it. Counted by grouping: a join of 10,000 triggers to their waits would be a nested
 * loop, the only join of a pipeline.
 */
const FIRE = statement(
  "trigger-fire",
  `WITH due AS (
     SELECT t.id, t.kind, u.outcome, u.told FROM unnest($2::bigint[], $3::json[], $4::text[]) AS u(id, outcome, told)
     CROSS JOIN LATERAL (SELECT * FROM trigger WHERE id = u.id OFFSET 0) AS t
     WHERE t.dag_id IS NULL
       AND CASE WHEN $1::bigint IS NULL THEN t.timed IS NOT NULL ELSE t.owner_job = $1 OR t.standby_job = $1 END
   ), waiting AS (
     SELECT d.attempt, d.waits_on, due.outcome FROM due JOIN deferral d ON d.waits_on = due.id
     WHERE d.fired_at IS NULL ORDER BY d.attempt FOR NO KEY UPDATE OF d
   ), fired AS (
     UPDATE deferral d SET fired_at = now(), outcome = w.outcome, waits_on = NULL
     FROM waiting w WHERE d.attempt = w.attempt
     RETURNING w.waits_on AS id, d.attempt, d.dag_run_id, d.task_id, d.map_index, d.try_number
   ), gone AS (
     DELETE FROM trigger t USING due WHERE t.id = due.id RETURNING t.id
   ), told AS (
     INSERT INTO signal (namespace, key, value, sender)
     SELECT 'trigger', max(t.kind) || '/' || t.id, json_build_object('trigger', t.id, 'kind', max(t.kind),
              'outcome', max(t.told), 'waits', sum(t.waits)), coalesce('triggerer:' || $1::bigint, 'engine')
     FROM (SELECT id, kind, told, 0 AS waits FROM due UNION ALL SELECT id, NULL, NULL, 1 FROM fired) AS t GROUP BY t.id
   )
   SELECT id, NULL::uuid AS attempt, NULL::bigint AS dag_run_id, NULL::text AS task_id, NULL::integer AS map_index,
          NULL::integer AS try_number FROM gone
   UNION ALL SELECT * FROM fired`,
);

/** By key, as in a batch of the scheduler: a plan made while the tables were small would scan them. */
const BY_KEY = statement(
  "trigger-by-key",
  `SELECT set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
          set_config('enable_mergejoin', 'off', true)`,
);

interface FiredRow extends Omit<FiredWait, "attempt"> {
  readonly id: number;
  readonly attempt: string | null;
}

export interface Fired {
  /** The waits that each trigger ended; a missing trigger no longer belongs to this job: nothing was stored. */
  readonly fired: ReadonlyMap<number, readonly FiredWait[]>;
  /** Triggers that no longer exist: fired before, or without waits. */
  readonly gone: ReadonlySet<number>;
}

/** Fires those of the triggers that the job still owns. */
export async function fireTriggers(db: Database, jobId: number, fires: readonly Fire[]): Promise<Fired> {
  if (fires.length === 0) return { fired: new Map(), gone: new Set() };
  const ids = fires.map(({ id }) => id);
  const outcomes = fires.map(({ outcome }) => JSON.stringify(outcome));
  const kinds = fires.map(({ outcome }) => outcome.kind);
  const [found = [], rows] = await db.pipeline([
    call(LOCK_TRIGGERS, ids),
    call(FIRE, jobId, ids, outcomes, kinds),
  ]);
  const gone = new Set(ids);
  for (const { id } of found as { id: number }[]) gone.delete(id);
  return { fired: byTrigger(rows as FiredRow[]), gone };
}

/** Fires due timed triggers, the longest overdue first; call again while it returns `limit` triggers. */
export function fireDueTimed(
  db: Database,
  limit: number,
): Promise<{ triggers: number; waits: number; dagRunIds: number[] }> {
  return db.transaction(async (tx) => {
    const due = await tx.rows<{ id: number; wake_at: Date; timed: { payload: Json } }>(LOCK_DUE, [limit]);
    if (due.length === 0) return { triggers: 0, waits: 0, dagRunIds: [] };
    await tx.rows(BY_KEY);
    const outcomes = due.map(({ timed, wake_at }) =>
      // Without a payload, the time itself is the event.
      JSON.stringify({ kind: "event", payload: timed.payload ?? wake_at.toISOString() }),
    );
    const rows = await tx.rows<FiredRow>(FIRE, [
      null,
      due.map(({ id }) => id),
      outcomes,
      due.map(() => "event"),
    ]);
    const waits = rows.filter(({ attempt }) => attempt !== null);
    return {
      triggers: due.length,
      waits: waits.length,
      dagRunIds: [...new Set(waits.map((wait) => wait.dag_run_id))],
    };
  });
}

function byTrigger(rows: readonly FiredRow[]): Map<number, FiredWait[]> {
  const fired = new Map<number, FiredWait[]>();
  for (const { id, attempt, ...wait } of rows) {
    const waits = fired.get(id) ?? [];
    if (attempt !== null) waits.push({ attempt, ...wait });
    fired.set(id, waits);
  }
  return fired;
}
