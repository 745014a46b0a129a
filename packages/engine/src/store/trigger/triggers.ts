/** Reads and records of a triggerer about triggers and other triggerers. */
import type { Json } from "@tradewind/sdk/manifest";
import { type Connection, call, type Database } from "../database/database.ts";
import { statement } from "../database/statement.ts";

/** A wait on a trigger, with the facts for its log. */
export interface Subscriber {
  readonly trigger_id: number;
  readonly dag_id: string;
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly map_index: number;
  readonly try_number: number;
  readonly attempt: string;
}

/** Stalls of all triggers by one class of triggers. */
export interface BlockedTrigger {
  /** null: no trigger could be identified. */
  readonly kind: string | null;
  readonly count: number;
  readonly longestMs: number;
  readonly lastAt: string;
  /** Where its code was observed; empty: unknown. */
  readonly place: string;
}

/** Facts that a triggerer reports about itself. */
export interface TriggererFacts {
  readonly triggers: number;
  readonly capacity: number;
  readonly queues: readonly string[];
  /** Due triggers without an owner, because this triggerer is full. */
  readonly unclaimed: number;
  /** Crashes of trigger processes in the last ten minutes. */
  readonly crashes: number;
  /** Triggers that are isolated because one of them crashes its process. */
  readonly suspects: number;
  /** How often a trigger has blocked the others since the start. */
  readonly blocked: number;
  /** The triggers that blocked last, by class. */
  readonly blockedBy: readonly BlockedTrigger[];
  /** Milliseconds since the last iteration of the trigger loop. */
  readonly lagMs: number;
  readonly fired: FiredMembers;
}

/** For waits for all, by trigger id: the positions of the members that have fired. */
export type FiredMembers = Readonly<Record<string, readonly number[]>>;

export interface Peer {
  readonly id: number;
  readonly facts: TriggererFacts;
}

const NEXT_TIMED = statement(
  "trigger-next-timed",
  `SELECT extract(epoch FROM wake_at - now()) * 1000 AS wait FROM trigger
   WHERE timed IS NOT NULL AND dag_id IS NULL ORDER BY wake_at LIMIT 1`,
);

const NEXT_COLD = statement(
  "trigger-next-cold",
  `SELECT extract(epoch FROM c.wake_at - now()) * 1000 - $2 AS wait
   FROM unnest($1::text[]) AS q(queue) CROSS JOIN LATERAL (
     SELECT t.wake_at FROM trigger t
     WHERE t.queue = q.queue AND t.timed IS NULL AND t.owner_job IS NULL
       AND t.wake_at > now() + $2 * interval '1 millisecond'
     ORDER BY t.wake_at LIMIT 1) AS c
   WHERE c.wake_at < 'infinity' ORDER BY c.wake_at LIMIT 1`,
);

/** Counts at most $3, without schedules: those of paused DAGs stay unowned. */
const FREE = statement(
  "trigger-count-free",
  `SELECT count(*)::int AS free FROM (
     SELECT 1 FROM unnest($1::text[]) AS q(queue) CROSS JOIN LATERAL (
       SELECT 1 FROM trigger t
       WHERE t.queue = q.queue AND t.timed IS NULL AND t.owner_job IS NULL AND t.dag_id IS NULL
         AND t.wake_at <= now() + $2 * interval '1 millisecond'
       ORDER BY t.wake_at LIMIT $3) AS f
     LIMIT $3) AS counted`,
);

const PEERS = statement(
  "trigger-peers",
  `SELECT id, facts FROM job
   WHERE kind = 'triggerer' AND state = 'running' AND lease_until > now() AND id <> $1 AND facts IS NOT NULL
   ORDER BY id`,
);

/** Counted instead of read from facts: facts that are ten seconds old would make triggers move back and forth. */
const LOADS = statement(
  "trigger-peer-loads",
  `SELECT u.id, (SELECT count(*) FROM trigger t WHERE t.owner_job = u.id)::int
                + (SELECT count(*) FROM trigger t WHERE t.standby_job = u.id)::int AS triggers
   FROM unnest($1::bigint[]) AS u(id)`,
);

const NOTE_FACTS = statement("trigger-note-facts", "UPDATE job SET facts = $2 WHERE id = $1");

/** Skips locked rows, which are recorded the next time: no other transaction waits for this. */
const NOTE_POLLS = statement(
  "trigger-note-polls",
  `WITH free AS (
     SELECT id FROM trigger WHERE id = ANY($2::bigint[]) AND (owner_job = $1 OR standby_job = $1)
     FOR NO KEY UPDATE SKIP LOCKED)
   UPDATE trigger t SET polled_at = now() FROM free WHERE t.id = free.id`,
);

