/**
 * Schedules made of events: every event of a DAG's trigger is one run of the DAG. The run is stored in the name of the
 * job that runs the trigger; only then is the event acknowledged to where it came from.
 *
 * An event is known by its run's id. With a key, the id is made from it: the same event again, from the second replica
 * or delivered once more after a crash, finds its run there. Without a key the id is made once, when the event arrives,
 * and kept for as long as its storing has to be repeated: the answer to a commit may get lost, and the repetition finds
 * the run. Died before the commit: the event was not acknowledged and comes again.
 */
import { createHash, randomBytes } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import { call, type Database } from "./database.ts";
import { statement } from "./statement.ts";
import { canonicalJson } from "./trigger-fingerprint.ts";

export interface EventRun {
  readonly triggerId: number;
  readonly runId: string;
  readonly payload: Json;
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

const STORE = statement(
  "event-store-runs",
  `WITH owned AS (
     SELECT u.at, t.id, t.dag_id, u.run, u.conf
     FROM unnest($2::bigint[], $3::text[], $4::json[]) WITH ORDINALITY AS u(id, run, conf, at)
     JOIN trigger t ON t.id = u.id
     WHERE t.dag_id IS NOT NULL AND (t.owner_job = $1 OR t.standby_job = $1)
   ), added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, conf, version_id, triggered_by)
     SELECT o.dag_id, o.run, 'signal_triggered', o.conf, d.version_id, 'trigger'
     FROM owned o JOIN dag d ON d.dag_id = o.dag_id ORDER BY o.at
     ON CONFLICT DO NOTHING RETURNING id, dag_id, run_id
   )
   SELECT o.id AS trigger_id, o.dag_id, o.run AS run_id, NULL::bigint AS dag_run_id FROM owned o
   UNION ALL SELECT NULL, a.dag_id, a.run_id, a.id FROM added a`,
);

/**
 * Events of triggers that are still this job's become runs, in their order. What is not in the answer belongs to
 * somebody else now: it was not stored, and must not be acknowledged.
 */
export async function storeEventRuns(
  db: Database,
  jobId: number,
  events: readonly EventRun[],
): Promise<StoredEventRun[]> {
  if (events.length === 0) return [];
  const ids = [...new Set(events.map(({ triggerId }) => triggerId))];
  const [, , rows] = await db.pipeline([
    call(LOCK_DAGS, ids),
    call(LOCK_TRIGGERS, ids),
    call(
      STORE,
      jobId,
      events.map(({ triggerId }) => triggerId),
      events.map(({ runId }) => runId),
      events.map(({ payload }) => JSON.stringify({ event: payload })),
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
  const identity = [trigger.kind, trigger.args, key === null ? { payload } : key];
  return `event__${createHash("sha256").update(canonicalJson(identity)).digest("hex").slice(0, 24)}`;
}
