/** `/ui/dags/{dag_id}/runs/{run_id}/timeline`: what each task instance of a run did when. */
import type { DagManifest } from "@tradewind/sdk/manifest";
import { z } from "zod";
import {
  type CriticalPath,
  INTERVAL_KINDS,
  type Interval,
  type Projection,
  TIME_KINDS,
} from "../../model/index.ts";
import type { TimelineMap, TimelineRun } from "../../store/timeline/run-timeline.ts";
import type { UsualTimes } from "../../store/timeline/usual-times.ts";
import {
  type ComparedRun,
  type InstanceTimes,
  type RunTimeline,
  rangeOf,
  readComparedRun,
  readRunTimeline,
  readTaskTimes,
  requireTimelineRun,
} from "../run/run-times.ts";
import { RUN_KINDS } from "../run/run-types.ts";
import type { Resource } from "../server/context.ts";
import { id, int, RUN_STATES } from "../server/fields.ts";
import { bytes, epochMs, legend, TASK_LEGEND, taskByte, UI_TAG } from "./columns.ts";
import { taskTree, treeGroupDocument, treeTaskDocument } from "./task-tree.ts";

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

const breakdownDocument = z
  .object({ work: z.number(), queue: z.number(), wait: z.number(), overhead: z.number() })
  .meta({
    id: "UiTimeBreakdown",
    description:
      "Milliseconds. work: a process runs; queue: for slots or the executor; wait: for events, retries, users.",
  });

const pathDocument = z.object({
  tasks: z.array(z.number()).describe("Positions, the first step first."),
  map_indexes: z.array(z.number()),
  after: z
    .array(z.enum(["run", "upstream", "itself"]))
    .describe("What the step followed; itself: it started over."),
  starts: offsets.describe("The end of the step before; of the first, the start of the run."),
  ends: offsets,
  work: z.array(z.number()),
  queue: z.array(z.number()),
  wait: z.array(z.number()),
  overhead: z.array(z.number()),
  time: breakdownDocument.describe("Of the whole run: adds up to its time until its end, or now."),
});

const projectionDocument = z.object({
  tasks: z.array(z.number()).describe("Positions of tasks that have not ended."),
  starts: offsets,
  ends: offsets.describe("After their usual time, as soon as their trigger rules allow."),
  late_ends: offsets.describe("If all take as long as in slow runs."),
  path: z
    .array(z.number())
    .describe("Positions of the tasks that decide the end; the first continues the critical path."),
  end: offset.describe("The earliest usual end of the run."),
  late_end: offset,
  unknown: z.number().describe("Tasks that never succeeded: expected to take no time."),
});

const usualDocument = z.object({
  runs: z.number().describe("How many of the last successful runs count, up to 20."),
  p50: z.number().nullable().describe("Milliseconds from the start of a run to its end."),
  p95: z.number().nullable(),
  tasks: z
    .array(z.object({ p50: z.number(), p95: z.number() }).nullable())
    .describe("By position. Of the last try; of a map, from the first start to the last end."),
});

const comparedDocument = z.object({
  run_id: z.string(),
  state: z.enum(RUN_STATES),
  version: z.number(),
  started: epochMs.nullable(),
  ended: epochMs.nullable(),
  time: breakdownDocument.nullable(),
  tasks: z
    .array(z.number().nullable())
    .describe("By position: milliseconds from the readiness of the task to its end."),
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
    critical_path: pathDocument.nullable().describe("Null: the run has not started, or `task_id` is given."),
    projection: projectionDocument
      .nullable()
      .describe("Null: the run has ended, has streaming tasks, or `task_id` is given."),
    usual: usualDocument.nullable().describe("Null with `task_id`."),
    compared: comparedDocument
      .nullable()
      .describe("Null: not asked for, or no run before this one has ended."),
    more: z.boolean().describe("Not all instances of maps are shown: read a map by `task_id`."),
  })
  .meta({ id: "UiTimeline" });

const timelineQuery = z.strictObject({
  task_id: id.optional().describe("Only the instances of this task."),
  after: int(-1).default(-1).describe("With `task_id`: the instances with a higher map index."),
  limit: int(1, 2000).default(200).describe("Instances of each mapped task."),
  compare: id
    .optional()
    .describe("The id of another run of the DAG, or @previous: the run before that has ended."),
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
      const run = await requireTimelineRun(database, dagId, runId);
      const { after, compare: other, limit, task_id: taskId } = query;
      if (taskId !== undefined) {
        const past = await readTaskTimes(database, run, { taskId, after, limit });
        return showTimeline({ ...past, path: null, projection: null, usual: null }, null);
      }
      const [timeline, compared] = await Promise.all([
        readRunTimeline(database, dagId, run, limit),
        other === undefined ? null : readComparedRun(database, dagId, { run, other, limit }),
      ]);
      return showTimeline(timeline, compared);
    },
  );
};

type Places = ReadonlyMap<string, number>;