/** At most `$2` per trigger, and their number. In the order of keys, so that every call returns the same ones first. */
const SUBSCRIBERS = statement(
  "trigger-subscribers",
  `SELECT u.id AS trigger_id, r.dag_id, d.dag_run_id, d.task_id, d.map_index, d.try_number, d.attempt
   FROM unnest($1::bigint[]) AS u(id) CROSS JOIN LATERAL (
     SELECT * FROM deferral w WHERE w.waits_on = u.id ORDER BY w.deferred_at, w.attempt LIMIT $2) AS d
   JOIN dag_run r ON r.id = d.dag_run_id`,
);

/**
 * Task timeouts are read once per version and task: a manifest may have megabytes. `OFFSET 0` prevents a merge join,
 * which would read all runs from the first id on.
 */
const WAIT_ENDS = statement(
  "trigger-wait-ends",
  `WITH wait AS MATERIALIZED (
     SELECT d.attempt, d.timeout_at, d.task_id, r.version_id, t.started_at
     FROM deferral d
       CROSS JOIN LATERAL (SELECT version_id FROM dag_run WHERE id = d.dag_run_id OFFSET 0) r
       LEFT JOIN LATERAL (SELECT started_at FROM task_instance i
         WHERE i.dag_run_id = d.dag_run_id AND i.task_id = d.task_id AND i.map_index = d.map_index OFFSET 0) t ON true
     WHERE d.attempt = ANY($1::uuid[])
   ), own AS MATERIALIZED (
     SELECT asked.version_id, asked.task_id, (task->>'timeoutMs')::float8 AS timeout_ms
     FROM (SELECT DISTINCT version_id, task_id FROM wait) asked JOIN dag_version v ON v.id = asked.version_id,
       jsonb_array_elements(v.manifest->'tasks') task
     WHERE task->>'taskId' = asked.task_id
   )
   SELECT w.attempt, least(w.timeout_at, w.started_at + own.timeout_ms * interval '1 millisecond') AS ends_at
   FROM wait w LEFT JOIN own USING (version_id, task_id)`,
);

const DAGS_OF_RUNS = statement(
  "trigger-dags-of-runs",
  "SELECT id, dag_id FROM dag_run WHERE id = ANY($1::bigint[])",
);

const UNWAITED = statement(
  "trigger-unwaited",
  `SELECT t.id FROM trigger t WHERE t.owner_job = $1 AND t.dag_id IS NULL
     AND NOT EXISTS (SELECT 1 FROM deferral d WHERE d.waits_on = t.id)
   UNION ALL
   SELECT t.id FROM trigger t WHERE t.standby_job = $1 AND t.dag_id IS NULL
     AND NOT EXISTS (SELECT 1 FROM deferral d WHERE d.waits_on = t.id)`,
);

/** Blocks subscribers, and other transactions that fire, delete or claim these triggers; in the common lock order. */
export const LOCK_TRIGGERS = statement(
  "trigger-lock",
  "SELECT id FROM trigger WHERE id = ANY($1::bigint[]) ORDER BY fingerprint FOR UPDATE",
);

/** A separate statement after the lock: it must see the subscriber that the lock waited for. */
const DELETE_UNWAITED = statement(
  "trigger-delete-unwaited",
  `DELETE FROM trigger t WHERE t.id = ANY($2::bigint[]) AND (t.owner_job = $1 OR t.standby_job = $1)
     AND t.dag_id IS NULL AND NOT EXISTS (SELECT 1 FROM deferral d WHERE d.waits_on = t.id)
   RETURNING t.id`,
);

/**
 * A page of all triggers by id. A cold trigger has no owner that could delete it when its last wait ends, is cancelled by
 * an edit or is deleted with its run. The transaction that ends the wait has locked the wait, and must not lock a trigger
 * after that. So these triggers are checked page by page instead.
 */
const UNWAITED_COLD = statement(
  "trigger-unwaited-cold",
  `SELECT count(*)::int AS read, max(p.id) AS last,
          coalesce(array_agg(p.id) FILTER (WHERE p.is_cold AND w.one IS NULL), '{}') AS ids
   FROM (SELECT t.id, t.owner_job IS NULL AND t.standby_job IS NULL AND t.dag_id IS NULL AS is_cold
         FROM trigger t WHERE t.id > $1 ORDER BY t.id LIMIT $2) AS p
   LEFT JOIN LATERAL (SELECT 1 AS one FROM deferral d WHERE d.waits_on = p.id LIMIT 1) AS w ON true`,
);

/** As above: after the lock, and only triggers that are still unowned. */
const DELETE_COLD = statement(
  "trigger-delete-cold",
  `DELETE FROM trigger t WHERE t.id = ANY($1::bigint[]) AND t.owner_job IS NULL AND t.standby_job IS NULL
     AND t.dag_id IS NULL AND NOT EXISTS (SELECT 1 FROM deferral d WHERE d.waits_on = t.id)`,
);

