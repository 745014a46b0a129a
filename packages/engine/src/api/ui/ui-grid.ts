/** `/ui/dags/{dag_id}/grid`: the states of all tasks in the latest runs, one byte per cell. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import { worstState } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { type DagRow, findDag } from "../../store/list/dags.ts";
import {
  type GridColumn,
  type GridRun,
  listGridRuns,
  MOST_TRIES,
  readGridColumns,
} from "../../store/ui/grid.ts";
import { noDag } from "../dag/dags.ts";
import { RUN_KINDS } from "../run/run-types.ts";
import type { Resource } from "../server/context.ts";
import { cursorPageOf, date, id, int, iso, many, nullableDate, RUN_STATES } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { bytes, legend, TASK_LEGEND, taskByte, UI_TAG } from "./columns.ts";
import { taskTree, treeEdgesDocument, treeGroupDocument, treeTaskDocument } from "./task-tree.ts";

const columnDocument = z
  .object({
    run_id: z.string(),
    run_type: z.enum(RUN_KINDS),
    state: z.enum(RUN_STATES),
    logical_date: nullableDate,
    run_after: date,
    queued_at: date,
    started_at: nullableDate,
    ended_at: nullableDate,
    version: z.number(),
    try_number: z.number(),
    has_note: z.boolean(),
    states: bytes.describe("Base64: one byte per task, then one per removed task."),
    tries: bytes
      .nullable()
      .describe(`Base64: the try of each, up to ${MOST_TRIES}. Null: none has more than one.`),
    mapped: z
      .array(
        z.object({
          at: z.number().describe("The position of a mapped task."),
          counts: z
            .array(z.tuple([z.number(), z.number()]))
            .describe("Byte of a state, number of instances."),
        }),
      )
      .describe("Mapped tasks; their byte in `states` is the worst of these."),
  })
  .meta({ id: "UiGridRun" });

const shared = {
  version: z.number().nullable().describe("The current version, whose tasks are shown."),
  removed: z.array(z.string()).describe("Tasks of these runs that the current version does not have."),
};

const gridDocument = z
  .object({
    ...shared,
    task_states: legend,
    tasks: z.array(treeTaskDocument).describe("Tasks of a group follow each other."),
    groups: z.array(treeGroupDocument),
    edges: treeEdgesDocument,
    runs: z.array(columnDocument).describe("The oldest first."),
    next_before: z.string().nullable().describe("`before` for the runs before these; null: there are none."),
  })
  .meta({ id: "UiGrid" });

const gridRunDocument = z
  .object({ ...shared, task_count: z.number(), run: columnDocument })
  .meta({ id: "UiGridColumn" });

const gridQuery = z.strictObject({
  runs: int(1, 500).default(100),
  before: z.string().max(10_000).default("").describe("`next_before` of an answer with the same filters."),
  state: many(z.enum(RUN_STATES)).optional(),
  run_type: many(z.enum(RUN_KINDS)).optional(),
});

const ORDER = ["-run_after", "-id"];

export const uiGrid: Resource = (app, { database }) => {
  app.get(
    "/ui/dags/:dag_id/grid",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: gridQuery,
        response: { 200: gridDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId }, query }) => {
      const page = cursorPageOf({ limit: query.runs, offset: 0, cursor: query.before, order_by: ORDER });
      const [{ manifest, row }, listed] = await Promise.all([
        requireManifest(database, dagId),
        listGridRuns(database, { dagId, states: query.state, runTypes: query.run_type }, page),
      ]);
      const runs = listed.rows.toReversed();
      const tree = taskTree(manifest);
      const { columns, removed } = await columnsOf(
        database,
        runs,
        tree.tasks.map(({ task_id }) => task_id),
      );
      return {
        version: row.version_number,
        task_states: [...TASK_LEGEND],
        ...tree,
        removed,
        runs: columns,
        next_before: listed.next,
      };
    },
  );

  app.get(
    "/ui/dags/:dag_id/grid/runs/:dag_run_id",
    {
      schema: {
        params: z.object({ dag_id: id, dag_run_id: id }),
        response: { 200: gridRunDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId, dag_run_id: runId } }) => {
      const [{ manifest, row }, { rows }] = await Promise.all([
        requireManifest(database, dagId),
        listGridRuns(database, { dagId, runId }, { limit: 1, offset: 0 }),
      ]);
      const taskIds = taskTree(manifest).tasks.map(({ task_id }) => task_id);
      const { columns, removed } = await columnsOf(database, rows, taskIds);
      const [run] = columns;
      if (run === undefined) throw notFound(`DAG "${dagId}" has no run "${runId}"`);
      return { version: row.version_number, task_count: taskIds.length, removed, run };
    },
  );
};

async function requireManifest(
  connection: Connection,
  dagId: string,
): Promise<{ row: DagRow; manifest: DagManifest | null }> {
  const row = await findDag(connection, dagId);
  if (row === undefined) throw noDag(dagId);
  const { version_id: versionId } = row;
  if (versionId === null) return { row, manifest: null };
  return { row, manifest: (await readManifests(connection, [versionId])).get(versionId) ?? null };
}

async function columnsOf(connection: Connection, runs: readonly GridRun[], taskIds: readonly string[]) {
  const read = await readGridColumns(
    connection,
    runs.map((run) => run.id),
    taskIds,
  );
  const known = new Set(taskIds);
  const others = new Set<string>();
  for (const { mapped, others: unknown } of read.values()) {
    for (const taskId of unknown.keys()) others.add(taskId);
    for (const { task_id } of mapped) if (!known.has(task_id)) others.add(task_id);
  }
  const removed = [...others].sort();
  const places = new Map([...taskIds, ...removed].map((taskId, index) => [taskId, index]));
  return {
    removed,
    columns: runs.map((run) => ({ ...showRun(run), ...showColumn(read.get(run.id), places) })),
  };
}

function showRun(run: GridRun) {
  return {
    run_id: run.run_id,
    run_type: run.run_type as (typeof RUN_KINDS)[number],
    state: run.state,
    logical_date: iso(run.logical_date),
    run_after: iso(run.run_after),
    queued_at: iso(run.queued_at),
    started_at: iso(run.started_at),
    ended_at: iso(run.ended_at),
    version: run.version,
    try_number: run.try_number,
    has_note: run.has_note,
  };
}

function showColumn(column: GridColumn | undefined, places: ReadonlyMap<string, number>) {
  const states = Buffer.alloc(places.size);
  const tries = Buffer.alloc(places.size);
  const set = (at: number, cell: { state: Parameters<typeof taskByte>[0]; tries: number }) => {
    states[at] = taskByte(cell.state);
    tries[at] = Math.min(cell.tries, MOST_TRIES);
  };
  for (const [at, cell] of column?.cells ?? []) set(at, cell);
  for (const [taskId, cell] of column?.others ?? []) set(places.get(taskId)!, cell);
  const mapped = [...Map.groupBy(column?.mapped ?? [], ({ task_id }) => task_id)].map(([taskId, counts]) => {
    const at = places.get(taskId)!;
    set(at, {
      state: worstState(counts.map(({ state }) => state)),
      tries: Math.max(...counts.map((each) => each.tries)),
    });
    return {
      at,
      counts: counts.map(({ instances, state }): [number, number] => [taskByte(state), instances]),
    };
  });
  return {
    states: states.toString("base64"),
    tries: tries.some((count) => count > 1) ? tries.toString("base64") : null,
    mapped,
  };
}
