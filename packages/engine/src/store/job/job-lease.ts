/**
 * Leases of running services. A job is alive while its `lease_until` is in the future by the database's clock. After
 * that, any job may declare it dead and take over its runs; this is final, a dead job cannot renew. A job that renews
 * late but before that (for example after an outage of the database) keeps its id: runs that were taken over meanwhile
 * are fenced by their generation.
 */
import type { Connection, Database } from "../database/database.ts";
import { call, statement } from "../database/statement.ts";
import { LOSE_CALL } from "../execute/reports.ts";
import type { ServedDags } from "./served-dags.ts";

export type JobKind = "scheduler" | "dag_processor" | "triggerer" | "api" | "backfill" | "driver" | "worker";

/** Notifies in the same statement: peers know the job before they receive any wake-up sent after its start. */
const REGISTER = statement(
  "job-register",
  `WITH registered AS (
     INSERT INTO job (kind, hostname, pid, version, lease_until, dags)
     VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond', $6) RETURNING id)
   SELECT id, extract(epoch FROM clock_timestamp()) * 1000 AS now, pg_notify('tradewind', 'jobs') FROM registered`,
);

/**
 * Changes no key, so the row lock and foreign key checks of other transactions do not block each other. The result also
 * reports whether another job has ended: usually none has, and no further query is needed.
 */
const RENEW = statement(
  "job-renew",
  `WITH before AS (
     SELECT id, lease_until > now() AS was_held FROM job WHERE id = $1 AND state = 'running' FOR NO KEY UPDATE)
   UPDATE job SET heartbeat_at = now(), lease_until = now() + $2 * interval '1 millisecond'
   FROM before WHERE job.id = before.id
   RETURNING before.was_held, extract(epoch FROM clock_timestamp()) * 1000 AS now,
     EXISTS (SELECT FROM job o WHERE o.state = 'running' AND o.lease_until <= now() AND o.id <> $1)
     OR EXISTS (SELECT FROM job o WHERE o.state <> 'running' AND o.ended_at > now() - $2 * interval '1 millisecond')
       AS someone_left`,
);

/** Notifies in the same statement: an exiting process could not send a wake-up afterwards. */
const END = statement(
  "job-end",
  `WITH ended AS (
     UPDATE job SET state = 'stopped', ended_at = now(), lease_until = now() WHERE id = $1 AND state = 'running'
     RETURNING id)
   SELECT pg_notify('tradewind', 'jobs') FROM ended`,
);

/** Declares jobs dead whose lease has expired. */
const BURY = statement(
  "job-bury",
  `WITH dead AS (
     UPDATE job SET state = 'dead', ended_at = now()
     WHERE id IN (SELECT id FROM job WHERE state = 'running' AND lease_until <= now()
                  FOR NO KEY UPDATE SKIP LOCKED)
     RETURNING id, kind, hostname, pid
   )
   SELECT id, kind, hostname, pid, CASE WHEN kind = 'worker' THEN pg_notify('tradewind', 'reports') END FROM dead`,
);

/** Jobs that drive runs share pools. */
const PEERS = statement(
  "job-peers",
  `SELECT id FROM job
   WHERE kind IN ('scheduler', 'backfill', 'driver') AND state = 'running' AND lease_until > now() AND id <> $1`,
);

export interface JobIdentity {
  readonly kind: JobKind;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
  /** Absent: all. */
  readonly dags?: ServedDags;
}

export interface DeadJob {
  readonly id: number;
  readonly kind: JobKind;
  readonly hostname: string;
  readonly pid: number;
}

/** Registers a job; `now` is the database's clock in milliseconds. */
export async function registerJob(
  db: Connection,
  who: JobIdentity,
  ttlMs: number,
): Promise<{ id: number; now: number }> {
  const row = await db.one<{ id: number; now: string }>(REGISTER, [
    who.kind,
    who.hostname,
    who.pid,
    who.version,
    ttlMs,
    who.dags ?? null,
  ]);
  if (!row) throw new Error("job registration returned no row");
  return { id: row.id, now: Number(row.now) };
}

export interface Renewal {
  readonly now: number;
  /** False: the lease had expired, and no job had declared this job dead yet. */
  readonly wasHeld: boolean;
  /** True if another job ended within one lease duration, or its lease has expired. */
  readonly someoneLeft: boolean;
}

/** Null: the job was declared dead. Safe to repeat. */
export async function renewJob(db: Database, id: number, ttlMs: number): Promise<Renewal | null> {
  const row = await db.oneSoon<{ now: string; was_held: boolean; someone_left: boolean }>(RENEW, [id, ttlMs]);
  return row ? { now: Number(row.now), wasHeld: row.was_held, someoneLeft: row.someone_left } : null;
}

export async function endJob(db: Connection, id: number): Promise<void> {
  await db.rows(END, [id]);
}

/** What dead workers were running is reported as lost, in the same transaction. */
export async function expireDeadJobs(db: Database): Promise<DeadJob[]> {
  const [dead = []] = await db.pipeline([call(BURY), LOSE_CALL]);
  return dead as DeadJob[];
}

/** Other jobs that drive runs: schedulers, backfill jobs and drivers. */
export async function liveDrivers(db: Connection, self: number): Promise<number[]> {
  return (await db.rows<{ id: number }>(PEERS, [self])).map((row) => row.id);
}
