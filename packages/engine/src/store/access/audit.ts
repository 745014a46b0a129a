/**
 * The audit log. A row is written in the transaction of the action, so that neither exists without the other. The same
 * transaction sends a signal in the namespace `action`, keyed by the object of the action. `details` never carries a
 * secret: callers pass the names of changed fields, not values. The signal carries no details.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, first, type Listed, list, type Page } from "../page/query.ts";
import { sendSignals } from "../signal/signals.ts";

/** An action and its object. `start`, `restart` and `stop` alone are reserved for manual commands (manual-commands.ts). */
export type Deed = {
  readonly action: string;
  readonly details?: { readonly [key: string]: Json };
  /** True for a manual command, which has a signal already. */
  readonly isTold?: boolean;
} & (
  | {
      readonly dagId: string;
      readonly runId?: string;
      readonly taskId?: string;
      readonly mapIndex?: number;
    }
  /** Neither a run nor a task: `pools/<name>`, or the ids of several DAGs. */
  | { readonly about: string | readonly string[] }
);

export type AuditEntry = Deed & { readonly actor: string };

/** Call it once per transaction, as the last step: its signal locks block other actions on the same objects. */
export async function recordAudit(tx: Connection, entry: AuditEntry): Promise<void> {
  const { action, actor, details, isTold = false } = entry;
  const { dagId = null, runId = null, taskId = null, mapIndex = null } = "dagId" in entry ? entry : {};
  const found = details === undefined ? null : JSON.stringify(details);
  await tx.rows(INSERT_AUDIT, [actor, action, dagId, runId, taskId, mapIndex, found]);
  if (isTold) return;
  const value = { action, by: actor, ...(mapIndex === null ? {} : { mapIndex }) };
  const keys = "dagId" in entry ? [keyOf(entry)] : [entry.about].flat();
  await sendSignals(
    tx,
    keys.map((key) => ({ namespace: "action", key, value, sender: actor })),
  );
}

function keyOf({ dagId, runId, taskId }: Extract<AuditEntry, { dagId: string }>): string {
  return [dagId, runId, taskId].filter((part) => part !== undefined).join("/");
}

export interface AuditRow {
  readonly id: number;
  readonly at: Date;
  readonly actor: string;
  readonly action: string;
  readonly dag_id: string | null;
  readonly run_id: string | null;
  readonly task_id: string | null;
  readonly map_index: number | null;
  readonly details: Json;
}

export interface AuditFilter {
  readonly dagId?: string;
  readonly runId?: string;
  readonly taskId?: string;
  readonly mapIndex?: number;
  readonly actor?: string;
  readonly action?: string;
  readonly included?: readonly string[];
  readonly excluded?: readonly string[];
  readonly before?: Date;
  readonly after?: Date;
  readonly dagIdPattern?: string;
  readonly runIdPattern?: string;
  readonly taskIdPattern?: string;
  readonly actorPattern?: string;
  readonly actionPattern?: string;
  readonly dagIdPrefix?: string;
  readonly runIdPrefix?: string;
  readonly taskIdPrefix?: string;
  readonly actorPrefix?: string;
  readonly actionPrefix?: string;
  /** Matches nothing: the filter names an unknown kind of event. */
  readonly nothing?: boolean;
}

export const AUDIT_ORDER = {
  id: "a.id",
  event_log_id: "a.id",
  when: "a.at",
  dttm: "a.at",
  dag_id: "a.dag_id",
  run_id: "a.run_id",
  task_id: "a.task_id",
  map_index: "a.map_index",
  event: "a.action",
  owner: "a.actor",
  extra: "a.details::text",
  // Audit events have no logical date; the column exists in Airflow's API.
  logical_date: "NULL::timestamptz",
} as const;

export function listAudit(
  connection: Connection,
  filter: AuditFilter,
  page: Page,
): Promise<Listed<AuditRow>> {
  const where = new Conditions()
    .equals("a.dag_id", filter.dagId)
    .equals("a.run_id", filter.runId)
    .equals("a.task_id", filter.taskId)
    .equals("a.map_index", filter.mapIndex)
    .equals("a.actor", filter.actor)
    .equals("a.action", filter.action)
    .oneOf("a.action", filter.included)
    .between("a.at", { lt: filter.before, gt: filter.after })
    .matches("a.dag_id", filter.dagIdPattern)
    .matches("a.run_id", filter.runIdPattern)
    .matches("a.task_id", filter.taskIdPattern)
    .matches("a.actor", filter.actorPattern)
    .matches("a.action", filter.actionPattern)
    .startsWith("a.dag_id", filter.dagIdPrefix)
    .startsWith("a.run_id", filter.runIdPrefix)
    .startsWith("a.task_id", filter.taskIdPrefix)
    .startsWith("a.actor", filter.actorPrefix)
    .startsWith("a.action", filter.actionPrefix)
    .nothingIf(filter.nothing);
  if (filter.excluded !== undefined && filter.excluded.length > 0) {
    where.raw(`a.action <> ALL(${where.bind(filter.excluded)})`);
  }
  return list(connection, {
    columns: COLUMNS,
    from: "audit_event a",
    where,
    order: AUDIT_ORDER,
    tiebreak: "a.id",
    page,
  });
}

export function findAudit(connection: Connection, id: number): Promise<AuditRow | undefined> {
  return first(connection, {
    columns: COLUMNS,
    from: "audit_event a",
    where: new Conditions().equals("a.id", id),
  });
}

const COLUMNS = "a.id, a.at, a.actor, a.action, a.dag_id, a.run_id, a.task_id, a.map_index, a.details";

const INSERT_AUDIT = statement(
  "audit-insert",
  `INSERT INTO audit_event (actor, action, dag_id, run_id, task_id, map_index, details)
   VALUES ($1, $2, $3, $4, $5, $6, $7)`,
);
