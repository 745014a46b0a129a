/** Deadlines, as the API lists them. */
import type { Connection } from "../database/database.ts";
import { COUNTED_EXACTLY, Conditions, type Listed, list, type Page } from "../page/query.ts";

export const DEADLINE_STATES = ["pending", "met", "missed"] as const;

export interface DeadlineRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_state: string;
  /** "": the run itself. */
  readonly task_id: string;
  readonly ordinal: number;
  readonly counts_from: string;
  readonly due_at: Date;
  readonly state: (typeof DEADLINE_STATES)[number];
  readonly decided_at: Date | null;
  readonly deliveries: number;
  readonly done: number;
  readonly dead: number;
}

export const DEADLINE_ORDER = { due_at: "d.due_at", id: "d.id", dag_id: "r.dag_id" } as const;

interface Filter {
  readonly dagId?: string | undefined;
  readonly runId?: string | undefined;
  readonly taskId?: string | undefined;
}

export function listDeadlines(
  connection: Connection,
  filter: Filter & { readonly states?: readonly string[] | undefined },
  page: Page,
): Promise<Listed<DeadlineRow>> {
  return list(connection, {
    columns: `d.id, r.dag_id, r.run_id, r.state AS run_state, d.task_id, d.ordinal, d.counts_from, d.due_at, d.state,
      d.decided_at, (SELECT count(*)::int FROM delivery y WHERE y.deadline_id = d.id) AS deliveries,
      (SELECT count(*)::int FROM delivery y WHERE y.deadline_id = d.id AND y.state = 'done') AS done,
      (SELECT count(*)::int FROM delivery y WHERE y.deadline_id = d.id AND y.state = 'dead') AS dead`,
    from: "deadline d JOIN dag_run r ON r.id = d.dag_run_id",
    where: conditions(filter).oneOf("d.state", filter.states),
    order: DEADLINE_ORDER,
    tiebreak: "d.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

function conditions({ dagId, runId, taskId }: Filter): Conditions {
  return new Conditions().equals("r.dag_id", dagId).equals("r.run_id", runId).equals("d.task_id", taskId);
}
