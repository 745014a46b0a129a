/**
 * Leases of running components. The database's clock alone decides who is alive: a job is alive while its
 * `lease_until` lies in the future, and a renewal that comes too late is refused, so that a process that slept through
 * its lease can never come back under its old identity.
 */
import type { Connection } from "./database.ts";
import { statement } from "./statement.ts";

export type JobKind = "scheduler" | "dag_processor" | "triggerer" | "api" | "backfill";

const REGISTER = statement(
  "job-register",
  `INSERT INTO job (kind, hostname, pid, version, lease_until)
   VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')
   RETURNING id, extract(epoch FROM clock_timestamp()) * 1000 AS now`,
);

const RENEW = statement(
  "job-renew",
  `UPDATE job SET heartbeat_at = now(), lease_until = now() + $2 * interval '1 millisecond'
   WHERE id = $1 AND state = 'running' AND lease_until > now()
   RETURNING extract(epoch FROM clock_timestamp()) * 1000 AS now`,
);

const END = statement(
  "job-end",
  "UPDATE job SET state = 'stopped', ended_at = now(), lease_until = now() WHERE id = $1 AND state = 'running'",
);

/** Marks the jobs whose lease ran out, so that reports name them; ownership is judged by the lease itself. */
const BURY = statement(
  "job-bury",
  `UPDATE job SET state = 'dead', ended_at = now()
   WHERE id IN (SELECT id FROM job WHERE state = 'running' AND lease_until <= now() FOR UPDATE SKIP LOCKED)
   RETURNING id, kind, hostname, pid`,
);

const PEERS = statement(
  "job-peers",
  "SELECT id FROM job WHERE kind = $1 AND state = 'running' AND lease_until > now() AND id <> $2",
);

export interface JobIdentity {
  readonly kind: JobKind;
  readonly hostname: string;
  readonly pid: number;
  readonly version: string;
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
  ]);
  if (!row) throw new Error("job registration returned no row");
  return { id: row.id, now: Number(row.now) };
}

/** The database's time, or null when the lease was lost. */
export async function renewJob(db: Connection, id: number, ttlMs: number): Promise<number | null> {
  const row = await db.one<{ now: string }>(RENEW, [id, ttlMs]);
  return row ? Number(row.now) : null;
}

export async function endJob(db: Connection, id: number): Promise<void> {
  await db.rows(END, [id]);
}

export function buryDeadJobs(db: Connection): Promise<DeadJob[]> {
  return db.rows<DeadJob>(BURY);
}

export async function livePeers(db: Connection, kind: JobKind, self: number): Promise<number[]> {
  return (await db.rows<{ id: number }>(PEERS, [kind, self])).map((row) => row.id);
}