function showTimeline(
  timeline: Omit<RunTimeline, "usual"> & { readonly usual: UsualTimes | null },
  compared: ComparedRun | null,
): z.output<typeof timelineDocument> {
  const { instances, manifest, maps, run } = timeline;
  const tree = taskTree(manifest);
  const known = new Set(tree.tasks.map(({ task_id }) => task_id));
  const removed = [
    ...new Set([...instances, ...maps].map(({ taskId }) => taskId).filter((taskId) => !known.has(taskId))),
  ].sort();
  const places = new Map([...known, ...removed].map((taskId, index) => [taskId, index]));
  const shown = instances
    .map((instance) => ({ ...instance, at: places.get(instance.taskId)! }))
    .sort((a, b) => a.at - b.at || a.mapIndex - b.mapIndex);
  const intervals = shown.flatMap((each) => each.intervals);
  const origin = intervals.reduce((first, { start }) => Math.min(first, start), run.started ?? run.queued);
  const shownMaps = showMaps(maps, { origin, places, shown });
  const pools = new Map(manifest.tasks.map(({ pool, taskId }) => [taskId, pool]));
  return {
    now: run.now,
    origin,
    run: showRun(run),
    task_states: [...TASK_LEGEND],
    interval_kinds: [...INTERVAL_KINDS],
    tasks: tree.tasks.map((task) => ({ ...task, pool: pools.get(task.task_id) ?? "" })),
    groups: tree.groups,
    removed,
    edges: edgesOf(manifest, places),
    instances: showInstances(shown),
    intervals: showIntervals(intervals, origin),
    maps: shownMaps,
    critical_path: timeline.path && showPath(timeline.path, places, origin),
    projection: timeline.projection && showProjection(timeline.projection, places, origin),
    usual: timeline.usual && showUsual(timeline.usual, places),
    compared: compared && showCompared(compared, places),
    more: shownMaps.some((map) => map.shown < map.instances),
  };
}

function showRun({ id: _, now: __, version_id: ___, ...run }: TimelineRun) {
  return { ...run, run_type: run.run_type as (typeof RUN_KINDS)[number] };
}

interface Shown extends InstanceTimes {
  readonly at: number;
}

const base64 = (values: readonly number[]) =>
  Buffer.from(values.map((value) => Math.min(value, 255))).toString("base64");

function showInstances(shown: readonly Shown[]): z.output<typeof instancesDocument> {
  return {
    tasks: shown.map(({ at }) => at),
    map_indexes: shown.map(({ mapIndex }) => mapIndex),
    labels: shown.some(({ label }) => label !== null) ? shown.map(({ label }) => label) : null,
    states: base64(shown.map(({ state }) => taskByte(state))),
    tries: base64(shown.map(({ tryNumber }) => tryNumber)),
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
  of: { readonly origin: number; readonly places: Places; readonly shown: readonly Shown[] },
): z.output<typeof mapDocument>[] {
  const shown = Map.groupBy(of.shown, ({ taskId }) => taskId);
  return [...Map.groupBy(maps, ({ taskId }) => taskId)].map(([taskId, states]) => {
    const { first, last } = rangeOf(states);
    return {
      at: of.places.get(taskId)!,
      counts: states.map(({ instances, state }): [number, number] => [taskByte(state), instances]),
      instances: states.reduce((sum, { instances }) => sum + instances, 0),
      tries: Math.max(...states.map(({ tries }) => tries)),
      start: first === null ? null : first - of.origin,
      end: last === null ? null : last - of.origin,
      shown: shown.get(taskId)?.length ?? 0,
    };
  });
}

function edgesOf({ tasks }: DagManifest, places: Places) {
  const edges = tasks.flatMap(({ taskId, upstream }) =>
    upstream.map((source) => [places.get(source)!, places.get(taskId)!] as const),
  );
  return { from: edges.map(([from]) => from), to: edges.map(([, to]) => to) };
}

function showPath(
  { steps, time }: CriticalPath,
  places: Places,
  origin: number,
): z.output<typeof pathDocument> {
  const [work, queue, wait, overhead] = TIME_KINDS.map((kind) => steps.map((step) => step.time[kind]));
  return {
    tasks: steps.map(({ taskId }) => places.get(taskId)!),
    map_indexes: steps.map(({ mapIndex }) => mapIndex),
    after: steps.map(({ after }) => after),
    starts: steps.map(({ start }) => start - origin),
    ends: steps.map(({ end }) => end - origin),
    ...{ work: work!, queue: queue!, wait: wait!, overhead: overhead!, time },
  };
}

function showProjection(
  { end, lateEnd, path, tasks, unknown }: Projection,
  places: Places,
  origin: number,
): z.output<typeof projectionDocument> {
  return {
    tasks: tasks.map(({ taskId }) => places.get(taskId)!),
    starts: tasks.map(({ start }) => start - origin),
    ends: tasks.map((task) => task.end - origin),
    late_ends: tasks.map((task) => task.lateEnd - origin),
    path: path.map((taskId) => places.get(taskId)!),
    end: end - origin,
    late_end: lateEnd - origin,
    unknown,
  };
}

function showUsual({ run, runs, tasks }: UsualTimes, places: Places): z.output<typeof usualDocument> {
  return {
    runs,
    p50: run?.p50 ?? null,
    p95: run?.p95 ?? null,
    tasks: [...places.keys()].map((taskId) => tasks.get(taskId) ?? null),
  };
}

function showCompared({ path, run, tasks }: ComparedRun, places: Places): z.output<typeof comparedDocument> {
  return {
    run_id: run.run_id,
    state: run.state,
    version: run.version,
    started: run.started,
    ended: run.ended,
    time: path?.time ?? null,
    tasks: [...places.keys()].map((taskId) => tasks.get(taskId) ?? null),
  };
}
