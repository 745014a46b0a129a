/**
 * The lengths of the lists that maps of a run expand over, and the labels of their instances. Only the batch of the run's
 * owner writes them, together with the instances. After a lost reply the owner creates the same instances with the same
 * indexes and labels again.
 */
import type { MapChanges } from "../../model/index.ts";
import { type Call, type Connection, call } from "../database/database.ts";
import { statement } from "../database/statement.ts";

export interface LoadedExpansion {
  readonly dag_run_id: number;
  readonly map_id: string;
  readonly parent: number;
  readonly base: number;
  readonly length: number;
  readonly tries: number;
}

/** The changed maps of one run. */
export interface MapWrite extends MapChanges {
  readonly runId: number;
}

const LOAD = statement(
  "maps-load",
  "SELECT dag_run_id, map_id, parent, base, length, tries FROM map_expansion WHERE dag_run_id = ANY($1)",
);

/** New instances with the same indexes belong to other items: they must not find outputs, steps, waits or labels of these. */
const DROP = statement(
  "maps-drop-instances",
  `WITH forgotten AS (
     DELETE FROM xcom x USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE x.dag_run_id = u.run AND x.task_id = u.task AND x.map_index = u.map
   ), steps AS (
     DELETE FROM journal j USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE j.dag_run_id = u.run AND j.task_id = u.task AND j.map_index = u.map
   ), waits AS (
     DELETE FROM deferral d USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE d.dag_run_id = u.run AND d.task_id = u.task AND d.map_index = u.map
   ), names AS (
     DELETE FROM map_label l USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
     WHERE l.dag_run_id = u.run AND l.task_id = u.task AND l.map_index = u.map
   )
   DELETE FROM task_instance t USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, task, map)
   WHERE t.dag_run_id = u.run AND t.task_id = u.task AND t.map_index = u.map`,
);

const CLOSE = statement(
  "maps-close",
  `DELETE FROM map_expansion m USING unnest($1::bigint[], $2::text[], $3::int[]) AS u(run, map, parent)
   WHERE m.dag_run_id = u.run AND m.map_id = u.map AND m.parent = u.parent`,
);

const OPEN = statement(
  "maps-open",
  `INSERT INTO map_expansion (dag_run_id, map_id, parent, base, length, tries)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::int[], $5::int[], $6::int[])`,
);

/** Overwrites a label that a task of an earlier version has left. */
const LABEL = statement(
  "maps-label",
  `INSERT INTO map_label (dag_run_id, task_id, map_index, label)
   SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::text[])
   ON CONFLICT (dag_run_id, task_id, map_index) DO UPDATE SET label = EXCLUDED.label`,
);

export function loadExpansions(db: Connection, runIds: readonly number[]): Promise<LoadedExpansion[]> {
  return db.rows<LoadedExpansion>(LOAD, [runIds]);
}

/** Runs before the instances are inserted: a dropped instance may be created again. */
export function mapCalls(writes: readonly MapWrite[]): Call[] {
  const calls: Call[] = [];
  const dropped = rowsOf(writes, "dropped");
  const closed = rowsOf(writes, "closed");
  const opened = rowsOf(writes, "opened");
  const labels = rowsOf(writes, "labels");
  if (dropped.length > 0) calls.push(call(DROP, ...columns(dropped, ["runId", "taskId", "mapIndex"])));
  if (closed.length > 0) calls.push(call(CLOSE, ...columns(closed, ["runId", "mapId", "parent"])));
  if (opened.length > 0)
    calls.push(call(OPEN, ...columns(opened, ["runId", "mapId", "parent", "base", "length", "tries"])));
  if (labels.length > 0)
    calls.push(call(LABEL, ...columns(labels, ["runId", "taskId", "mapIndex", "label"])));
  return calls;
}

function rowsOf<K extends keyof MapChanges>(
  writes: readonly MapWrite[],
  kind: K,
): (MapChanges[K][number] & { readonly runId: number })[] {
  return writes.flatMap((write) => write[kind].map((each) => ({ ...each, runId: write.runId })));
}

function columns<R>(rows: readonly R[], names: readonly (keyof R)[]): R[keyof R][][] {
  return names.map((name) => rows.map((row) => row[name]));
}
