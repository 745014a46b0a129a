/** Creates runs for users and tasks. */
import { randomBytes } from "node:crypto";
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { publishRuns } from "../task/state-signals.ts";
import { type ParentPlace, parentColumns } from "./child-runs.ts";

export interface CreateRunInput {
  readonly dagId: string;
  /** null: generated, e.g. `manual__<run_after, ISO>`, with a random suffix without a logical date. */
  readonly runId: string | null;
  readonly logicalDate: Date | null;
  /** Both or neither; without it, derived from the DAG's schedule if there is a logical date. */
  readonly interval: { readonly start: Date; readonly end: Date } | null;
  /** null: now. */
  readonly runAfter: Date | null;
  /** Already checked against the current version's `paramsSchema`. */
  readonly conf: { readonly [key: string]: Json };
  readonly note: string | null;
  /** "operator": a task of another run. */
  readonly triggeredBy: "rest_api" | "cli" | "ui" | "operator";
  readonly triggeringUser: string | null;
  /** The task that creates the run. */
  readonly parent?: ParentPlace;
}

export type CreateRunResult =
  | { readonly kind: "created"; readonly dagRunId: number }
  /** Another run has this run id or logical date. Must not abort the transaction (ON CONFLICT DO NOTHING). */
  | { readonly kind: "conflict"; readonly on: "run_id" | "logical_date"; readonly existingRunId: string }
  /** No such DAG, or its file is deleted (`dag.is_stale`), or it never had a valid version. */
  | { readonly kind: "unknown_dag" | "stale_dag" };

const DAG_FOR_RUN = statement(
  "edit-dag-for-run",
  "SELECT version_id, is_stale FROM dag WHERE dag_id = $1 FOR KEY SHARE",
);

const INSERT_RUN = statement(
  "edit-insert-run",
  `WITH added AS (
     INSERT INTO dag_run (dag_id, run_id, run_type, logical_date, interval_start, interval_end, run_after, conf, version_id,
                          triggered_by, triggering_user, note, parent_run_id, parent_task_id, parent_map_index, parent_try)
     VALUES ($1, $2, CASE WHEN $9 = 'operator' THEN 'operator_triggered' ELSE 'manual' END, $3, $4, $5, coalesce($6, now()), $7, $8, $9, $10, $11,
             (SELECT p.id FROM dag_run p WHERE p.id = $12), $13, $14, $15)
     ON CONFLICT DO NOTHING RETURNING id, dag_id, run_id, state
   ), told AS (${publishRuns("added")})
   SELECT id FROM added`,
);

const FIND_CONFLICT = statement(
  "edit-find-conflict",
  `SELECT run_id, run_id = $2 AS same_id FROM dag_run WHERE dag_id = $1 AND (run_id = $2 OR logical_date = $3)
   ORDER BY same_id DESC LIMIT 1`,
);

export async function createRun(tx: Connection, input: CreateRunInput): Promise<CreateRunResult> {
  const dag = await tx.one<{ version_id: number | null; is_stale: boolean }>(DAG_FOR_RUN, [input.dagId]);
  if (!dag) return { kind: "unknown_dag" };
  if (dag.is_stale || dag.version_id === null) return { kind: "stale_dag" };
  const runId = input.runId ?? defaultRunId(input);
  const interval =
    input.interval ?? (input.logicalDate ? { start: input.logicalDate, end: input.logicalDate } : null);
  const row = await tx.one<{ id: number }>(INSERT_RUN, [
    input.dagId,
    runId,
    input.logicalDate,
    interval?.start ?? null,
    interval?.end ?? null,
    input.runAfter,
    JSON.stringify(input.conf),
    dag.version_id,
    input.triggeredBy,
    input.triggeringUser,
    input.note,
    ...parentColumns(input.parent),
  ]);
  if (row) return { kind: "created", dagRunId: row.id };
  const other = await tx.one<{ run_id: string; same_id: boolean }>(FIND_CONFLICT, [
    input.dagId,
    runId,
    input.logicalDate,
  ]);
  return {
    kind: "conflict",
    on: other?.same_id ? "run_id" : "logical_date",
    existingRunId: other?.run_id ?? runId,
  };
}

function defaultRunId(input: CreateRunInput): string {
  const at = (input.logicalDate ?? input.runAfter ?? new Date()).toISOString();
  return input.logicalDate ? `manual__${at}` : `manual__${at}_${randomBytes(4).toString("hex")}`;
}
