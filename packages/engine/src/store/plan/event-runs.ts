/**
 * Schedules made of events: every event of a DAG's trigger is one run of the DAG. The run is stored in the name of the
 * job that runs the trigger; only then is the event acknowledged to where it came from.
 *
 * An event is known by its run's id. With a key, the id is made from it: the same event again, from the second replica
 * or delivered once more after a crash, finds its run there. Without a key the id is made once, when the event arrives,
 * and kept for as long as its storing has to be repeated: the answer to a commit may get lost, and the repetition finds
 * the run. Died before the commit: the event was not acknowledged and comes again. Of a state that a built-in trigger
 * looks at, the event is remembered with its run: a start after the commit finds it there, and does not tell it again.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import { call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { LOCK_SCHEDULE_KEYS, tellRuns, tellScheduleTriggers } from "../task/state-signals.ts";
import { canonicalJson } from "../trigger/trigger-fingerprint.ts";
import { IS_BEFORE_END } from "./schedule-triggers.ts";

export interface EventRun {
  readonly triggerId: number;
  readonly runId: string;
  readonly payload: Json;
  /** Whoever runs the trigger next is told of it (trigger_memory). */
  readonly isRemembered?: boolean;
}

export interface StoredEventRun {
  readonly triggerId: number;
  readonly runId: string;
  /** null: there was such a run already. */
  readonly dagRunId: number | null;
}

/** The order of locks: DAGs before triggers. A DAG that is just being deleted is waited for. */
const LOCK_DAGS = statement(
  "event-lock-dags",
  `SELECT 1 FROM dag WHERE dag_id = ANY(ARRAY(SELECT dag_id FROM trigger WHERE id = ANY($1::bigint[])))
   ORDER BY dag_id FOR KEY SHARE`,
);

/** Whoever would take the trigger over waits; the other replica does not. In the order in which all lock them. */
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
   ), told AS (${tellRuns("added", SENDER)}
   ), fired AS (${tellScheduleTriggers(
     // A DAG has one schedule, and its trigger is the one that is locked.
     "(SELECT a.dag_id, a.run_id, t.id, t.kind FROM added a JOIN trigger t ON t.dag_id = a.dag_id)",
     "event",
     SENDER,
   )}
   )
   SELECT o.id AS trigger_id, o.dag_id, o.run AS run_id, NULL::bigint AS dag_run_id FROM owned o
   UNION ALL SELECT NULL, a.dag_id, a.run_id, a.id FROM added a`,
);

/**
 * Events of triggers that are still this job's become runs, in their order. What is not in the answer belongs to
 * somebody else now, or came after the end of its DAG: it was not stored, and must not be acknowledged.
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
  /** null: a run that is new. */
  readonly trigger_id: number | null;
  readonly dag_id: string;
  readonly run_id: string;
  readonly dag_run_id: number | null;
}

/** What an event is known by: see above. Equal payloads of a replicated trigger without keys are one event. */
export function eventRunId(event: {
  readonly trigger: { readonly kind: string; readonly args: Json; readonly replicas: 1 | 2 };
  readonly key: string | null;
  readonly payload: Json;
  readonly at: Date;
}): string {
  const { trigger, key, payload, at } = event;
  if (key === null && trigger.replicas === 1)
    return `event__${at.toISOString()}_${randomBytes(5).toString("hex")}`;
  // The trigger belongs to it: another one that uses the same keys tells of other things. Its code does not.
  const identity = [trigger.kind, seenBy(trigger), key === null ? { payload } : key];
  return `event__${createHash("sha256").update(canonicalJson(identity)).digest("hex").slice(0, 24)}`;
}

/** How often the engine's own triggers look changes nothing of what they see. */
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

/** What these triggers of the job have told of has ceased: when it comes about again, it is another event. */
export async function forgetEvents(
  db: Database,
  jobId: number,
  triggerIds: readonly number[],
): Promise<void> {
  if (triggerIds.length > 0) await db.pipeline([call(FORGET, jobId, triggerIds)]);
}