/** Milliseconds until the next timed trigger fires (negative: overdue), null if there is none. */
export async function nextTimedIn(db: Database): Promise<number | null> {
  // In a pipeline: it uses the index even if the plan was made while the table was empty.
  const [rows = []] = await db.pipeline([call(NEXT_TIMED)]);
  const row = (rows as { wait: string }[])[0];
  return row ? Number(row.wait) : null;
}

/** Milliseconds until the next cold trigger of these queues has to be claimed, null if there is none. */
export async function nextColdIn(
  db: Database,
  queues: readonly string[],
  horizonMs: number,
): Promise<number | null> {
  const [rows = []] = await db.pipeline([call(NEXT_COLD, queues, horizonMs)]);
  const row = (rows as { wait: string }[])[0];
  return row ? Number(row.wait) : null;
}

/** The number of due triggers of these queues without an owner, up to `limit`. */
export async function countFree(
  db: Database,
  request: { readonly queues: readonly string[]; readonly horizonMs: number; readonly limit: number },
): Promise<number> {
  const [rows = []] = await db.pipeline([call(FREE, request.queues, request.horizonMs, request.limit)]);
  return (rows as { free: number }[])[0]?.free ?? 0;
}

/** The other live triggerers. */
export function livePeersOf(db: Connection, jobId: number): Promise<Peer[]> {
  return db.rows<Peer>(PEERS, [jobId]);
}

/** The number of triggers of each of these jobs. */
export async function triggersOf(db: Connection, jobIds: readonly number[]): Promise<Map<number, number>> {
  if (jobIds.length === 0) return new Map();
  const rows = await db.rows<{ id: number; triggers: number }>(LOADS, [jobIds]);
  return new Map(rows.map(({ id, triggers }) => [id, triggers]));
}

export async function recordFacts(db: Connection, jobId: number, facts: TriggererFacts): Promise<void> {
  await db.rows(NOTE_FACTS, [jobId, JSON.stringify(facts as unknown as Json)]);
}

export async function recordPolls(db: Database, jobId: number, ids: readonly number[]): Promise<void> {
  if (ids.length > 0) await db.pipeline([call(NOTE_POLLS, jobId, ids)]);
}

/** By attempt: when its wait or its try times out; null without a timeout. */
export async function waitEndsOf(
  connection: Connection,
  attempts: readonly string[],
): Promise<ReadonlyMap<string, Date | null>> {
  if (attempts.length === 0) return new Map();
  const rows = await connection.rows<{ attempt: string; ends_at: Date | null }>(WAIT_ENDS, [attempts]);
  return new Map(rows.map(({ attempt, ends_at }) => [attempt, ends_at]));
}

export async function subscribersOf(
  db: Database,
  ids: readonly number[],
  limit: number,
): Promise<Map<number, Subscriber[]>> {
  const [rows] = await db.pipeline([call(SUBSCRIBERS, ids, limit)]);
  return Map.groupBy(rows as Subscriber[], (row) => row.trigger_id);
}

export async function dagsOfRuns(db: Connection, ids: readonly number[]): Promise<Map<number, string>> {
  const rows = await db.rows<{ id: number; dag_id: string }>(DAGS_OF_RUNS, [ids]);
  return new Map(rows.map((row) => [row.id, row.dag_id]));
}

/** Triggers of this job without waits; a hint: `deleteUnwaited` checks again under the lock. */
export async function unwaitedTriggers(db: Database, jobId: number): Promise<number[]> {
  const [rows] = await db.pipeline([call(UNWAITED, jobId)]);
  return (rows as { id: number }[]).map((row) => row.id);
}

/** Deletes those that still have no waits, and returns their ids. */
export async function deleteUnwaited(db: Database, jobId: number, ids: readonly number[]): Promise<number[]> {
  if (ids.length === 0) return [];
  const [, rows] = await db.pipeline([call(LOCK_TRIGGERS, ids), call(DELETE_UNWAITED, jobId, ids)]);
  return (rows as { id: number }[]).map((row) => row.id);
}

/**
 * Deletes those of the next `limit` triggers after `after` that have neither owner nor waits. Returns where to continue:
 * 0 after the last one.
 */
export async function deleteUnwaitedCold(db: Database, after: number, limit: number): Promise<number> {
  const [pages = []] = await db.pipeline([call(UNWAITED_COLD, after, limit)]);
  const [{ ids, last, read }] = pages as [{ read: number; last: number | null; ids: number[] }];
  if (ids.length > 0) await db.pipeline([call(LOCK_TRIGGERS, ids), call(DELETE_COLD, ids)]);
  return read < limit ? 0 : (last ?? 0);
}
