/**
 * Pools in the API. `occupied` belongs to the scheduler and changes only with a task's state; it is only read here. The
 * counts by state come from unfinished runs alone, so their cost does not grow with history. Names that begin with "@"
 * are internal counters and are neither shown nor changed.
 */
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type Listed, list, type Page } from "../page/query.ts";

export const DEFAULT_POOL = "default_pool";

export interface PoolRow {
  readonly name: string;
  readonly slots: number;
  readonly occupied: number;
  readonly include_deferred: boolean;
  readonly description: string | null;
  readonly running: number;
  readonly queued: number;
  readonly scheduled: number;
  readonly deferred: number;
}

export interface PoolValues {
  readonly slots: number;
  readonly description: string | null;
  readonly includeDeferred: boolean;
}

export const POOL_ORDER = { id: "p.name", name: "p.name", pool: "p.name", slots: "p.slots" } as const;

export function listPools(
  connection: Connection,
  filter: { name?: string; pattern?: string; prefix?: string },
  page: Page,
): Promise<Listed<PoolRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where: new Conditions()
      .raw("NOT starts_with(p.name, '@')")
      .equals("p.name", filter.name)
      .matches("p.name", filter.pattern)
      .startsWith("p.name", filter.prefix),
    order: POOL_ORDER,
    tiebreak: "p.name",
    page,
  });
}

export async function findPool(connection: Connection, name: string): Promise<PoolRow | undefined> {
  return (await listPools(connection, { name }, { limit: 1, offset: 0 })).rows[0];
}

/** The user's settings of a pool, locked until the end of the transaction; internal counters are excluded. */
export function lockPool(
  tx: Connection,
  name: string,
): Promise<Pick<PoolRow, "slots" | "description" | "include_deferred"> | undefined> {
  return tx.one(LOCK_VALUES, [name]);
}

/** Returns whether it was created; false: the name exists. */
export async function createPool(tx: Connection, name: string, values: PoolValues): Promise<boolean> {
  const row = await tx.one(INSERT_POOL, [name, values.slots, values.description, values.includeDeferred]);
  return row !== undefined;
}

/** Undefined fields keep their value. Slots may drop below the occupied number: no new task starts until it fits. */
export async function updatePool(
  tx: Connection,
  name: string,
  values: Partial<PoolValues>,
): Promise<boolean> {
  const row = await tx.one(UPDATE_POOL, [
    name,
    values.slots ?? null,
    values.description !== undefined,
    values.description ?? null,
    values.includeDeferred ?? null,
  ]);
  return row !== undefined;
}

/** Rejects a pool that tasks occupy: its counter must exist until they release their slots. */
export async function deletePool(
  tx: Connection,
  name: string,
): Promise<"deleted" | "occupied" | "not_found"> {
  const row = await tx.one<{ occupied: number }>(LOCK_POOL, [name]);
  if (row === undefined) return "not_found";
  if (row.occupied > 0) return "occupied";
  await tx.rows(DELETE_POOL, [name]);
  return "deleted";
}

const COLUMNS = `p.name, p.slots, p.occupied, p.include_deferred, p.description, COALESCE(c.running, 0) AS running,
  COALESCE(c.queued, 0) AS queued, COALESCE(c.scheduled, 0) AS scheduled, COALESCE(c.deferred, 0) AS deferred`;

const FROM = `pool p LEFT JOIN (
    SELECT t.pool,
      sum(t.pool_slots) FILTER (WHERE t.state = 'running')::int8 AS running,
      sum(t.pool_slots) FILTER (WHERE t.state = 'queued')::int8 AS queued,
      sum(t.pool_slots) FILTER (WHERE t.state = 'scheduled')::int8 AS scheduled,
      sum(t.pool_slots) FILTER (WHERE t.state = 'deferred')::int8 AS deferred
    FROM dag_run r JOIN task_instance t ON t.dag_run_id = r.id
    WHERE r.state = 'running' AND t.state IN ('running', 'queued', 'scheduled', 'deferred') GROUP BY t.pool
  ) c ON c.pool = p.name`;

const INSERT_POOL = statement(
  "pool-insert",
  `INSERT INTO pool (name, slots, description, include_deferred) VALUES ($1, $2, $3, $4)
   ON CONFLICT (name) DO NOTHING RETURNING name`,
);

const UPDATE_POOL = statement(
  "pool-update",
  `UPDATE pool SET slots = COALESCE($2, slots), description = CASE WHEN $3 THEN $4 ELSE description END,
     include_deferred = COALESCE($5, include_deferred)
   WHERE name = $1 RETURNING name`,
);

/** Waits for a scheduler that is changing the count. */
const LOCK_POOL = statement("pool-lock", "SELECT occupied FROM pool WHERE name = $1 FOR UPDATE");

const LOCK_VALUES = statement(
  "pool-lock-values",
  `SELECT slots, description, include_deferred FROM pool WHERE name = $1 AND NOT starts_with(name, '@') FOR UPDATE`,
);

const DELETE_POOL = statement("pool-delete", "DELETE FROM pool WHERE name = $1");
