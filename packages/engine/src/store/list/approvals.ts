/**
 * Approvals, open and closed: waits that a person ends. The id is that of the wait's own trigger. A page is selected from
 * `deferral` and the columns of other tables are read for its rows, as for other waits (waiting.ts).
 */
import type { ApprovalRequest } from "@tradewind/sdk/approval-request";
import type { ApprovalManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { COUNTED_EXACTLY, Conditions, type ListedPage, listPage, type Page } from "../page/query.ts";
import type { WaitOutcome } from "../trigger/trigger-fire.ts";
import { type PlacedInstance, withMapPlaces } from "./map-places.ts";

export const APPROVAL_STATES = ["open", "answered", "timed_out", "cancelled"] as const;
type ApprovalState = (typeof APPROVAL_STATES)[number];

export interface ApprovalRow extends PlacedInstance {
  readonly id: number;
  readonly try_number: number;
  readonly state: ApprovalState;
  readonly request: ApprovalRequest;
  /** Of the run's version; null: it no longer has this approval. */
  readonly approval: ApprovalManifest | null;
  readonly opened_at: Date;
  readonly expires_at: Date | null;
  readonly answered_by: string | null;
  /** The end of the wait, also by a timeout or an edit. */
  readonly closed_at: Date | null;
  readonly outcome: WaitOutcome | { readonly kind: "timeout" } | null;
}

export interface ApprovalFilter {
  readonly dagId?: string;
  readonly runId?: string;
  readonly taskId?: string;
  readonly states?: readonly ApprovalState[];
  readonly assignee?: string;
}

export const APPROVAL_ORDER = { id: "d.trigger_id" } as const;

/** By the text of its condition: an open approval is found by the index of open waits. */
const IS_STATE: Readonly<Record<ApprovalState, string>> = {
  open: "d.waits_on IS NOT NULL",
  answered: "d.answered_by IS NOT NULL",
  timed_out:
    "(d.waits_on IS NULL AND d.answered_by IS NULL AND (d.fired_at IS NOT NULL OR d.end_kind = 'timeout'))",
  cancelled: "(d.answered_by IS NULL AND d.fired_at IS NULL AND d.end_kind = 'cancelled')",
};

const STATE = `CASE WHEN ${IS_STATE.open} THEN 'open' WHEN ${IS_STATE.answered} THEN 'answered'
  WHEN ${IS_STATE.timed_out} THEN 'timed_out' ELSE 'cancelled' END`;

export async function listApprovals(
  connection: Connection,
  { assignee, dagId, runId, states = [], taskId }: ApprovalFilter,
  page: Page,
): Promise<ListedPage<ApprovalRow>> {
  const where = new Conditions()
    .raw("d.kind = 'tradewind.approval'")
    .equals("d.task_id", taskId)
    .equals("r.dag_id", dagId)
    .equals("r.run_id", runId);
  if (states.length > 0) where.raw(`(${states.map((state) => IS_STATE[state]).join(" OR ")})`);
  // The engine stores only requests that jsonb can represent (isWait).
  if (assignee !== undefined)
    where.raw(`d.kwargs::jsonb->'assignees' @> to_jsonb(${where.bind(assignee)}::text)`);
  const chosen = await listPage<{ id: number }>(connection, {
    columns: "d.trigger_id AS id",
    // A LEFT JOIN, so that the planner drops it if no condition uses it.
    from: "deferral d LEFT JOIN dag_run r ON r.id = d.dag_run_id",
    where,
    order: APPROVAL_ORDER,
    tiebreak: "d.trigger_id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
  const rows = await details(
    connection,
    chosen.rows.map(({ id }) => id),
  );
  return { ...chosen, rows };
}

export async function findApproval(connection: Connection, id: number): Promise<ApprovalRow | undefined> {
  return (await details(connection, [id]))[0];
}

async function details(connection: Connection, ids: readonly number[]): Promise<ApprovalRow[]> {
  if (ids.length === 0) return [];
  const rows = await connection.rows<Omit<ApprovalRow, "place">>(DETAILS, [ids]);
  return withMapPlaces(connection, rows);
}

/** Manifests are read once per version and task: one may have megabytes. */
const DETAILS = statement(
  "list-approval-details",
  `WITH wait AS MATERIALIZED (
     SELECT k.ordinality, d.*, r.dag_id, r.run_id, r.version_id
     FROM unnest($1::bigint[]) WITH ORDINALITY AS k (id, ordinality)
       JOIN deferral d ON d.trigger_id = k.id AND d.kind = 'tradewind.approval'
       JOIN dag_run r ON r.id = d.dag_run_id
   ), own AS MATERIALIZED (
     SELECT asked.version_id, asked.task_id, task->'approval' AS approval
     FROM (SELECT DISTINCT version_id, task_id FROM wait) asked JOIN dag_version v ON v.id = asked.version_id,
       jsonb_array_elements(v.manifest->'tasks') task
     WHERE task->>'taskId' = asked.task_id
   )
   SELECT d.trigger_id AS id, d.dag_run_id, d.version_id, d.dag_id, d.run_id, d.task_id, d.map_index, d.try_number,
     ${STATE} AS state, d.kwargs AS request, own.approval, d.deferred_at AS opened_at,
     coalesce(d.timeout_at, NULLIF(g.wake_at, 'infinity'),
              d.deferred_at + (own.approval->>'timeoutMs')::float8 * interval '1 millisecond') AS expires_at,
     d.answered_by, coalesce(d.fired_at, d.ended_at) AS closed_at, d.outcome
   FROM wait d LEFT JOIN trigger g ON g.id = d.waits_on LEFT JOIN own USING (version_id, task_id)
   ORDER BY d.ordinality`,
);
