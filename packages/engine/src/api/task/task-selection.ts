/** Resolves the instances of an edit: task names in the version of each run, with upstream and downstream tasks. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Connection } from "../../store/database/database.ts";
import type { RunSelection, TaskSelection } from "../../store/edit/edited-instances.ts";
import { type DagRunRow, type RunReach, reachRuns } from "../../store/list/dag-runs.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { findMissing } from "../../store/list/map-places.ts";
import { requireMapIndex } from "../server/map-index.ts";
import { notFound } from "../server/problem.ts";

export interface EditRequest {
  readonly reach: RunReach;
  /** null: every task. */
  readonly tasks: readonly TaskSelection[] | null;
  readonly upstream: boolean;
  readonly downstream: boolean;
}

export async function selectInstances(
  connection: Connection,
  wish: EditRequest,
): Promise<{ runs: readonly DagRunRow[]; selection: readonly RunSelection[] }> {
  const runs = await reachRuns(connection, wish.reach);
  const { reach, tasks } = wish;
  if (reach.runId !== undefined && !runs.some((run) => run.run_id === reach.runId)) {
    throw notFound(`DAG "${reach.dagId}" has no run "${reach.runId}"`);
  }
  if (tasks === null) return { runs, selection: runs.map((run) => ({ dagRunId: run.id, tasks: null })) };
  const manifests = await readManifests(
    connection,
    runs.map((run) => run.version_id),
  );
  refuseUnknown(reach.dagId, tasks, [...manifests.values()]);
  const named = runs.find((run) => run.run_id === reach.runId);
  if (named) await refuseMissing(connection, named, tasks);
  const byVersion = new Map([...manifests].map(([id, manifest]) => [id, closure(manifest, tasks, wish)]));
  return {
    runs,
    selection: runs.map((run) => ({ dagRunId: run.id, tasks: byVersion.get(run.version_id) ?? [] })),
  };
}

/** A run's version may lack a task; a task unknown to all versions is an error. */
function refuseUnknown(
  dagId: string,
  tasks: readonly TaskSelection[],
  manifests: readonly DagManifest[],
): void {
  if (manifests.length === 0) return;
  const known = new Set(manifests.flatMap((manifest) => manifest.tasks.map((task) => task.taskId)));
  const unknown = tasks.find((task) => !known.has(task.taskId));
  if (unknown !== undefined) throw notFound(`DAG "${dagId}" has no task "${unknown.taskId}"`);
}

/** Checks the named run only: in earlier and later runs a list may be shorter. */
async function refuseMissing(
  connection: Connection,
  run: DagRunRow,
  tasks: readonly TaskSelection[],
): Promise<void> {
  const mapped = tasks.flatMap(({ mapIndex, taskId }) =>
    mapIndex === null || mapIndex === -1 ? [] : [{ mapIndex, taskId }],
  );
  const missing = await findMissing(connection, run.id, mapped);
  if (missing) await requireMapIndex(connection, { run, taskId: missing.taskId }, missing.mapIndex);
}

function closure(manifest: DagManifest, tasks: readonly TaskSelection[], wish: EditRequest): TaskSelection[] {
  const upstream = new Map(manifest.tasks.map((task) => [task.taskId, task.upstream]));
  const downstream = new Map<string, string[]>(manifest.tasks.map((task) => [task.taskId, []]));
  for (const task of manifest.tasks)
    for (const parent of task.upstream) downstream.get(parent)?.push(task.taskId);

  const asked = tasks.filter((task) => upstream.has(task.taskId));
  const start = asked.map((task) => task.taskId);
  const reached = new Set<string>();
  if (wish.upstream) walk(start, upstream, reached);
  if (wish.downstream) walk(start, downstream, reached);
  for (const taskId of start) reached.delete(taskId);
  const mapOf = new Map(manifest.tasks.map((task) => [task.taskId, task.map]));
  return [...asked, ...[...reached].flatMap((taskId) => within(asked, { taskId, mapOf }))];
}

/** For a task in the same map as the addressed one: the same items. For any other: all. */
function within(
  asked: readonly TaskSelection[],
  { mapOf, taskId }: { readonly mapOf: ReadonlyMap<string, string | undefined>; readonly taskId: string },
): TaskSelection[] {
  const map = mapOf.get(taskId);
  const beside = map === undefined ? [] : asked.filter((each) => mapOf.get(each.taskId) === map);
  const isAll = beside.length === 0 || beside.some(({ mapIndex }) => mapIndex === null);
  if (isAll) return [{ taskId, mapIndex: null }];
  return beside.map(({ mapIndex }) => ({ taskId, mapIndex }));
}

function walk(
  start: readonly string[],
  edges: ReadonlyMap<string, readonly string[]>,
  reached: Set<string>,
): void {
  const seen = new Set(start);
  const waiting = [...start];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const neighbour of edges.get(next) ?? []) {
      if (seen.has(neighbour)) continue;
      seen.add(neighbour);
      reached.add(neighbour);
      waiting.push(neighbour);
    }
  }
}
