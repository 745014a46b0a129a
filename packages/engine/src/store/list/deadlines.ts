/** Deadlines and their deliveries, as the API lists them. */
import type { DeadlineAction } from "@tradewind/sdk/manifest";
import type { Connection } from "../database.ts";
import { COUNTED_EXACTLY, Conditions, first, type Listed, list, type Page } from "./query.ts";

export const DEADLINE_STATES = ["pending", "met", "missed"] as const;
export const DELIVERY_STATES = ["pending", "handed", "done", "dead"] as const;

export interface DeadlineRow {
  readonly id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly run_state: string;
  /** "": of the run. */
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

export interface DeliveryRow {
  readonly id: number;
  readonly deadline_id: number;
  readonly dag_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly action: DeadlineAction;
  readonly due_at: Date;
  readonly missed_at: Date;
  readonly state: (typeof DELIVERY_STATES)[number];
  readonly attempts: number;
  readonly next_try_at: Date;
  readonly error: string | null;
  readonly ended_at: Date | null;
}

export const DEADLINE_ORDER = { due_at: "d.due_at", id: "d.id", dag_id: "r.dag_id" } as const;
export const DELIVERY_ORDER = { id: "y.id", next_try_at: "y.next_try_at", missed_at: "y.missed_at" } as const;

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
      d.decided_at, (SELECT count(*)::int FROM deadline_delivery y WHERE y.deadline_id = d.id) AS deliveries,
      (SELECT count(*)::int FROM deadline_delivery y WHERE y.deadline_id = d.id AND y.state = 'done') AS done,
      (SELECT count(*)::int FROM deadline_delivery y WHERE y.deadline_id = d.id AND y.state = 'dead') AS dead`,
    from: "deadline d JOIN dag_run r ON r.id = d.dag_run_id",
    where: conditions(filter).oneOf("d.state", filter.states),
    order: DEADLINE_ORDER,
    tiebreak: "d.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

const DELIVERY_COLUMNS = `y.id, y.deadline_id, r.dag_id, r.run_id, d.task_id, y.action, y.due_at, y.missed_at, y.state,
  y.attempts, y.next_try_at, y.error, y.ended_at`;
const DELIVERY_FROM = `deadline_delivery y JOIN deadline d ON d.id = y.deadline_id JOIN dag_run r ON r.id = d.dag_run_id`;

export function listDeliveries(
  connection: Connection,
  filter: Filter & {
    readonly states?: readonly string[] | undefined;
    readonly deadlineId?: number | undefined;
  },
  page: Page,
): Promise<Listed<DeliveryRow>> {
  return list(connection, {
    columns: DELIVERY_COLUMNS,
    from: DELIVERY_FROM,
    where: conditions(filter).oneOf("y.state", filter.states).equals("y.deadline_id", filter.deadlineId),
    order: DELIVERY_ORDER,
    tiebreak: "y.id",
    page,
    countUpTo: COUNTED_EXACTLY,
  });
}

export function findDelivery(connection: Connection, id: number): Promise<DeliveryRow | undefined> {
  return first(connection, {
    columns: DELIVERY_COLUMNS,
    from: DELIVERY_FROM,
    where: new Conditions().equals("y.id", id),
  });
}

function conditions({ dagId, runId, taskId }: Filter): Conditions {
  return new Conditions().equals("r.dag_id", dagId).equals("r.run_id", runId).equals("d.task_id", taskId);
}
