/**
 * Waits, as written and read by the owner of a run. The owner inserts a deferral, with its trigger, in the batch that
 * makes the instance deferred, and ends it in the batch that moves the instance on. In between, the triggerer that fires
 * the trigger sets `fired_at` and `outcome`, once (trigger-fire.ts).
 *
 * Concurrent fire and timeout: the batch that ends a wait by timeout requires that it has not fired. If it has, the batch
 * is rolled back (TW003), the run is read again, and the event counts. Concurrent subscribe and fire: both lock the
 * trigger's row first; a later subscriber finds the row deleted and creates it again, a later fire finds one more wait.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Call, Connection } from "../database/database.ts";
import { call, statement } from "../database/statement.ts";
import { INSERT_CANCELS } from "./wait-cancels.ts";

/** A wait that begins. Times are milliseconds of the database's clock. */
export interface DeferralWrite {
  readonly attempt: string;
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly name: string | null;
  readonly method: string | null;
  readonly kwargs: Json;
  readonly onTimeout: string;
  readonly onFailure: string;
  readonly timeoutAt: number | null;
  /** When the attempt became ready. */
  readonly scheduledAt: number | null;
  /** Data of its `onCancel`; null: it has none. */
  readonly onCancel: Json | null;
  readonly trigger: TriggerWrite;
}

export interface TriggerWrite {
  /** Hex. Waits with equal fingerprints share a trigger. */
  readonly fingerprint: string;
  readonly kind: string;
  readonly args: Json;
  readonly bundleHash: string | null;
  readonly queue: string;
  readonly replicas: number;
  /** The earliest time it can fire, absolute or relative to now; both null: immediately. */
  readonly wakeAt: number | null;
  readonly wakeAfterMs: number | null;
  readonly timed: { readonly payload: Json } | null;
}

/** A wait that ends. */
export interface WaitEnd {
  readonly attempt: string;
  readonly kind: "resumed" | "finished" | "timeout" | "cancelled";
  /** It must not have fired: the decision depends on it. */
  readonly mustBeUnfired: boolean;
  /** The task does not resume from it: its `onCancel` runs. */
  readonly isCancelled: boolean;
}

/**
 * In the order of fingerprints, the common lock order. A conflict locks the existing row. Each wait passes the earliest
 * time it can fire, and the earliest of all counts: the other waits can only learn of the event sooner.
 */
const SUBSCRIBE = statement(
  "deferral-subscribe",
  `INSERT INTO trigger (fingerprint, kind, args, bundle_hash, queue, replicas, wake_at, timed)
   SELECT decode(u.fingerprint, 'hex'), u.kind, u.args, u.bundle, u.queue, u.replicas,
          coalesce(to_timestamp(u.wake_at / 1000), now() + u.after_ms * interval '1 millisecond', now()), u.timed
   FROM unnest($1::text[], $2::text[], $3::json[], $4::text[], $5::text[], $6::smallint[], $7::float8[], $8::float8[],
               $9::json[]) AS u(fingerprint, kind, args, bundle, queue, replicas, wake_at, after_ms, timed)
   ORDER BY u.fingerprint
   ON CONFLICT (fingerprint) DO UPDATE SET wake_at = least(trigger.wake_at, EXCLUDED.wake_at)`,
);

const INSERT = statement(
  "deferral-insert",
  `INSERT INTO deferral (attempt, dag_run_id, task_id, map_index, try_number, trigger_id, waits_on, kind, name, method,
                         kwargs, on_timeout, on_failure, timeout_at, on_cancel, scheduled_at)
   SELECT u.attempt, u.run, u.task, u.map, u.try_number, t.id, t.id, t.kind, u.name, u.method, u.kwargs, u.on_timeout,
          u.on_failure, to_timestamp(u.timeout_at / 1000), u.on_cancel, to_timestamp(u.scheduled_at / 1000)
   FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::int[], $5::int[], $6::text[], $7::text[], $8::text[],
               $9::json[], $10::text[], $11::text[], $12::float8[], $13::json[], $14::float8[])
     AS u(attempt, run, task, map, try_number, fingerprint, name, method, kwargs, on_timeout, on_failure, timeout_at,
          on_cancel, scheduled_at)
   JOIN trigger t ON t.fingerprint = decode(u.fingerprint, 'hex')`,
);

/** In the order of attempts: a trigger that fires for many waits locks them in the same order. */
const END = statement(
  "deferral-end",
  `WITH locked AS (
     SELECT d.attempt, u.kind, u.is_cancelled FROM deferral d
     JOIN unnest($1::uuid[], $2::text[], $3::boolean[], $4::boolean[]) AS u(attempt, kind, unfired, is_cancelled)
       ON d.attempt = u.attempt
     WHERE d.ended_at IS NULL AND (NOT u.unfired OR d.fired_at IS NULL)
     ORDER BY d.attempt FOR NO KEY UPDATE OF d
   ), ended AS (
     UPDATE deferral d SET ended_at = now(), end_kind = locked.kind, waits_on = NULL,
       outcome = CASE WHEN locked.kind = 'timeout' THEN '{"kind":"timeout"}'::json ELSE d.outcome END
     FROM locked WHERE d.attempt = locked.attempt RETURNING d.*, locked.is_cancelled
   ), cancelled AS (
     ${INSERT_CANCELS}
   )
   SELECT tw_require(count(*) = cardinality($1::uuid[]), 'TW003', 'a wait moved on') FROM ended`,
);

