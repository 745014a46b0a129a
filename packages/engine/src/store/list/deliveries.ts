/** Deliveries of notices and missed deadlines, as the API lists them. */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { COUNTED_EXACTLY, Conditions, first, type Listed, list, type Page } from "../page/query.ts";

export const DELIVERY_STATES = ["pending", "handed", "done", "dead"] as const;
export const DELIVERY_EVENTS = ["success", "failure", "retry", "deadline"] as const;

export interface DeliveryRow {
  readonly id: number;
  readonly event: (typeof DELIVERY_EVENTS)[number];
  readonly deadline_id: number | null;
  readonly dag_id: string;
  readonly run_id: string;
  readonly task_id: string | null;
  readonly group_id: string | null;
  readonly map_index: number;
  readonly action: DeadlineAction;
  readonly occurred_at: Date;
  readonly state: (typeof DELIVERY_STATES)[number];
  readonly attempts: number;
  readonly next_try_at: Date;
  readonly error: string | null;
  readonly ended_at: Date | null;
}

export const DELIVERY_ORDER = {
  id: "y.id",
  next_try_at: "y.next_try_at",
  occurred_at: "y.occurred_at",
} as const;

const COLUMNS = `y.id, y.event, y.deadline_id, r.dag_id, r.run_id, y.task_id, y.group_id, y.map_index, y.action,
  y.occurred_at, y.state, y.attempts, y.next_try_at, y.error, y.ended_at`;
const FROM = "delivery y JOIN dag_run r ON r.id = y.dag_run_id";

export interface DeliveryFilter {
  readonly dagId?: string | undefined;
  readonly runId?: string | undefined;
  readonly taskId?: string | undefined;
  readonly events?: readonly string[] | undefined;
  readonly states?: readonly string[] | undefined;
  readonly deadlineId?: number | undefined;
}

export function listDeliveries(
  connection: Connection,
  filter: DeliveryFilter,
  page: Page,
): Promise<Listed<DeliveryRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where: new Conditions()
      .equals("r.dag_id", filter.dagId)
      .equals("r.run_id", filter.runId)
      .equals("y.task_id", filter.taskId)
      .oneOf("y.event", filter.events)
      .oneOf("y.state", filter.states)
      .equals("y.deadline_id", filter.deadlineId),
    order: DELIVERY_ORDER,
    tiebreak: "y.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

export function findDelivery(connection: Connection, id: number): Promise<DeliveryRow | undefined> {
  return first(connection, { columns: COLUMNS, from: FROM, where: new Conditions().equals("y.id", id) });
}
