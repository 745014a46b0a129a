/** `/ui/dags/{dag_id}/runs/{run_id}/timeline`: what each task instance of a run did when. */
import { z } from "zod";
import { INTERVAL_KINDS, type Interval, intervalsOf } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import {
  findTimelineRun,
  type RunTimes,
  readRunTimes,
  readTimelineMaps,
  type TimelineInstance,
  type TimelineMap,
  type TimelineRun,
} from "../../store/timeline/run-timeline.ts";
import { RUN_KINDS } from "../run/run-types.ts";
import type { Resource } from "../server/context.ts";
import { id, int, RUN_STATES } from "../server/fields.ts";
import { notFound } from "../server/problem.ts";
import { bytes, epochMs, legend, TASK_LEGEND, taskByte, UI_TAG } from "./columns.ts";
import { type TaskTree, taskTree, treeGroupDocument, treeTaskDocument } from "./task-tree.ts";

const offset = z.number().describe("Milliseconds after `origin`.");
const offsets = z.array(offset);

const instancesDocument = z.object({
  tasks: z.array(z.number()).describe("The position of its task: in `tasks`, then in `removed`."),
  map_indexes: z.array(z.number()),
  labels: z.array(z.string().nullable()).nullable().describe("Of labelled maps; null: there are none."),
  states: bytes,
  tries: bytes,
  intervals: z.array(z.number()).describe("How many of the intervals, in order, are its."),
});

const intervalsDocument = z.object({
  kinds: bytes,
  tries: bytes,
  next: bytes.describe("Base64: the state that followed, by `task_states`; 0: it goes on."),
  starts: offsets,
  ends: z.array(offset.nullable()).describe("Null: it goes on."),
});

const mapDocument = z.object({
  at: z.number().describe("The position of its task."),
  counts: z.array(z.tuple([z.number(), z.number()])).describe("Byte of a state, number of instances."),
  instances: z.number(),
  tries: z.number().describe("The highest."),
  start: offset.nullable().describe("When the first became ready."),
  end: offset.nullable().describe("When the last that has ended did so."),
  shown: z.number().describe("How many of them are in `instances`."),
});

const timelineDocument = z
  .object({
    now: epochMs,
    origin: epochMs.describe("The first moment of this answer."),
    run: z.object({
      run_id: z.string(),
      run_type: z.enum(RUN_KINDS),
      state: z.enum(RUN_STATES),
      version: z.number(),
      try_number: z.number(),
      logical_date: epochMs.nullable(),
      run_after: epochMs,
      queued: epochMs,
      started: epochMs.nullable(),
      ended: epochMs.nullable(),
    }),
    task_states: legend,
    interval_kinds: z.array(z.string()).describe("The meaning of each byte of `kinds`, by index."),
    tasks: z
      .array(treeTaskDocument.extend({ pool: z.string() }))
      .describe("Of the version of the run. Tasks of a group follow each other."),
    removed: z.array(z.string()).describe("Tasks of this run that its version does not have."),
    groups: z.array(treeGroupDocument),
    edges: z.object({ from: z.array(z.number()), to: z.array(z.number()) }).describe("Positions of tasks."),
    instances: instancesDocument,
    intervals: intervalsDocument.describe("In the order of instances, and of time."),
    maps: z.array(mapDocument).describe("Mapped tasks with instances."),
    more: z.boolean().describe("Not all instances of maps are shown: read a map by `task_id`."),
  })
  .meta({ id: "UiTimeline" });

const timelineQuery = z.strictObject({
  task_id: id.optional().describe("Only the instances of this task."),
  after: int(-1).default(-1).describe("With `task_id`: the instances with a higher map index."),
  limit: int(1, 2000).default(200).describe("Instances of each mapped task."),
});

export const uiTimeline: Resource = (app, { database }) => {
  app.get(
    "/ui/dags/:dag_id/runs/:dag_run_id/timeline",
    {
      schema: {
        params: z.object({ dag_id: id, dag_run_id: id }),
        querystring: timelineQuery,
        response: { 200: timelineDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId, dag_run_id: runId }, query }) => {
      const run = await findTimelineRun(database, dagId, runId);
      if (run === undefined) throw notFound(`DAG "${dagId}" has no run "${runId}"`);
      const [tree, read] = await Promise.all([
        treeOf(database, run.version_id),
        query.task_id === undefined
          ? readWhole(database, run, query.limit)
          : readOne(database, run, { ...query, task_id: query.task_id }),
      ]);
      return showTimeline(run, tree, read);
    },
  );
};

interface Read extends RunTimes {
  readonly maps: readonly TimelineMap[];
}

async function readWhole(connection: Connection, run: TimelineRun, limit: number): Promise<Read> {
  const { last, maps } = await readTimelineMaps(connection, run, limit);
  const times = await readRunTimes(connection, run, { from: -1, to: limit - 1, also: last });
  return { ...times, maps };
}

async function readOne(
  connection: Connection,
  run: TimelineRun,
  { after, limit, task_id: taskId }: { after: number; limit: number; task_id: string },
): Promise<Read> {
  const { maps } = await readTimelineMaps(connection, run, Number.POSITIVE_INFINITY);
  const range = { taskId, from: after < 0 ? -1 : after + 1, to: after + limit, also: [] };
  const times = await readRunTimes(connection, run, range);
  return { ...times, maps: maps.filter((map) => map.taskId === taskId) };
}

