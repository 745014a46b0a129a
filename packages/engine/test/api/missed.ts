/** Deadlines and deliveries as rows, as hosts write them. */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import type { Installation } from "./installation.ts";

export interface DeadlineSeed {
  readonly dagRunId: number;
  readonly taskId?: string;
  readonly ordinal?: number;
  readonly state?: string;
  readonly dueAt?: Date;
}

export async function addDeadline(tw: Installation, seed: DeadlineSeed): Promise<number> {
  const {
    dagRunId,
    dueAt = new Date("2026-01-01T10:00:00Z"),
    ordinal = 0,
    state = "missed",
    taskId = "",
  } = seed;
  const [row] = await tw.sql<{ id: number }>(
    `INSERT INTO deadline (dag_run_id, task_id, ordinal, counts_from, actions, due_at, clear_number, state, decided_at)
     VALUES ($1, $2, $3, 'queued', '[]', $4, 0, $5, CASE WHEN $5 = 'pending' THEN NULL ELSE now() END) RETURNING id`,
    [dagRunId, taskId, ordinal, dueAt, state],
  );
  return row?.id ?? 0;
}

export async function addDelivery(
  tw: Installation,
  deadlineId: number,
  action: DeadlineAction,
  how: { readonly state?: string; readonly attempts?: number; readonly error?: string } = {},
): Promise<number> {
  const { attempts = 8, error = null, state = "dead" } = how;
  const [row] = await tw.sql<{ id: number }>(
    `INSERT INTO delivery (dag_run_id, event, deadline_id, task_id, place, action, report, state, attempts, error)
     SELECT dag_run_id, 'deadline', id, nullif(task_id, ''), 0, $2, '{}', $3, $4, $5 FROM deadline WHERE id = $1
     RETURNING id`,
    [deadlineId, JSON.stringify(action), state, attempts, error],
  );
  return row?.id ?? 0;
}
