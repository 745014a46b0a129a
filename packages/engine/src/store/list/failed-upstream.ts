/** For instances in `upstream_failed`: the failed instance at the start of the chain, by the model's rule. */
import { compileGraph, FailedUpstream } from "../../model/index.ts";
import type { Connection } from "../database/database.ts";
import { statement } from "../database/statement.ts";
import { readManifests } from "./dag-versions.ts";
import { type MapPlace, readMapPlaces } from "./map-places.ts";

export interface FailedUpstreamRow {
  readonly task_id: string;
  readonly map_index: number;
  readonly place: MapPlace;
}

interface ImpliedKey {
  readonly dag_run_id: number;
  readonly version_id: number;
  readonly task_id: string;
  readonly place: MapPlace;
}

interface FailingRow {
  readonly dag_run_id: number;
  readonly task_id: string;
  /** null: all instances of the task in `upstream_failed`. */
  readonly map_index: number | null;
  readonly ended_at: Date | null;
}

/** Maximum number of failures read per run, earliest first. */
const FAILURES_READ = 1_000;

/** Index: the primary key of task_instance, by run. */
const FAILING = statement(
  "list-failing-instances",
  `SELECT f.* FROM unnest($1::int8[]) AS run(id) CROSS JOIN LATERAL (
     (SELECT t.dag_run_id, t.task_id, t.map_index, t.ended_at FROM task_instance t
      WHERE t.dag_run_id = run.id AND t.state = 'failed' ORDER BY t.ended_at, t.task_id, t.map_index LIMIT $2)
     UNION ALL
     (SELECT DISTINCT t.dag_run_id, t.task_id, NULL::int, NULL::timestamptz FROM task_instance t
      WHERE t.dag_run_id = run.id AND t.state = 'upstream_failed')
   ) AS f`,
);

/** In the order of the rows; null if no failure is known. */
export async function readFailedUpstream(
  connection: Connection,
  rows: readonly ImpliedKey[],
): Promise<(FailedUpstreamRow | null)[]> {
  if (rows.length === 0) return [];
  const versions = new Map(rows.map(({ dag_run_id, version_id }) => [dag_run_id, version_id]));
  const [manifests, failing] = await Promise.all([
    readManifests(connection, [...new Set(versions.values())]),
    connection.rows<FailingRow>(FAILING, [[...versions.keys()], FAILURES_READ]),
  ]);
  const failed = failing.flatMap(({ map_index, ...row }) =>
    map_index === null ? [] : [{ ...row, map_index, version_id: versions.get(row.dag_run_id)! }],
  );
  const places = await readMapPlaces(connection, failed);
  const placed = failed.map((row, index) => ({ ...row, place: places[index]! }));
  const byRun = new Map(
    [...versions].flatMap(([run, version]) => {
      const manifest = manifests.get(version);
      if (!manifest) return [];
      const own = placed.filter(({ dag_run_id }) => dag_run_id === run).map(failedPlace);
      const implied = failing.filter(({ dag_run_id, map_index }) => dag_run_id === run && map_index === null);
      const tasks = new Set(implied.map(({ task_id }) => task_id));
      return [[run, new FailedUpstream(compileGraph(manifest), own, tasks)] as const];
    }),
  );
  return rows.map(({ dag_run_id, place, task_id }) => {
    const found = byRun.get(dag_run_id)?.of({ taskId: task_id, path: place.path });
    const isFound = (row: (typeof placed)[number]) =>
      row.dag_run_id === dag_run_id && row.task_id === found?.taskId && row.map_index === found.mapIndex;
    return found ? (placed.find(isFound) ?? null) : null;
  });
}

function failedPlace(row: {
  readonly task_id: string;
  readonly map_index: number;
  readonly ended_at: Date | null;
  readonly place: MapPlace;
}) {
  const { ended_at, map_index, place, task_id } = row;
  return { taskId: task_id, mapIndex: map_index, path: place.path, endedAt: ended_at?.getTime() ?? null };
}
