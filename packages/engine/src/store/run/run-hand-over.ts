/**
 * How schedulers share runs. Each publishes in its job's row how many tasks it could start now or, as a negative number,
 * how many ready tasks wait for its slots. A scheduler with more ready tasks than slots hands runs to a peer with free
 * slots: it writes the peer as their owner and raises the generation. Only runs without an attempt in flight, so that
 * there is no process to stop; and only runs of DAGs that the peer serves, which its row lists and which never change.
 *
 *  - Locks: the peer's job row, then the runs, by id, with SKIP LOCKED.
 *  - Crash before the commit: no effect. Crash after it: the runs belong to the peer, which loads them when it is woken,
 *    or at its next sweep. If the peer dies, its lease expires, and its runs are taken over.
 *  - Lost reply: the former owner reads the runs again, and finds another owner.
 *  - Concurrent calls: the peer's free slots are reserved under the lock of its row, so they are not reserved twice.
 *  - Stale owner: each run is matched by owner and generation; a run that has changed is skipped.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import type { ServedDags } from "../job/served-dags.ts";

const PUBLISH = statement(
  "share-publish",
  `UPDATE job SET slots = $2, free_slots = $3 WHERE id = $1 AND ($4::integer IS NULL OR free_slots = $4) RETURNING id`,
);

const OFFERED = statement("share-offered", "SELECT free_slots FROM job WHERE id = $1");

const PUBLISH_FACTS = statement(
  "share-facts",
  "UPDATE job SET facts = $2 WHERE id = $1 AND state = 'running'",
);

const IS_ALIVE = "state = 'running' AND lease_until > now()";

const PEERS = statement(
  "share-peers",
  `SELECT id, free_slots, dags FROM job WHERE kind = 'scheduler' AND ${IS_ALIVE} AND id <> $1 ORDER BY free_slots DESC, id`,
);

const HAND_OVER = statement(
  "share-hand-over",
  `WITH reserved AS (
     UPDATE job SET free_slots = greatest(free_slots - $5, 0) WHERE id = $2 AND ${IS_ALIVE} AND free_slots > 0 RETURNING id
   ), given AS (
     SELECT r.id FROM dag_run r JOIN unnest($3::bigint[], $4::bigint[]) AS u(id, generation) ON u.id = r.id
     WHERE r.owner_job = $1 AND r.generation = u.generation AND r.state = 'running' AND EXISTS (SELECT FROM reserved)
     ORDER BY r.id FOR UPDATE OF r SKIP LOCKED
   )
   UPDATE dag_run r SET owner_job = $2, owned_since = now(), generation = r.generation + 1 FROM given WHERE r.id = given.id
   RETURNING r.id`,
);

export interface FreeSlots {
  /** null: no limit. */
  readonly slots: number | null;
  /** Negative: the number of ready tasks that wait for slots. */
  readonly free: number;
}

export interface Peer {
  readonly id: number;
  /** Negative: the number of ready tasks that wait for its slots. */
  readonly free_slots: number;
  readonly dags: ServedDags;
}

/**
 * False: the row differs from `known`, because peers have reserved slots for runs that the job has not read. A
 * reservation lowers the figure, and only the job raises it, so an equal figure means that there was none.
 * @param known null: write in any case.
 */
export async function publishFreeSlots(
  db: Connection,
  jobId: number,
  { slots, free }: FreeSlots,
  known: number | null = null,
): Promise<boolean> {
  return (await db.rows(PUBLISH, [jobId, slots, free, known])).length > 0;
}

/** Read it before the job's runs: then every run for which a slot is missing here has been read. */
export async function offeredSlots(db: Connection, jobId: number): Promise<number> {
  return (await db.one<{ free_slots: number }>(OFFERED, [jobId]))?.free_slots ?? 0;
}

/** One executor of a scheduler. */
export interface ExecutorFacts {
  readonly name: string;
  readonly type: string;
  /** null: no limit. */
  readonly slots: number | null;
  /** Attempts that it has: running, or waiting for a process or a worker. */
  readonly active: number;
  /** What keeps it from starting attempts; null: nothing. */
  readonly problem: string | null;
}

/** The executor facts in a scheduler's row. */
export interface SlotFacts {
  /** The default first. */
  readonly executors: readonly ExecutorFacts[];
  /** Of the local executor; null: no limit. */
  readonly slots: number | null;
  readonly streaming_slots: number;
  /** Streaming tasks that have slots of either kind, or wait for a process. */
  readonly streaming_tasks: number;
}

export async function publishSlotFacts(db: Connection, jobId: number, facts: SlotFacts): Promise<void> {
  await db.rows(PUBLISH_FACTS, [jobId, JSON.stringify(facts)]);
}

/** Other schedulers, the one with most free slots first. */
export function livePeers(db: Connection, jobId: number): Promise<Peer[]> {
  return db.rows<Peer>(PEERS, [jobId]);
}

export interface HandOver {
  readonly from: number;
  readonly to: number;
  readonly runs: readonly { readonly id: number; readonly generation: number }[];
  /** The number of the peer's free slots that the runs will take. */
  readonly slots: number;
}

/** Returns the runs that belong to the peer now. */
export async function handOverRuns(
  db: Connection,
  { from, to, runs, slots }: HandOver,
): Promise<Set<number>> {
  const ids = runs.map(({ id }) => id);
  const generations = runs.map(({ generation }) => generation);
  const rows = await db.rows<{ id: number }>(HAND_OVER, [from, to, ids, generations, slots]);
  return new Set(rows.map(({ id }) => id));
}
