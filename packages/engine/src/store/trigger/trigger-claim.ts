/**
 * Ownership of triggers. `trigger.owner_job` is the triggerer that runs it (`standby_job` the second one of a trigger
 * with two replicas); the lease of that job decides whether this is still valid. Any triggerer may claim a trigger
 * without a live owner.
 *
 * Concurrent calls: each locks the rows it claims and skips locked ones. Crash after the commit: the rows belong to a job
 * whose lease expires. Lost reply: `ownedTriggers` returns the claimed rows.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { IS_BEFORE_END } from "../plan/schedule-triggers.ts";
import { LOCK_SCHEDULE_KEYS, publishScheduleTriggers } from "../task/state-signals.ts";
import { LOCK_TRIGGERS } from "./triggers.ts";

/** A trigger that this job has to run. */
export interface ClaimedTrigger {
  readonly id: number;
  readonly kind: string;
  readonly args: Json;
  readonly bundle_hash: string | null;
  /** Set: each of its events starts a run of this DAG. */
  readonly dag_id: string | null;
  readonly replicas: 1 | 2;
  readonly created_at: Date;
  /** For a schedule that observes a state: the event of the last run, until the state ends. */
  readonly last_event?: Json;
}

export interface ClaimRequest {
  readonly jobId: number;
  readonly queues: readonly string[];
  readonly limit: number;
  /** Triggers that wake within this time are claimed now. */
  readonly horizonMs: number;
  /** Ended jobs that still own triggers: see `deadOwners`. */
  readonly dead: readonly number[];
}

const CLAIMED = `t.id, t.kind, t.args, t.bundle_hash, t.dag_id, t.replicas, t.created_at,
   (SELECT m.event FROM trigger_memory m WHERE m.trigger_id = t.id) AS last_event`;

/** The schedule of a DAG that is paused, stale or past its end sleeps. */
const IS_AWAKE = `(t.dag_id IS NULL OR EXISTS (
     SELECT 1 FROM dag g JOIN dag_version v ON v.id = g.version_id
     WHERE g.dag_id = t.dag_id AND NOT g.is_paused AND NOT g.is_stale AND ${IS_BEFORE_END}))`;

const IS_DUE = "t.timed IS NULL AND t.wake_at <= now() + $4 * interval '1 millisecond'";

/** The standby takes over from the owner that released it. A job never has both roles, which would be one replica. */
const PROMOTE = statement(
  "trigger-promote",
  `WITH left_alone AS (
     SELECT id FROM trigger WHERE standby_job = $1 AND (owner_job IS NULL OR owner_job = ANY($2::bigint[]))
     FOR UPDATE SKIP LOCKED)
   UPDATE trigger t SET owner_job = $1, standby_job = NULL FROM left_alone WHERE t.id = left_alone.id`,
);

const CLAIM = statement(
  "trigger-claim",
  `WITH orphan AS (
     SELECT t.id FROM trigger t
     WHERE t.owner_job = ANY($5::bigint[]) AND t.queue = ANY($2::text[]) AND t.standby_job IS DISTINCT FROM $1
       AND ${IS_DUE} AND ${IS_AWAKE}
     LIMIT $3 FOR UPDATE SKIP LOCKED
   ), free AS (
     SELECT f.id FROM unnest($2::text[]) AS q(queue) CROSS JOIN LATERAL (
       SELECT t.id FROM trigger t
       WHERE t.queue = q.queue AND t.owner_job IS NULL AND t.standby_job IS DISTINCT FROM $1
         AND ${IS_DUE} AND ${IS_AWAKE}
       ORDER BY t.wake_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS f
   ), chosen AS (SELECT id FROM orphan UNION ALL SELECT id FROM free LIMIT $3)
   UPDATE trigger t SET owner_job = $1, claimed_at = now() FROM chosen WHERE t.id = chosen.id
   RETURNING ${CLAIMED}`,
);

const CLAIM_STANDBY = statement(
  "trigger-claim-standby",
  `WITH orphan AS (
     SELECT t.id FROM trigger t
     WHERE t.standby_job = ANY($5::bigint[]) AND t.queue = ANY($2::text[]) AND t.owner_job <> $1
       AND ${IS_DUE} AND ${IS_AWAKE}
     LIMIT $3 FOR UPDATE SKIP LOCKED
   ), single AS (
     SELECT f.id FROM unnest($2::text[]) AS q(queue) CROSS JOIN LATERAL (
       SELECT t.id FROM trigger t
       WHERE t.queue = q.queue AND t.replicas = 2 AND t.standby_job IS NULL AND t.owner_job <> $1
         AND ${IS_DUE} AND ${IS_AWAKE}
       ORDER BY t.wake_at LIMIT $3 FOR UPDATE SKIP LOCKED) AS f
   ), chosen AS (SELECT id FROM orphan UNION ALL SELECT id FROM single LIMIT $3)
   UPDATE trigger t SET standby_job = $1 FROM chosen WHERE t.id = chosen.id
   RETURNING ${CLAIMED}`,
);