interface VersionTree extends TaskTree {
  readonly pools: ReadonlyMap<string, string>;
  readonly upstream: ReadonlyMap<string, readonly string[]>;
}

async function treeOf(connection: Connection, versionId: number): Promise<VersionTree> {
  const manifest = (await readManifests(connection, [versionId])).get(versionId) ?? null;
  const tasks = manifest?.tasks ?? [];
  return {
    ...taskTree(manifest),
    pools: new Map(tasks.map(({ pool, taskId }) => [taskId, pool])),
    upstream: new Map(tasks.map(({ taskId, upstream }) => [taskId, upstream])),
  };
}

function showTimeline(run: TimelineRun, tree: VersionTree, { attempts, instances, maps, waits }: Read) {
  const known = new Set(tree.tasks.map(({ task_id }) => task_id));
  const removed = [
    ...new Set([...instances, ...maps].map(({ taskId }) => taskId).filter((taskId) => !known.has(taskId))),
  ].sort();
  const places = new Map([...known, ...removed].map((taskId, index) => [taskId, index]));
  const keyOf = (of: { taskId: string; mapIndex: number }) => `${of.mapIndex} ${of.taskId}`;
  const attemptsOf = Map.groupBy(attempts, keyOf);
  const waitsOf = Map.groupBy(waits, keyOf);
  const shown = instances
    .map((instance) => ({
      instance,
      at: places.get(instance.taskId)!,
      intervals: intervalsOf(
        instance,
        attemptsOf.get(keyOf(instance)) ?? [],
        waitsOf.get(keyOf(instance)) ?? [],
      ),
    }))
    .sort((a, b) => a.at - b.at || a.instance.mapIndex - b.instance.mapIndex);
  const intervals = shown.flatMap((each) => each.intervals);
  const origin = intervals.reduce((first, { start }) => Math.min(first, start), run.started ?? run.queued);
  const shownMaps = showMaps(maps, { origin, places, shown: shown.map(({ instance }) => instance) });
  return {
    now: run.now,
    origin,
    run: showRun(run),
    task_states: [...TASK_LEGEND],
    interval_kinds: [...INTERVAL_KINDS],
    tasks: tree.tasks.map((task) => ({ ...task, pool: tree.pools.get(task.task_id) ?? "" })),
    groups: tree.groups,
    removed,
    edges: edgesOf(tree, places),
    instances: showInstances(shown),
    intervals: showIntervals(intervals, origin),
    maps: shownMaps,
    more: shownMaps.some((map) => map.shown < map.instances),
  };
}

function showRun({ id: _, now: __, version_id: ___, ...run }: TimelineRun) {
  return { ...run, run_type: run.run_type as (typeof RUN_KINDS)[number] };
}

interface Shown {
  readonly at: number;
  readonly instance: TimelineInstance;
  readonly intervals: readonly Interval[];
}

const base64 = (values: readonly number[]) =>
  Buffer.from(values.map((value) => Math.min(value, 255))).toString("base64");

function showInstances(shown: readonly Shown[]): z.output<typeof instancesDocument> {
  const instances = shown.map(({ instance }) => instance);
  return {
    tasks: shown.map(({ at }) => at),
    map_indexes: instances.map(({ mapIndex }) => mapIndex),
    labels: instances.some(({ label }) => label !== null) ? instances.map(({ label }) => label) : null,
    states: base64(instances.map(({ state }) => taskByte(state))),
    tries: base64(instances.map(({ tryNumber }) => tryNumber)),
    intervals: shown.map(({ intervals }) => intervals.length),
  };
}

function showIntervals(intervals: readonly Interval[], origin: number): z.output<typeof intervalsDocument> {
  return {
    kinds: base64(intervals.map(({ kind }) => INTERVAL_KINDS.indexOf(kind))),
    tries: base64(intervals.map(({ tryNumber }) => tryNumber)),
    next: base64(intervals.map(({ next }) => (next === null ? 0 : taskByte(next)))),
    starts: intervals.map(({ start }) => start - origin),
    ends: intervals.map(({ end }) => (end === null ? null : end - origin)),
  };
}

function showMaps(
  maps: readonly TimelineMap[],
  of: {
    readonly origin: number;
    readonly places: ReadonlyMap<string, number>;
    readonly shown: readonly TimelineInstance[];
  },
): z.output<typeof mapDocument>[] {
  const shown = Map.groupBy(of.shown, ({ taskId }) => taskId);
  const since = (at: number) => (Number.isFinite(at) ? at - of.origin : null);
  return [...Map.groupBy(maps, ({ taskId }) => taskId)].map(([taskId, states]) => ({
    at: of.places.get(taskId)!,
    counts: states.map(({ instances, state }): [number, number] => [taskByte(state), instances]),
    instances: states.reduce((sum, { instances }) => sum + instances, 0),
    tries: Math.max(...states.map(({ tries }) => tries)),
    start: since(Math.min(...states.map(({ first }) => first ?? Number.POSITIVE_INFINITY))),
    end: since(Math.max(...states.map(({ last }) => last ?? Number.NEGATIVE_INFINITY))),
    shown: shown.get(taskId)?.length ?? 0,
  }));
}

function edgesOf({ tasks, upstream }: VersionTree, places: ReadonlyMap<string, number>) {
  const from: number[] = [];
  const to: number[] = [];
  for (const { task_id: taskId } of tasks)
    for (const source of upstream.get(taskId) ?? []) {
      from.push(places.get(source)!);
      to.push(places.get(taskId)!);
    }
  return { from, to };
}
