/**
 * How the groups of a run stand that have retries or callbacks: which try they are at, when the next one begins, how they
 * have ended. Written by the run's owner in the batch of what it follows from, behind its fence; whoever takes the run over
 * decides the same by these rows. A callback of a group is a row of the same batch: it is called because the group has
 * ended, or the group has not.
 */
import { type Call, type Connection, call } from "./database.ts";
import { statement } from "./statement.ts";

export interface GroupWrite {
  readonly runId: number;
  readonly groupId: string;
  readonly state: string;
  readonly tryNumber: number;
  readonly maxTries: number;
  /** In milliseconds. */
  readonly retryAt: number | null;
}

export interface StoredGroup {
  readonly dag_run_id: number;
  readonly group_id: string;
  readonly state: "open" | "waiting" | "success" | "failed" | "skipped";
  readonly try_number: number;
  readonly max_tries: number;
  readonly retry_at: Date | null;
}

const STORE = statement(
  "group-store",
  `INSERT INTO run_group (dag_run_id, group_id, state, try_number, max_tries, retry_at)
   SELECT u.run, u.id, u.state, u.try_number, u.max_tries, to_timestamp(u.retry_at / 1000)
   FROM unnest($1::bigint[], $2::text[], $3::text[], $4::int[], $5::int[], $6::float8[])
     AS u(run, id, state, try_number, max_tries, retry_at)
   ON CONFLICT (dag_run_id, group_id) DO UPDATE SET state = EXCLUDED.state, try_number = EXCLUDED.try_number,
     max_tries = EXCLUDED.max_tries, retry_at = EXCLUDED.retry_at`,
);

const LOAD = statement(
  "group-load",
  `SELECT dag_run_id, group_id, state, try_number, max_tries, retry_at FROM run_group WHERE dag_run_id = ANY($1)`,
);

/** The part of a batch that says how groups stand. */
export function groupCalls(groups: readonly GroupWrite[]): Call[] {
  if (groups.length === 0) return [];
  return [
    call(
      STORE,
      groups.map(({ runId }) => runId),
      groups.map(({ groupId }) => groupId),
      groups.map(({ state }) => state),
      groups.map(({ tryNumber }) => tryNumber),
      groups.map(({ maxTries }) => maxTries),
      groups.map(({ retryAt }) => retryAt),
    ),
  ];
}

export async function loadGroups(db: Connection, runIds: readonly number[]): Promise<StoredGroup[]> {
  return runIds.length === 0 ? [] : await db.rows<StoredGroup>(LOAD, [runIds]);
}
