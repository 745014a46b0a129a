/**
 * A user ends a run whose setups have not been torn down: the teardowns still run, and the end state is stored with the
 * run (`ending`, and the reason in `end_reason`) until they have ended. The owner, also after a takeover, starts nothing
 * but the teardowns and then ends the run. A second request also ends the teardowns: one of them may hang.
 */
import { pendingTeardowns, type TaskState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";

const TEARDOWNS = statement(
  "ending-teardowns",
  `SELECT k.task->>'taskId' AS task_id, k.task->'teardown'->>'of' AS setup_id
   FROM dag_version v, jsonb_array_elements(v.manifest->'tasks') AS k(task)
   WHERE v.id = $1 AND k.task->>'role' = 'teardown'`,
);

/** The run stays with its owner, which reloads it, or in the queue until it has one. */
const ASK = statement(
  "ending-ask",
  `UPDATE dag_run SET ending = $2, end_reason = $3, retry_at = NULL, generation = generation + 1 WHERE id = $1`,
);

interface Row {
  readonly task_id: string;
  readonly map_index: number;
  readonly state: string;
}

interface Ending {
  readonly run: { readonly id: number; readonly version_id: number; readonly state: string };
  readonly state: "success" | "failed";
  readonly reason: string;
}

/** From all instances of a run that this transaction has locked: the teardowns that run before it ends. */
export async function teardownsLeft<R extends Row>(
  tx: Connection,
  { state, ending, version_id }: Ending["run"] & { readonly ending: string | null },
  rows: readonly R[],
): Promise<ReadonlySet<R>> {
  // A queued run may have run before: it was cleared, or returned to the queue.
  const isOpen = state === "running" || state === "queued";
  if (!isOpen || ending !== null || rows.length === 0) return new Set();
  const found = await tx.rows<{ task_id: string; setup_id: string }>(TEARDOWNS, [version_id]);
  if (found.length === 0) return new Set();
  const setupOf = new Map(found.map(({ setup_id, task_id }) => [task_id, setup_id]));
  const placed = rows.map((row) => {
    return { row, taskId: row.task_id, mapIndex: row.map_index, state: row.state as TaskState };
  });
  return new Set(pendingTeardowns(setupOf, placed).map(({ row }) => row));
}

export async function requestEnd(tx: Connection, { reason, run, state }: Ending): Promise<void> {
  await tx.rows(ASK, [run.id, state, reason]);
}
