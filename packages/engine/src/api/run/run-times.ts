/** The timeline of a run: what its instances did when, why it took as long as it did, and when it will end. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import {
  type CriticalPath,
  compileGraph,
  criticalPath,
  Expansions,
  type Graph,
  type Interval,
  intervalsOf,
  isFinished,
  isStreaming,
  type Projection,
  projectRun,
  type TaskPresent,
  type TaskState,
} from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { loadExpansions } from "../../store/task/map-expansions.ts";
import {
  findTimelineRun,
  previousRunId,
  type RunTimes,
  readRunTimes,
  readTimelineMaps,
  type TimelineInstance,
  type TimelineMap,
  type TimelineRun,
} from "../../store/timeline/run-timeline.ts";
import { readUsualTimes, type UsualTimes } from "../../store/timeline/usual-times.ts";
import { notFound } from "../server/problem.ts";

export interface InstanceTimes extends TimelineInstance {
  readonly intervals: readonly Interval[];
}

/** What the instances of a run did. */
interface RunPast {
  readonly run: TimelineRun;
  readonly manifest: DagManifest;
  /** Of large maps, some. */
  readonly instances: readonly InstanceTimes[];
  readonly maps: readonly TimelineMap[];
}

export interface RunTimeline extends RunPast {
  /** null: the run has not started. */
  readonly path: CriticalPath | null;
  /** null: the run has ended, or has streaming tasks. */
  readonly projection: Projection | null;
  readonly usual: UsualTimes;
}

export async function requireTimelineRun(
  connection: Connection,
  dagId: string,
  runId: string,
): Promise<TimelineRun> {
  const run = await findTimelineRun(connection, dagId, runId);
  if (run === undefined) throw notFound(`DAG "${dagId}" has no run "${runId}"`);
  return run;
}

/** @param limit Instances of each mapped task. */
export async function readRunTimeline(
  connection: Connection,
  dagId: string,
  run: TimelineRun,
  limit: number,
): Promise<RunTimeline> {
  const past = await readPast(connection, run, limit);
  const instances = past.maps.reduce((sum, map) => sum + map.instances, past.manifest.tasks.length);
  const usual = await readUsualTimes(connection, dagId, { runId: run.id, instances });
  const graph = compileGraph(past.manifest);
  const projection = projectionOf(past, graph, usual);
  const path = await pathOf(connection, past, { graph, towards: projection?.path[0] ?? null });
  return { ...past, usual, projection, path };
}

/** One page of the instances of a task. */
export async function readTaskTimes(
  connection: Connection,
  run: TimelineRun,
  { after, limit, taskId }: { readonly taskId: string; readonly after: number; readonly limit: number },
): Promise<RunPast> {
  const { maps } = await readTimelineMaps(connection, run, Number.POSITIVE_INFINITY);
  const range = { taskId, from: after < 0 ? -1 : after + 1, to: after + limit, also: [] };
  const [times, manifest] = await Promise.all([
    readRunTimes(connection, [run.id], range),
    requireManifest(connection, run),
  ]);
  return {
    run,
    manifest,
    instances: withIntervals(times),
    maps: maps.filter((map) => map.taskId === taskId),
  };
}

/** What another run did, to compare with. */
export interface ComparedRun {
  readonly run: TimelineRun;
  readonly path: CriticalPath | null;
  /** Of each task that ran: from its first readiness to its last end. */
  readonly tasks: ReadonlyMap<string, number>;
}

/** @param other The id of a run, or "@previous": the run before that has ended. null: there is none. */
export async function readComparedRun(
  connection: Connection,
  dagId: string,
  { limit, other, run }: { readonly run: TimelineRun; readonly other: string; readonly limit: number },
): Promise<ComparedRun | null> {
  const runId = other === "@previous" ? await previousRunId(connection, run) : other;
  if (runId === null) return null;
  const compared = await requireTimelineRun(connection, dagId, runId);
  const past = await readPast(connection, compared, limit);
  const path = await pathOf(connection, past, { graph: compileGraph(past.manifest), towards: null });
  return { run: compared, path, tasks: durationsOf(past) };
}

async function requireManifest(connection: Connection, { version_id }: TimelineRun): Promise<DagManifest> {
  return (await readManifests(connection, [version_id])).get(version_id)!;
}