/** One index step per owner, however many triggers it has. */
const DEAD_OWNERS = statement(
  "trigger-dead-owners",
  `WITH RECURSIVE owner(id) AS (
     (SELECT owner_job FROM trigger WHERE owner_job IS NOT NULL ORDER BY owner_job LIMIT 1)
     UNION ALL
     SELECT (SELECT t.owner_job FROM trigger t WHERE t.owner_job > o.id ORDER BY t.owner_job LIMIT 1)
     FROM owner o WHERE o.id IS NOT NULL
   ), standby(id) AS (
     (SELECT standby_job FROM trigger WHERE standby_job IS NOT NULL ORDER BY standby_job LIMIT 1)
     UNION ALL
     SELECT (SELECT t.standby_job FROM trigger t WHERE t.standby_job > s.id ORDER BY t.standby_job LIMIT 1)
     FROM standby s WHERE s.id IS NOT NULL
   )
   SELECT j.id FROM (SELECT id FROM owner UNION SELECT id FROM standby) AS named JOIN job j ON j.id = named.id
   WHERE j.id <> $1 AND (j.state <> 'running' OR j.lease_until <= now())`,
);

const OWNED = statement(
  "trigger-owned",
  `SELECT ${CLAIMED}, ${IS_AWAKE} AS is_awake FROM trigger t WHERE t.owner_job = $1
   UNION ALL SELECT ${CLAIMED}, ${IS_AWAKE} AS is_awake FROM trigger t WHERE t.standby_job = $1`,
);

const RELEASE = statement(
  "trigger-release",
  "UPDATE trigger SET owner_job = NULL, claimed_at = NULL WHERE id = ANY($2::bigint[]) AND owner_job = $1",
);

const RELEASE_STANDBY = statement(
  "trigger-release-standby",
  "UPDATE trigger SET standby_job = NULL WHERE id = ANY($2::bigint[]) AND standby_job = $1",
);

/** Before the release, in the common lock order. */
const LOCK_OWNED = statement(
  "trigger-lock-owned",
  `SELECT id FROM trigger WHERE id = ANY(ARRAY(
     SELECT id FROM trigger WHERE owner_job = $1 UNION ALL SELECT id FROM trigger WHERE standby_job = $1))
   ORDER BY fingerprint FOR UPDATE`,
);

const RELEASE_ALL = statement(
  "trigger-release-all",
  "UPDATE trigger SET owner_job = NULL, claimed_at = NULL WHERE owner_job = $1",
);

const RELEASE_ALL_STANDBY = statement(
  "trigger-release-all-standby",
  "UPDATE trigger SET standby_job = NULL WHERE standby_job = $1",
);

/** The failed trigger of a schedule has no wait to fail: it starts again after a delay. */
const POSTPONE = statement(
  "trigger-postpone",
  `WITH postponed AS (
     UPDATE trigger SET owner_job = NULL, standby_job = NULL, claimed_at = NULL,
                        wake_at = now() + $3 * interval '1 millisecond'
     WHERE id = ANY($2::bigint[]) AND (owner_job = $1 OR standby_job = $1) AND dag_id IS NOT NULL
     RETURNING id, kind, dag_id, NULL::text AS run_id
   ) ${publishScheduleTriggers("postponed", "failed", "'triggerer:' || $1::bigint")}`,
);

/** Part of the release: an ending process could not notify afterwards. */
const NOTIFY = statement("trigger-notify", "SELECT pg_notify('tradewind', 'triggers')");

/** Triggers without an owner first; then, within the limit, standby roles of replicated triggers. */
export async function claimTriggers(db: Database, request: ClaimRequest): Promise<ClaimedTrigger[]> {
  const { jobId, queues, limit, horizonMs, dead } = request;
  const [, owned = []] = (await db.pipeline([
    call(PROMOTE, jobId, dead),
    call(CLAIM, jobId, queues, limit, horizonMs, dead),
  ])) as ClaimedTrigger[][];
  const rest = limit - owned.length;
  if (rest <= 0) return owned;
  const [standby = []] = (await db.pipeline([
    call(CLAIM_STANDBY, jobId, queues, rest, horizonMs, dead),
  ])) as ClaimedTrigger[][];
  return [...owned, ...standby];
}

/** Other jobs that have ended, by the database's clock, and still own triggers. */
export async function deadOwners(db: Connection, jobId: number): Promise<number[]> {
  return (await db.rows<{ id: number }>(DEAD_OWNERS, [jobId])).map((row) => row.id);
}

/** The stored triggers of this job; compared with memory, they show which were taken over, deleted or put to sleep. */
export function ownedTriggers(
  db: Connection,
  jobId: number,
): Promise<(ClaimedTrigger & { readonly is_awake: boolean })[]> {
  return db.rows(OWNED, [jobId]);
}

export async function releaseTriggers(db: Database, jobId: number, ids: readonly number[]): Promise<void> {
  if (ids.length === 0) return;
  await db.pipeline([call(LOCK_TRIGGERS, ids), call(RELEASE, jobId, ids), call(RELEASE_STANDBY, jobId, ids)]);
}

/** Releases the triggers of schedules until `delayMs` have passed. */
export async function postponeTriggers(
  db: Database,
  jobId: number,
  request: { readonly ids: readonly number[]; readonly delayMs: number },
): Promise<void> {
  const { delayMs, ids } = request;
  if (ids.length === 0) return;
  await db.pipeline([
    call(LOCK_TRIGGERS, ids),
    call(LOCK_SCHEDULE_KEYS, ids),
    call(POSTPONE, jobId, ids, delayMs),
  ]);
}

/** Releases all triggers and notifies the other triggerers. */
export async function releaseAllTriggers(db: Database, jobId: number): Promise<void> {
  await db.pipeline([
    call(LOCK_OWNED, jobId),
    call(RELEASE_ALL, jobId),
    call(RELEASE_ALL_STANDBY, jobId),
    call(NOTIFY),
  ]);
}
