/**
 * The grid of a DAG: its latest runs, and the state of each task in each of them. A run with hundreds of tasks is one row
 * here: its states are one string, so that neither the database nor the driver handles a row per cell.
 */
import { ALL_TASK_STATES, type RunState, type TaskState } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { Conditions, type ListedPage, listPage, type Page } from "../page/query.ts";

export interface GridRun {
  readonly id: number;
  readonly run_id: string;
  readonly run_type: string;
  readonly state: RunState;
  readonly logical_date: Date | null;
  readonly run_after: Date;
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly version: number;
  readonly try_number: number;
  readonly has_note: boolean;
}

export interface GridFilter {
  readonly dagId: string;
  readonly runId?: string | undefined;
  readonly states?: readonly string[] | undefined;
  readonly runTypes?: readonly string[] | undefined;
}

/** The newest first. Index: dag_run_latest, or dag_run_failed for failed runs. */
export function listGridRuns(
  connection: Connection,
  { dagId, runId, runTypes, states }: GridFilter,
  page: Page,
): Promise<ListedPage<GridRun>> {
  const where = new Conditions()
    .equals("r.dag_id", dagId)
    .equals("r.run_id", runId)
    .oneOf("r.run_type", runTypes)
    .oneOf("r.state", states);
  return listPage(connection, {
    columns: `r.id, r.run_id, r.run_type, r.state, r.logical_date, r.run_after, r.queued_at, r.started_at, r.ended_at,
      v.number AS version, r.try_number, r.note IS NOT NULL AS has_note`,
    from: "dag_run r JOIN dag_version v ON v.id = r.version_id",
    where,
    order: { run_after: "r.run_after", id: "r.id" },
    tiebreak: "r.run_after, r.id",
    page: { ...page, orderBy: ["-run_after", "-id"] },
  });
}

/** One task of one run. */
interface GridCell {
  readonly state: TaskState;
  readonly tries: number;
}

/** The instances of a mapped task that have one state. */
interface MappedCount {
  readonly dag_run_id: number;
  readonly task_id: string;
  readonly state: TaskState;
  readonly instances: number;
  readonly tries: number;
}

export interface GridColumn {
  /** By position in the given tasks; absent: no instance. */
  readonly cells: ReadonlyMap<number, GridCell>;
  /** Tasks of the run that are not among the given ones. */
  readonly others: ReadonlyMap<string, GridCell>;
  readonly mapped: readonly MappedCount[];
}

/** More tries are shown as this number: one character of the string. */
export const MOST_TRIES = 60;
const FIRST_CHARACTER = 48;

const character = (number: string) => `chr(${FIRST_CHARACTER} + ${number})`;
const KNOWN = "FILTER (WHERE p.at IS NOT NULL)";

const CELLS = statement(
  "ui-grid-cells",
  `WITH place AS MATERIALIZED (
     SELECT p.task_id, p.at FROM unnest($2::text[]) WITH ORDINALITY AS p(task_id, at)
   ), code AS MATERIALIZED (
     SELECT s.state, ${character("s.at::int")} AS code FROM unnest($3::text[]) WITH ORDINALITY AS s(state, at)
   )
   SELECT t.dag_run_id, string_agg(p.at::text, ',') ${KNOWN} AS places, string_agg(c.code, '') ${KNOWN} AS states,
     string_agg(${character(`least(t.try_number, ${MOST_TRIES})`)}, '') ${KNOWN} AS tries,
     json_agg(json_build_array(t.task_id, t.state, t.try_number)) FILTER (WHERE p.at IS NULL) AS others
   FROM task_instance t JOIN code c ON c.state = t.state LEFT JOIN place p ON p.task_id = t.task_id
   WHERE t.dag_run_id = ANY($1::int8[]) AND t.map_index = -1 GROUP BY t.dag_run_id`,
);

/** Only for runs with an expanded map; others are not scanned again. */
const MAPPED = statement(
  "ui-grid-mapped",
  `SELECT t.dag_run_id, t.task_id, t.state, count(*)::int AS instances, max(t.try_number) AS tries
   FROM (SELECT DISTINCT m.dag_run_id FROM map_expansion m WHERE m.dag_run_id = ANY($1::int8[])) r
     JOIN task_instance t USING (dag_run_id)
   WHERE t.map_index <> -1 GROUP BY t.dag_run_id, t.task_id, t.state`,
);

interface CellsRow {
  readonly dag_run_id: number;
  readonly places: string | null;
  readonly states: string | null;
  readonly tries: string | null;
  readonly others: readonly [string, TaskState, number][] | null;
}

/** By run; a run without instances is missing. */
export async function readGridColumns(
  connection: Connection,
  dagRunIds: readonly number[],
  taskIds: readonly string[],
): Promise<ReadonlyMap<number, GridColumn>> {
  if (dagRunIds.length === 0) return new Map();
  const [rows, counts] = await Promise.all([
    connection.rows<CellsRow>(CELLS, [dagRunIds, taskIds, ALL_TASK_STATES]),
    connection.rows<MappedCount>(MAPPED, [dagRunIds]),
  ]);
  const mapped = Map.groupBy(counts, ({ dag_run_id }) => dag_run_id);
  const cells = new Map(rows.map((row) => [row.dag_run_id, row]));
  return new Map(
    [...new Set([...cells.keys(), ...mapped.keys()])].map((id) => [
      id,
      { ...readCells(cells.get(id)), mapped: mapped.get(id) ?? [] },
    ]),
  );
}

function readCells(row: CellsRow | undefined): Pick<GridColumn, "cells" | "others"> {
  const cells = new Map<number, GridCell>();
  const { others, places, states, tries } = row ?? {};
  if (places != null && states != null && tries != null)
    for (const [index, place] of places.split(",").entries())
      cells.set(Number(place) - 1, {
        state: ALL_TASK_STATES[states.charCodeAt(index) - FIRST_CHARACTER - 1]!,
        tries: tries.charCodeAt(index) - FIRST_CHARACTER,
      });
  return {
    cells,
    others: new Map((others ?? []).map(([taskId, state, count]) => [taskId, { state, tries: count }])),
  };
}
