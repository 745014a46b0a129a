/**
 * How the groups of a run stand that have retries or callbacks, and of a mapped group with retries each of its items: which
 * try they are at, when the next one begins, how they have ended. Written by the run's owner in the batch of what it follows
 * from, behind its fence; a process that takes the run over decides the same by these rows. A callback of a group is a row
 * of the same batch: it is called because the group has ended, or the group has not.
 */
import type { GroupRow } from "../../model/index.ts";
import { type Call, type Connection, call } from "../database/database.ts";
import { RowArrays } from "../database/row-arrays.ts";
import { statement } from "../database/statement.ts";

export interface GroupWrite {
  readonly runId: number;
  readonly groupId: string;
  /** -1: of the group, otherwise of one of its items. */
  readonly mapIndex: number;
  readonly state: string;
  readonly tryNumber: number;
  readonly maxTries: number;
  /** In milliseconds. */
  readonly retryAt: number | null;
}

export interface StoredGroup {
  readonly dag_run_id: number;
  readonly group_id: string;
  readonly map_index: number;
  readonly state: "open" | "waiting" | "success" | "failed" | "skipped";
  readonly try_number: number;
  readonly max_tries: number;
  readonly retry_at: Date | null;
}

const GROUPS = new RowArrays<GroupWrite>({
  dag_run_id: ["bigint", ({ runId }) => runId],
  group_id: ["text", ({ groupId }) => groupId],
  map_index: ["integer", ({ mapIndex }) => mapIndex],
  state: ["text", ({ state }) => state],
  try_number: ["integer", ({ tryNumber }) => tryNumber],
  max_tries: ["integer", ({ maxTries }) => maxTries],
  retry_at: ["instant", ({ retryAt }) => retryAt],
});

const STORE = statement(
  "group-store",
  `INSERT INTO run_group (${GROUPS.names}) SELECT * FROM ${GROUPS.source} AS u
   ON CONFLICT (dag_run_id, group_id, map_index) DO UPDATE SET state = EXCLUDED.state, try_number = EXCLUDED.try_number,
     max_tries = EXCLUDED.max_tries, retry_at = EXCLUDED.retry_at`,
);

const LOAD = statement(
  "group-load",
  `SELECT dag_run_id, group_id, map_index, state, try_number, max_tries, retry_at FROM run_group
   WHERE dag_run_id = ANY($1)`,
);

/** Of one run, for people to see: of the items of mapped groups those that have failed a try, and not all of thousands. */
const SHOW = statement(
  "group-show",
  `SELECT dag_run_id, group_id, map_index, state, try_number, max_tries, retry_at FROM run_group
   WHERE dag_run_id = $1 AND (map_index < 0 OR try_number > 1 OR state IN ('waiting', 'failed'))
   ORDER BY map_index >= 0, group_id, map_index LIMIT 200`,
);

export function groupCalls(groups: readonly GroupWrite[]): Call[] {
  return groups.length === 0 ? [] : [call(STORE, ...GROUPS.values(groups))];
}

export async function loadGroups(db: Connection, runIds: readonly number[]): Promise<StoredGroup[]> {
  return runIds.length === 0 ? [] : await db.rows<StoredGroup>(LOAD, [runIds]);
}

export async function showGroups(db: Connection, runId: number): Promise<StoredGroup[]> {
  return await db.rows<StoredGroup>(SHOW, [runId]);
}

export function groupRow({ group_id, map_index, max_tries, retry_at, ...row }: StoredGroup): GroupRow {
  const { state, try_number } = row;
  const retryAt = retry_at?.getTime() ?? null;
  return {
    groupId: group_id,
    mapIndex: map_index,
    state,
    tryNumber: try_number,
    maxTries: max_tries,
    retryAt,
  };
}
