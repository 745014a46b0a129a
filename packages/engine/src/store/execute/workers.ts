/**
 * Workers: rows of `job` that are registered and renewed over the API. A worker is alive while its lease is valid; when
 * another job declares it dead, its assignments are reported as lost in the same statement (job/job-lease.ts).
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection, Database } from "../database/database.ts";
import { call, statement } from "../database/statement.ts";
import { hasEnded, isCurrent } from "./assignments.ts";
import { LOSE_CALL } from "./reports.ts";

/** What decides whether a server can serve a worker, and names it if not. */
export interface WorkerProtocol {
  readonly name: string;
  readonly version: string;
  /** Of the task execution API. */
  readonly protocol: number;
}

export interface WorkerFacts extends WorkerProtocol {
  readonly hostname: string;
  readonly pid: number;
  readonly slots: number;
  /** null: the worker of one pod. */
  readonly queues: readonly string[] | null;
  readonly labels: Readonly<Record<string, string>>;
}

const REGISTER = statement(
  "worker-register",
  `WITH registered AS (
     INSERT INTO job (kind, hostname, pid, version, lease_until, name, queues, slots, facts, token_id)
     VALUES ('worker', $1, $2, $3, now() + $4 * interval '1 millisecond', $5, $6, $7, $8, $9) RETURNING id)
   SELECT id, pg_notify('tradewind', 'jobs') FROM registered`,
);

/** Who registered a worker: a stored token, or the pod of an assignment. */
export interface WorkerOrigin {
  readonly tokenId: number | null;
  readonly assignment: string | null;
}

export async function registerWorker(
  db: Connection,
  worker: WorkerFacts,
  { assignment, leaseMs, tokenId }: WorkerOrigin & { readonly leaseMs: number },
): Promise<number> {
  const { hostname, labels, name, pid, protocol, queues, slots, version } = worker;
  const facts = JSON.stringify({ labels, protocol, ...(assignment !== null && { assignment }) });
  const row = await db.one<{ id: number }>(REGISTER, [
    ...[hostname, pid, version, leaseMs, name, queues, slots, facts, tokenId],
  ]);
  return row!.id;
}

/** What a worker has to know. */
export interface WorkerOrders {
  /** Its assignments that have to end. */
  readonly cancels: readonly { readonly id: string; readonly cancel: Json }[];
  /** Those among the given ids that it no longer has: ended, superseded, or of another worker. */
  readonly superseded: readonly string[];
  /** Its assignments that it did not name. */
  readonly unknown: readonly string[];
  readonly isDraining: boolean;
}

const RENEW = statement(
  "worker-renew",
  `UPDATE job SET heartbeat_at = now(), lease_until = now() + $2 * interval '1 millisecond', free_slots = $3,
     is_draining = is_draining OR $4
   WHERE id = $1 AND kind = 'worker' AND state = 'running'
   RETURNING name, version, coalesce((facts->>'protocol')::integer, 1) AS protocol`,
);

interface WorkerRenewal {
  readonly leaseMs: number;
  readonly freeSlots: number;
  /** It drains because its process was asked to stop. */
  readonly isStopping: boolean;
}

/** undefined: the worker was declared dead or removed. */
export function renewWorker(
  db: Connection,
  id: number,
  { freeSlots, isStopping, leaseMs }: WorkerRenewal,
): Promise<WorkerProtocol | undefined> {
  return db.one<WorkerProtocol>(RENEW, [id, leaseMs, freeSlots, isStopping]);
}

const ORDERS = statement(
  "worker-orders",
  `SELECT j.is_draining,
     (SELECT coalesce(json_agg(json_build_object('id', a.id, 'cancel', a.cancel)), '[]')
      FROM assignment a WHERE a.worker_job = j.id AND a.cancel IS NOT NULL AND NOT ${hasEnded("a")}) AS cancels,
     ARRAY(SELECT u.id FROM unnest($2::uuid[]) AS u(id)
           WHERE NOT EXISTS (SELECT FROM assignment a WHERE a.id = u.id AND a.worker_job = j.id AND ${isCurrent("a")})) AS superseded,
     ARRAY(SELECT a.id FROM assignment a WHERE a.worker_job = j.id AND a.id <> ALL($2::uuid[])
           AND NOT ${hasEnded("a")}) AS unknown
   FROM job j WHERE j.id = $1 AND j.state = 'running'`,
);

/** undefined: the worker was declared dead or removed. */
export async function workerOrders(
  db: Connection,
  id: number,
  assignments: readonly string[],
): Promise<WorkerOrders | undefined> {
  const row = await db.one<{
    is_draining: boolean;
    cancels: WorkerOrders["cancels"];
    superseded: string[];
    unknown: string[];
  }>(ORDERS, [id, assignments]);
  if (row === undefined) return undefined;
  const { cancels, is_draining: isDraining, superseded, unknown } = row;
  return { cancels, isDraining, superseded, unknown };
}

/** Ends workers, and wakes their held heartbeats. */
const END = statement(
  "worker-end",
  `WITH ended AS (
     UPDATE job SET state = $2, ended_at = now(), lease_until = now()
     WHERE id = ANY($1) AND kind = 'worker' AND state = 'running' RETURNING id
   )
   SELECT id, pg_notify('tradewind', 'reports'), pg_notify('tradewind', 'jobs'), pg_notify('tradewind', 'assignments')
   FROM ended`,
);

/**
 * What they still have is lost. Returns those that were running.
 * @param state "stopped": it ended by itself; "dead": a user removed it.
 */
export async function endWorkers(
  db: Database,
  ids: readonly number[],
  state: "stopped" | "dead",
): Promise<number[]> {
  const [ended = []] = await db.pipeline([call(END, ids, state), LOSE_CALL]);
  return (ended as { id: number }[]).map(({ id }) => id);
}

const IS_OF_TOKEN = statement(
  "worker-is-of-token",
  `SELECT EXISTS (
     SELECT FROM job WHERE id = $1 AND kind = 'worker' AND token_id IS NOT DISTINCT FROM $2
       AND facts->>'assignment' IS NOT DISTINCT FROM $3) AS is_own`,
);

export async function isWorkerOf(db: Connection, id: number, origin: WorkerOrigin): Promise<boolean> {
  const { assignment, tokenId } = origin;
  return (await db.one<{ is_own: boolean }>(IS_OF_TOKEN, [id, tokenId, assignment]))?.is_own === true;
}

const IS_LAUNCHED = statement(
  "worker-is-launched",
  `SELECT EXISTS (SELECT FROM assignment WHERE id = $1::text::uuid)
     OR EXISTS (SELECT FROM job WHERE kind = 'worker' AND state = 'running' AND facts->>'assignment' = $1::text) AS is_launched`,
);

/** Whether a pod may act for this assignment: it has not ended, or the pod has not signed off yet. */
export async function isLaunched(db: Connection, assignment: string): Promise<boolean> {
  return (await db.one<{ is_launched: boolean }>(IS_LAUNCHED, [assignment]))?.is_launched === true;
}
