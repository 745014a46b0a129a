/** Task outputs (XComs). */
import type { Json } from "@tradewind/sdk/manifest";
import type { LargeValue } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { adhoc } from "../database/statement.ts";
import { type StoredValue, withReferences } from "../output/output-objects.ts";
import { COUNTED_EXACTLY, type Conditions, first, type Listed, list, type Page } from "../page/query.ts";
import { type RunFilter, runConditions } from "./dag-runs.ts";

export interface XComRow {
  readonly dag_id: string;
  readonly run_id: string;
  readonly task_id: string;
  readonly map_index: number;
  readonly key: string;
  readonly created_at: Date;
  readonly logical_date: Date | null;
  readonly run_after: Date;
}

export interface XComFilter extends RunFilter {
  readonly taskIds?: readonly string[];
  readonly mapIndex?: number;
  readonly key?: string;
  readonly keyPattern?: string;
  readonly keyPrefix?: string;
  readonly taskIdPattern?: string;
  readonly taskIdPrefix?: string;
}

export const XCOM_ORDER = {
  dag_id: "r.dag_id",
  run_id: "r.run_id",
  task_id: "x.task_id",
  map_index: "x.map_index",
  key: "x.key",
  timestamp: "x.created_at",
  run_after: "r.run_after",
  logical_date: "r.logical_date",
} as const;

export function listXComs(connection: Connection, filter: XComFilter, page: Page): Promise<Listed<XComRow>> {
  return list(connection, {
    columns: COLUMNS,
    from: FROM,
    where: conditions(filter),
    order: XCOM_ORDER,
    tiebreak: "x.dag_run_id, x.task_id, x.map_index, x.key",
    page,
    countUpTo: filter.dagIds?.length === 1 && filter.runIds?.length === 1 ? undefined : COUNTED_EXACTLY,
  });
}

/** A large output has no value here: read it from its object store. */
export async function findXCom(
  connection: Connection,
  filter: Required<Pick<XComFilter, "dagIds" | "runIds" | "taskIds" | "mapIndex" | "key">>,
): Promise<(XComRow & { readonly value: Json | LargeValue }) | undefined> {
  const row = await first<XComRow & StoredValue>(connection, {
    columns: `${COLUMNS}, x.value, x.object_id`,
    from: FROM,
    where: conditions(filter),
  });
  return row && (await withReferences(connection, [row]))[0];
}

/** The outputs of these tasks of a run, mapped ones in the order of their indexes. */
export async function readOutputs(
  connection: Connection,
  dagRunId: number,
  taskIds: readonly string[],
): Promise<{ task_id: string; map_index: number; value: Json | LargeValue }[]> {
  const rows = await connection.rows<{ task_id: string; map_index: number } & StoredValue>(
    adhoc(`SELECT task_id, map_index, value, object_id FROM xcom
      WHERE dag_run_id = $1 AND task_id = ANY($2) AND key = 'return_value' ORDER BY task_id, map_index`),
    [dagRunId, [...taskIds]],
  );
  return await withReferences(connection, rows);
}

const COLUMNS =
  "r.dag_id, r.run_id, x.task_id, x.map_index, x.key, x.created_at, r.logical_date, r.run_after";
const FROM = "xcom x JOIN dag_run r ON r.id = x.dag_run_id";

function conditions(filter: XComFilter): Conditions {
  return runConditions(filter)
    .oneOf("x.task_id", filter.taskIds)
    .equals("x.map_index", filter.mapIndex)
    .equals("x.key", filter.key)
    .matches("x.key", filter.keyPattern)
    .startsWith("x.key", filter.keyPrefix)
    .matches("x.task_id", filter.taskIdPattern)
    .startsWith("x.task_id", filter.taskIdPrefix);
}
