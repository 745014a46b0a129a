/**
 * Current waits: deferrals whose trigger has not fired. There may be a million: the page is selected from `deferral`
 * alone, in an order that needs no other table, and the other columns are read for its rows.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { SIGNAL_KIND } from "../../model/trigger/engine-kinds.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { COUNTED_EXACTLY, Conditions, type ListedPage, listPage, type Page } from "../page/query.ts";
import { type PlacedInstance, withMapPlaces } from "./map-places.ts";
import { alive, FIRED, TRIGGER_STATE, type TriggerState, WAKE_AT } from "./triggers.ts";
import { waitedSignal } from "./waited-signal.ts";

export interface WaitRow extends PlacedInstance {
  readonly try_number: number;
  readonly trigger_id: number;
  readonly kind: string;
  readonly args: Json;
  readonly fired: readonly number[] | null;
  readonly queue: string;
  readonly trigger_state: TriggerState;
  readonly wake_at: Date | null;
  readonly name: string | null;
  readonly method: string | null;
  readonly deferred_at: Date;
  readonly timeout_at: Date | null;
  /** When the task's timeout ends the try, including its waits. */
  readonly task_timeout_at: Date | null;
  readonly owner_job: number | null;
  readonly owner_host: string | null;
  readonly owner_alive: boolean;
  readonly polled_at: Date | null;
}

export interface WaitFilter {
  readonly dagId?: string;
  readonly runId?: string;
  readonly taskId?: string;
  readonly kind?: string;
  readonly triggerId?: number;
  /** `namespace/key`, as the wait names it: a pattern matches only itself. */
  readonly signal?: string;
}

export const WAIT_ORDER = { since: "d.deferred_at", trigger_id: "d.waits_on" } as const;

export async function listWaiting(
  connection: Connection,
  filter: WaitFilter,
  page: Page,
): Promise<ListedPage<WaitRow>> {
  const chosen = await listPage<{ attempt: string }>(connection, {
    columns: "d.attempt",
    // A LEFT JOIN, so that the planner drops it if no condition uses it.
    from: "deferral d LEFT JOIN dag_run r ON r.id = d.dag_run_id",
    where: conditions(filter),
    order: WAIT_ORDER,
    // Not the attempt, although it is the key: a cursor would expose it, and its holder could report for the task.
    tiebreak:
      page.orderBy?.[0]?.endsWith("trigger_id") === true
        ? "d.waits_on, d.dag_run_id, d.task_id, d.map_index"
        : "d.deferred_at, d.dag_run_id, d.task_id, d.map_index",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
  const attempts = chosen.rows.map(({ attempt }) => attempt);
  if (attempts.length === 0) return { ...chosen, rows: [] };
  // A wait that ended between the two statements is missing, which is correct.
  const rows = await connection.rows<Omit<WaitRow, "place">>(DETAILS, [attempts]);
  return { ...chosen, rows: await withMapPlaces(connection, rows) };
}

function conditions(filter: WaitFilter): Conditions {
  const where = new Conditions();
  if (filter.signal !== undefined)
    where
      .equals("d.kind", SIGNAL_KIND)
      .raw(
        `EXISTS (SELECT FROM trigger g WHERE g.id = d.waits_on AND ${waitedSignal("g")} = ${where.bind(filter.signal)})`,
      );
  return where
    .raw("d.waits_on IS NOT NULL")
    .equals("d.waits_on", filter.triggerId)
    .equals("d.kind", filter.kind)
    .equals("d.task_id", filter.taskId)
    .equals("r.dag_id", filter.dagId)
    .equals("r.run_id", filter.runId);
}

/** Timeouts are read once per version and task: a manifest may have megabytes, and there may be thousands of rows. */
const DETAILS = statement(
  "list-waiting-details",
  `WITH wait AS MATERIALIZED (
     SELECT k.ordinality, d.*, r.dag_id, r.run_id, r.version_id, t.started_at
     FROM unnest($1::uuid[]) WITH ORDINALITY AS k (attempt, ordinality)
       JOIN deferral d USING (attempt) JOIN dag_run r ON r.id = d.dag_run_id
       LEFT JOIN task_instance t ON t.dag_run_id = d.dag_run_id AND t.task_id = d.task_id AND t.map_index = d.map_index
   ), own AS MATERIALIZED (
     SELECT asked.version_id, asked.task_id, (task->>'timeoutMs')::float8 AS timeout_ms
     FROM (SELECT DISTINCT version_id, task_id FROM wait) asked JOIN dag_version v ON v.id = asked.version_id,
       jsonb_array_elements(v.manifest->'tasks') task
     WHERE task->>'taskId' = asked.task_id
   )
   SELECT w.dag_run_id, w.version_id, w.dag_id, w.run_id, w.task_id, w.map_index, w.try_number, g.id AS trigger_id, g.kind, g.args, g.queue,
     ${TRIGGER_STATE} AS trigger_state, ${WAKE_AT}, ${FIRED}, w.name, w.method, w.deferred_at, w.timeout_at,
     w.started_at + own.timeout_ms * interval '1 millisecond' AS task_timeout_at,
     g.owner_job, j.hostname AS owner_host, ${alive("j")} AS owner_alive, g.polled_at
   FROM wait w JOIN trigger g ON g.id = w.waits_on LEFT JOIN job j ON j.id = g.owner_job
     LEFT JOIN own USING (version_id, task_id)
   ORDER BY w.ordinality`,
);