async function readPast(connection: Connection, run: TimelineRun, limit: number): Promise<RunPast> {
  const [manifest, { last, maps }] = await Promise.all([
    requireManifest(connection, run),
    readTimelineMaps(connection, run, limit),
  ]);
  const times = await readRunTimes(connection, [run.id], { from: -1, to: limit - 1, also: last });
  return { run, manifest, maps, instances: withIntervals(times) };
}

export function withIntervals({ attempts, instances, waits }: RunTimes): InstanceTimes[] {
  const keyOf = (of: TimelineInstance | RunTimes["attempts"][number] | RunTimes["waits"][number]) =>
    `${of.runId} ${of.mapIndex} ${of.taskId}`;
  const attemptsOf = Map.groupBy(attempts, keyOf);
  const waitsOf = Map.groupBy(waits, keyOf);
  return instances.map((instance) => {
    const key = keyOf(instance);
    return {
      ...instance,
      intervals: intervalsOf(instance, attemptsOf.get(key) ?? [], waitsOf.get(key) ?? []),
    };
  });
}

async function pathOf(
  connection: Connection,
  { instances, run }: RunPast,
  { graph, towards }: { readonly graph: Graph; readonly towards: string | null },
): Promise<CriticalPath | null> {
  if (run.started === null) return null;
  const expansions = await nestedExpansions(connection, run, graph);
  const to = run.ended ?? run.now;
  return criticalPath({
    graph,
    instances,
    expansions,
    from: run.started,
    to,
    isEnded: run.ended !== null,
    towards,
  });
}

/** Only maps in maps need them. */
async function nestedExpansions(
  connection: Connection,
  run: TimelineRun,
  { scopes }: Graph,
): Promise<Expansions | null> {
  if (scopes.every(({ parent }) => parent === null)) return null;
  const expansions = new Expansions(scopes.length);
  const byId = new Map(scopes.map((scope) => [scope.id, scope]));
  for (const { map_id, ...row } of await loadExpansions(connection, [run.id])) {
    const scope = byId.get(map_id);
    if (scope) expansions.restore({ ...row, scope, made: row.length });
  }
  return expansions;
}

function projectionOf(past: RunPast, graph: Graph, usual: UsualTimes): Projection | null {
  const { manifest, run } = past;
  if (run.ended !== null || manifest.tasks.some(isStreaming)) return null;
  return projectRun({ graph, tasks: presentOf(past), usual: usual.tasks, now: run.now });
}

function presentOf({ instances, maps }: RunPast): Map<string, TaskPresent> {
  const present = new Map<string, TaskPresent>();
  for (const instance of instances) {
    const { endedAt, retryAt, state, taskId } = instance;
    if (instance.mapIndex !== -1) continue;
    const resumesAt = state === "up_for_retry" ? retryAt : null;
    const states = new Map([[state, 1]]);
    present.set(taskId, { states, startedAt: tryStart(instance), resumesAt, endedAt });
  }
  for (const [taskId, rows] of Map.groupBy(maps, (map) => map.taskId)) {
    const states = new Map<TaskState, number>(rows.map(({ instances: count, state }) => [state, count]));
    const { first, last } = rangeOf(rows);
    present.set(taskId, { states, startedAt: first, resumesAt: null, endedAt: last });
  }
  return present;
}

/** When the current try of an unfinished instance first did something. */
function tryStart({ intervals, state, tryNumber }: InstanceTimes): number | null {
  if (isFinished(state) || state === "pending") return null;
  const own = intervals.find(
    (each) => each.tryNumber === tryNumber && (each.kind === "running" || each.kind === "deferred"),
  );
  return own?.start ?? null;
}

/** The first and the last moment of the instances of a map. */
export function rangeOf(rows: readonly TimelineMap[]): { first: number | null; last: number | null } {
  const firsts = rows.flatMap(({ first }) => first ?? []);
  const lasts = rows.flatMap(({ last }) => last ?? []);
  return {
    first: firsts.length === 0 ? null : Math.min(...firsts),
    last: lasts.length === 0 ? null : Math.max(...lasts),
  };
}

function durationsOf({ instances, maps }: RunPast): Map<string, number> {
  const durations = new Map<string, number>();
  for (const { intervals, mapIndex, taskId } of instances) {
    const [first, last] = [intervals[0], intervals.at(-1)];
    if (mapIndex === -1 && first && last?.end != null) durations.set(taskId, last.end - first.start);
  }
  for (const [taskId, rows] of Map.groupBy(maps, (map) => map.taskId)) {
    const { first, last } = rangeOf(rows);
    if (first !== null && last !== null) durations.set(taskId, last - first);
  }
  return durations;
}
