/**
 * Finds an instance of a mapped task by its map index, by its path in nested maps, or by a unique label. An unknown name is
 * rejected with the existing ones.
 */
import { z } from "zod";
import { PATH_SEPARATOR } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import type { DagRunRow } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { findLabelled, type MapRange, RunMaps, readMapRange } from "../../store/list/map-places.ts";
import { loadExpansions } from "../../store/task/map-expansions.ts";
import { noTask } from "../dag/tasks.ts";
import { requireRun } from "../run/dag-runs.ts";
import { describe, taskParams } from "../task/task-instances.ts";
import type { Resource } from "./context.ts";
import { conflict, notFound, type Problem } from "./problem.ts";

/** The end of the path of a placeholder for future instances. */
const TO_COME = `${PATH_SEPARATOR}*`;
const whichQuery = z.strictObject({ which: z.string().min(1).max(1000) });
const answer = z.object({ map_index: z.number() });

export const mapIndex: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/taskInstances/:task_id/mapIndex",
    {
      schema: {
        params: taskParams,
        querystring: whichQuery,
        response: { 200: answer },
        tags: ["Task Instance"],
      },
    },
    async ({ params, query }) => {
      const run = await requireRun(database, params);
      return { map_index: await find(database, { run, taskId: params.task_id }, query.which) };
    },
  );
};

interface TaskOfRun {
  readonly run: DagRunRow;
  readonly taskId: string;
}

async function find(connection: Connection, { run, taskId }: TaskOfRun, which: string): Promise<number> {
  const task = { dagRunId: run.id, taskId };
  const path = pathOf(which);
  const range = await readMapRange(connection, task, path?.length === 1 ? path[0]! : null);
  if (range.has) return path![0]!;
  const maps = await mapsOf(connection, run);
  const depth = maps.depth(taskId);
  if (depth === 0) throw notMapped({ run, taskId }, maps);
  const labelled = await findLabelled(connection, task, which);
  if (labelled.length === 1) return labelled[0]!;
  if (labelled.length > 1)
    throw conflict(
      `${nameOf({ run, taskId })} has several instances "${which}": give the map index, which is ${labelled.join(", ")}${labelled.length === 5 ? " or another" : ""}`,
    );
  const beneath = which.endsWith(TO_COME) ? pathOf(which.slice(0, -TO_COME.length)) : null;
  const unexpanded = beneath && maps.findUnexpanded(taskId, beneath);
  if (unexpanded !== null && (await readMapRange(connection, task, unexpanded)).has) return unexpanded;
  if (path?.length !== depth || depth === 1) throw nothingThere({ run, taskId }, { maps, range, which });
  const found = maps.find(taskId, path);
  if (typeof found === "object") throw nothingThere({ run, taskId }, { maps, range, which, ...found });
  // A long list is expanded in pieces.
  if ((await readMapRange(connection, task, found)).has) return found;
  throw nothingThere({ run, taskId }, { maps, range, which });
}

/** @throws If a task has no instance with this map index; names the existing ones. */
export async function requireMapIndex(
  connection: Connection,
  { run, taskId }: TaskOfRun,
  index: number,
): Promise<void> {
  const range = await readMapRange(connection, { dagRunId: run.id, taskId }, index);
  if (range.has) return;
  const maps = await mapsOf(connection, run);
  if (maps.depth(taskId) === 0) throw notMapped({ run, taskId }, maps);
  throw nothingThere({ run, taskId }, { maps, range, which: String(index) });
}

function notMapped({ run, taskId }: TaskOfRun, maps: RunMaps): Problem {
  return maps.has(taskId)
    ? notFound(`${nameOf({ run, taskId })} is not mapped: it has no map index`)
    : noTask(run, taskId);
}

interface Missing {
  readonly maps: RunMaps;
  readonly range: MapRange;
  readonly which: string;
  /** The item at which the path is wrong, and the number of its entries. */
  readonly at?: readonly number[];
  readonly length?: number;
}

function nothingThere(
  { run, taskId }: TaskOfRun,
  { at = [], length = 0, maps, range, which }: Missing,
): Problem {
  const { count, first, last } = range;
  const name = `${nameOf({ run, taskId })} has no instance "${which}"`;
  if (first === null || last === null)
    return notFound(`${name}: it is not expanded yet, or its list is empty`);
  if (maps.depth(taskId) === 1)
    return notFound(`${name}: there ${count === 1 ? "is only 0" : `are ${first} to ${last}`}`);
  const beneath =
    at.length > 0 && length > 0 ? `item ${at.join(PATH_SEPARATOR)} has 0 to ${length - 1}; ` : "";
  return notFound(`${name}: ${beneath}by map index there are ${first} to ${last}`);
}

async function mapsOf(connection: Connection, run: DagRunRow): Promise<RunMaps> {
  const [manifests, expansions] = await Promise.all([
    readManifests(connection, [run.version_id]),
    loadExpansions(connection, [run.id]),
  ]);
  const manifest = manifests.get(run.version_id);
  if (manifest === undefined) throw notFound(`The version of run "${run.run_id}" is gone`);
  return new RunMaps(manifest, expansions);
}

function nameOf({ run, taskId }: TaskOfRun): string {
  return describe({ dagId: run.dag_id, runId: run.run_id, taskId, mapIndex: -1 });
}

/** Null: not a path. A number that cannot be a map index is not a path either. */
function pathOf(which: string): number[] | null {
  return /^\d{1,9}(?:\/\d{1,9})*$/.test(which) ? which.split(PATH_SEPARATOR).map(Number) : null;
}