/** The calls of a batch for waits; they follow the changes of instances. */
export function deferralCalls(begun: readonly DeferralWrite[], ended: readonly WaitEnd[]): Call[] {
  const calls: Call[] = [];
  if (begun.length > 0)
    calls.push(call(SUBSCRIBE, ...triggerValues(begun)), call(INSERT, ...deferralValues(begun)));
  if (ended.length > 0) {
    const kinds = ended.map((wait) => wait.kind);
    const unfired = ended.map((wait) => wait.mustBeUnfired);
    calls.push(
      call(
        END,
        ended.map((wait) => wait.attempt),
        kinds,
        unfired,
        ended.map((wait) => wait.isCancelled),
      ),
    );
  }
  return calls;
}

function triggerValues(begun: readonly DeferralWrite[]): unknown[] {
  const first = new Map<string, TriggerWrite>();
  for (const { trigger } of begun) {
    const other = first.get(trigger.fingerprint);
    // Without a time: immediately. (A time relative to now has its own fingerprint.)
    if (other === undefined || (trigger.wakeAt ?? 0) < (other.wakeAt ?? 0))
      first.set(trigger.fingerprint, trigger);
  }
  const triggers = [...first.values()];
  return [
    triggers.map((t) => t.fingerprint),
    triggers.map((t) => t.kind),
    triggers.map((t) => JSON.stringify(t.args)),
    triggers.map((t) => t.bundleHash),
    triggers.map((t) => t.queue),
    triggers.map((t) => t.replicas),
    triggers.map((t) => t.wakeAt),
    triggers.map((t) => t.wakeAfterMs),
    triggers.map((t) => (t.timed === null ? null : JSON.stringify(t.timed))),
  ];
}

function deferralValues(begun: readonly DeferralWrite[]): unknown[] {
  return [
    begun.map((d) => d.attempt),
    begun.map((d) => d.runId),
    begun.map((d) => d.taskId),
    begun.map((d) => d.mapIndex),
    begun.map((d) => d.tryNumber),
    begun.map((d) => d.trigger.fingerprint),
    begun.map((d) => d.name),
    begun.map((d) => d.method),
    begun.map((d) => JSON.stringify(d.kwargs)),
    begun.map((d) => d.onTimeout),
    begun.map((d) => d.onFailure),
    begun.map((d) => d.timeoutAt),
    begun.map((d) => (d.onCancel === null ? null : JSON.stringify(d.onCancel))),
    begun.map((d) => d.scheduledAt),
  ];
}

/** A fired wait whose outcome the run has not applied yet. */
export interface FiredDeferral {
  readonly attempt: string;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly name: string | null;
  readonly method: string | null;
  readonly kwargs: Json;
  readonly on_failure: "fail" | "resume";
  readonly fired_at: Date;
  readonly outcome: Json;
}

const FIRED = statement(
  "deferral-fired",
  `SELECT d.attempt, d.dag_run_id, d.task_id, d.map_index, d.name, d.method, d.kwargs, d.on_failure, d.fired_at, d.outcome
   FROM deferral d JOIN dag_run r ON r.id = d.dag_run_id
   WHERE d.fired_at IS NOT NULL AND d.ended_at IS NULL AND r.owner_job = $1 AND r.state = 'running'
   ORDER BY d.fired_at LIMIT $2`,
);

export function firedDeferrals(db: Connection, jobId: number, limit: number): Promise<FiredDeferral[]> {
  return db.rows<FiredDeferral>(FIRED, [jobId, limit]);
}

/** A wait from which a try resumes, by the attempt that waited. */
export interface ResumableWait {
  readonly attempt: string;
  readonly method: string | null;
  readonly kwargs: Json;
  readonly outcome: Json;
}

const RESUMABLE = statement(
  "deferral-resumable",
  "SELECT attempt, method, kwargs, outcome FROM deferral WHERE attempt = ANY($1)",
);

export function resumableWaits(db: Connection, attempts: readonly string[]): Promise<ResumableWait[]> {
  return attempts.length === 0 ? Promise.resolve([]) : db.rows<ResumableWait>(RESUMABLE, [attempts]);
}

/**
 * After an edit: ends the waits of instances that no longer wait. The commit wakes the triggerers, which delete triggers
 * without waits: a trigger must not be locked after a wait. Edits are rare, so the NOTIFY may be part of them, and no
 * caller can forget it.
 */
const CANCEL = statement(
  "deferral-cancel",
  `WITH locked AS (
     SELECT d.attempt FROM deferral d JOIN task_instance t
       ON t.dag_run_id = d.dag_run_id AND t.task_id = d.task_id AND t.map_index = d.map_index
     WHERE d.dag_run_id = ANY($1) AND d.ended_at IS NULL
       AND (t.state <> 'deferred' OR t.attempt IS DISTINCT FROM d.attempt)
     ORDER BY d.attempt FOR NO KEY UPDATE OF d
   ), ended AS (
     UPDATE deferral d SET ended_at = now(), end_kind = 'cancelled', waits_on = NULL
     FROM locked WHERE d.attempt = locked.attempt RETURNING d.*, true AS is_cancelled
   ), cancelled AS (
     ${INSERT_CANCELS} RETURNING 1
   )
   (SELECT pg_notify('tradewind', 'unwaited') FROM ended LIMIT 1)
   UNION ALL (SELECT pg_notify('tradewind', 'callbacks') FROM cancelled LIMIT 1)`,
);

export async function cancelWaits(tx: Connection, runIds: readonly number[]): Promise<void> {
  await tx.rows(CANCEL, [runIds]);
}
