/**
 * Schedules on events: every event of a DAG's trigger creates one run of the DAG. The job that runs the trigger stores
 * the run and then acknowledges the event at its source.
 *
 * The run id identifies the event. With a key, the id is derived from it: a duplicate from the second replica, or a
 * redelivery after a crash, finds the existing run. Without a key the id is generated once, when the event arrives, and
 * kept while storing is retried: if the reply to a commit is lost, the retry finds the run. Crash before the commit: the
 * event was not acknowledged and is delivered again. For a state that a built-in trigger observes, the event is stored
 * with its run: after a restart the trigger finds it and does not report it again.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import { call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { LOCK_SCHEDULE_KEYS, publishRuns, publishScheduleTriggers } from "../task/state-signals.ts";
import { canonicalJson } from "../trigger/trigger-fingerprint.ts";
import { IS_BEFORE_END } from "./schedule-triggers.ts";

export interface EventRun {
  readonly triggerId: number;
  readonly runId: string;
  readonly payload: Json;
  /** Stored for the next triggerer that runs the trigger (trigger_memory). */
  readonly isRemembered?: boolean;
}

export interface StoredEventRun {
  readonly triggerId: number;
  readonly runId: string;
  /** null: the run existed already. */
  readonly dagRunId: number | null;
}

/** Lock order: DAGs before triggers. Waits for a DAG that is being deleted. */
const LOCK_DAGS = statement(
  "event-lock-dags",
  `SELECT 1 FROM dag WHERE dag_id = ANY(ARRAY(SELECT dag_id FROM trigger WHERE id = ANY($1::bigint[])))
   ORDER BY dag_id FOR KEY SHARE`,
);

/** Blocks a takeover of the trigger, but not the other replica. All transactions lock triggers in this order. */
const LOCK_TRIGGERS = statement(
  "event-lock-triggers",
  "SELECT id FROM trigger WHERE id = ANY($1::bigint[]) ORDER BY fingerprint FOR SHARE",
);

const SENDER = "'triggerer:' || $1::bigint";

const STORE = statement(
  "event-store-runs",
  `WITH owned AS (
     SELECT u.at, t.id, t.dag_id, d.version_id, u.run, u.conf, u.remembered
     FROM unnest($2::bigint[], $3::text[], $4::json[], $5::boolean[]) WITH ORDINALITY AS u(id, run, conf, remembered, at)
     JOIN trigger t ON t.id = u.id JOIN dag d ON d.dag_id = t.dag_id JOIN dag_version v ON v.id = d.version_id
     WHERE (t.owner_job = $1 OR t.standby_job = $1) AND ${IS_BEFORE_END}
   ), added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, conf, version_id, triggered_by)
     SELECT o.dag_id, o.run, 'signal_triggered', o.conf, o.version_id, 'trigger' FROM owned o ORDER BY o.at
     ON CONFLICT DO NOTHING RETURNING id, dag_id, run_id, state
   ), remembered AS (
     INSERT INTO trigger_memory (trigger_id, event)
     SELECT DISTINCT ON (o.id) o.id, o.conf->'event' FROM owned o WHERE o.remembered ORDER BY o.id, o.at DESC
     ON CONFLICT (trigger_id) DO UPDATE SET event = EXCLUDED.event
   ), caused AS (
     -- The id of a webhook call's run names its signal (webhookRunId).
     INSERT INTO signal_effect (signal_id, dag_run_id, kind)
     SELECT substring(a.run_id FROM '^event__webhook_([0-9]+)$')::bigint, a.id, 'create' FROM added a
     WHERE a.run_id ~ '^event__webhook_[0-9]+$'
   ), told AS (${publishRuns("added", SENDER)}
   ), fired AS (${publishScheduleTriggers(
     // A DAG has one schedule, and its trigger is locked.
     "(SELECT a.dag_id, a.run_id, t.id, t.kind FROM added a JOIN trigger t ON t.dag_id = a.dag_id)",
     "event",
     SENDER,
   )}
   )
   SELECT o.id AS trigger_id, o.dag_id, o.run AS run_id, NULL::bigint AS dag_run_id FROM owned o
   UNION ALL SELECT NULL, a.dag_id, a.run_id, a.id FROM added a`,
);

/**
 * Creates runs from the events of triggers that this job still runs, in order. An event that is not in the result belongs
 * to another job now, or came after the end of its DAG: it was not stored, and must not be acknowledged.
 */
export async function storeEventRuns(
  db: Database,
  jobId: number,
  events: readonly EventRun[],
): Promise<StoredEventRun[]> {
  if (events.length === 0) return [];
  const ids = [...new Set(events.map(({ triggerId }) => triggerId))];
  const [, , , rows] = await db.pipeline([
    call(LOCK_DAGS, ids),
    call(LOCK_TRIGGERS, ids),
    call(LOCK_SCHEDULE_KEYS, ids),
    call(
      STORE,
      jobId,
      events.map(({ triggerId }) => triggerId),
      events.map(({ runId }) => runId),
      events.map(({ payload }) => JSON.stringify({ event: payload })),
      events.map(({ isRemembered }) => isRemembered ?? false),
    ),
  ]);
  const stored = rows as StoredRow[];
  const key = (row: StoredRow): string => `${row.dag_id}\n${row.run_id}`;
  const added = new Map(
    stored.filter((row) => row.trigger_id === null).map((row) => [key(row), row.dag_run_id]),
  );
  return stored.flatMap((row) =>
    row.trigger_id === null
      ? []
      : [{ triggerId: row.trigger_id, runId: row.run_id, dagRunId: added.get(key(row)) ?? null }],
  );
}

interface StoredRow {
  /** null: the run is new. */
  readonly trigger_id: number | null;
  readonly dag_id: string;
  readonly run_id: string;
  readonly dag_run_id: number | null;
}

/** The run id of an event: see above. Equal payloads of a replicated trigger without keys are one event. */
export function eventRunId(event: {
  readonly trigger: { readonly kind: string; readonly args: Json; readonly replicas: 1 | 2 };
  readonly key: string | null;
  readonly payload: Json;
  readonly at: Date;
}): string {
  const { trigger, key, payload, at } = event;
  if (key === null && trigger.replicas === 1)
    return `event__${at.toISOString()}_${randomBytes(5).toString("hex")}`;
  // Includes the trigger's arguments, because another trigger may use the same keys for other events; excludes its code.
  const identity = [trigger.kind, seenBy(trigger), key === null ? { payload } : key];
  return `event__${createHash("sha256").update(canonicalJson(identity)).digest("hex").slice(0, 24)}`;
}

/** The poll interval of built-in triggers is not part of the identity. */
function seenBy({ args, kind }: { readonly kind: string; readonly args: Json }): Json {
  if (!kind.startsWith("tradewind.") || typeof args !== "object" || args === null || Array.isArray(args))
    return args;
  const { intervalMs: _, ...seen } = args as { readonly [name: string]: Json };
  return seen;
}

const FORGET = statement(
  "event-forget",
  `DELETE FROM trigger_memory WHERE trigger_id = ANY(ARRAY(
     SELECT id FROM trigger WHERE id = ANY($2::bigint[]) AND (owner_job = $1 OR standby_job = $1)
     ORDER BY fingerprint FOR SHARE))`,
);

/** The states that these triggers of the job reported have ended: the next occurrence is a new event. */
export async function forgetEvents(
  db: Database,
  jobId: number,
  triggerIds: readonly number[],
): Promise<void> {
  if (triggerIds.length > 0) await db.pipeline([call(FORGET, jobId, triggerIds)]);
}
