/** `/dags/{dag_id}/dagRuns/{dag_run_id}/timeline`: where the time of a run went, and when it will end. Not in Airflow. */
import { z } from "zod";
import {
  type Breakdown,
  INTERVAL_KINDS,
  type Interval,
  inTopologicalOrder,
  type PathStep,
  type UsualTime,
} from "../../model/index.ts";
import type { Resource } from "../server/context.ts";
import { date, int, nullableDate, RUN_STATES, TASK_STATES } from "../server/fields.ts";
import { runParams } from "./dag-runs.ts";
import {
  type InstanceTimes,
  type RunTimeline,
  rangeOf,
  readRunTimeline,
  requireTimelineRun,
} from "./run-times.ts";

const seconds = z.number().describe("Seconds.");
const breakdown = { work: seconds, queue: seconds, wait: seconds, overhead: seconds };
const usual = z
  .object({ p50: seconds, p95: seconds })
  .nullable()
  .describe("In the last successful runs, up to 20.");

const intervalDocument = z.object({
  state: z.enum(INTERVAL_KINDS),
  try_number: z.number(),
  start_date: date,
  end_date: nullableDate.describe("Null: it goes on."),
  next_state: z.enum(TASK_STATES).nullable(),
});

const timelineDocument = z
  .object({
    dag_id: z.string(),
    dag_run_id: z.string(),
    state: z.enum(RUN_STATES),
    as_of: date,
    start_date: nullableDate,
    end_date: nullableDate,
    usual,
    usual_runs: z.number(),
    time: z
      .object(breakdown)
      .nullable()
      .describe(
        "Adds up to the time from the start of the run to its end, or now. Null: it has not started.",
      ),
    critical_path: z
      .array(
        z.object({
          task_id: z.string(),
          map_index: z.number(),
          after: z.enum(["run", "upstream", "itself"]).describe("What it followed; itself: it started over."),
          start_date: date.describe("The end of the step before."),
          end_date: date,
          ...breakdown,
        }),
      )
      .describe("The instances that decided the end of the run, the first one first."),
    projection: z
      .object({
        end_date: date,
        late_end_date: date.describe("If all tasks take as long as in slow runs."),
        path: z.array(z.string()).describe("The tasks that decide the end."),
        tasks: z.array(
          z.object({ task_id: z.string(), start_date: date, end_date: date, late_end_date: date }),
        ),
      })
      .nullable()
      .describe("The earliest end of a run that has not ended. Null: it has, or has streaming tasks."),
    tasks: z
      .array(
        z.object({
          task_id: z.string(),
          instances: z.number(),
          start_date: nullableDate,
          end_date: nullableDate,
          usual,
        }),
      )
      .describe("In topological order."),
    task_instances: z.array(
      z.object({
        task_id: z.string(),
        map_index: z.number(),
        rendered_map_index: z.string().nullable(),
        state: z.enum(TASK_STATES).nullable(),
        try_number: z.number(),
        intervals: z.array(intervalDocument),
      }),
    ),
  })
  .meta({ id: "RunTimeline" });

const timelineQuery = z.strictObject({
  map_limit: int(0, 2000)
    .default(200)
    .describe("Instances of each mapped task; also shown: the last one that ended."),
});

export const runTimeline: Resource = (app, { database }) => {
  app.get(
    "/api/v2/dags/:dag_id/dagRuns/:dag_run_id/timeline",
    {
      schema: {
        params: runParams,
        querystring: timelineQuery,
        response: { 200: timelineDocument },
        tags: ["DagRun"],
      },
    },
    async ({ params: { dag_id: dagId, dag_run_id: runId }, query }) => {
      const run = await requireTimelineRun(database, dagId, runId);
      return showTimeline(dagId, await readRunTimeline(database, dagId, run, query.map_limit));
    },
  );
};

const at = (ms: number) => new Date(ms).toISOString();
const atOrNull = (ms: number | null) => (ms === null ? null : at(ms));

function showTimeline(dagId: string, timeline: RunTimeline): z.output<typeof timelineDocument> {
  const { instances, manifest, path, projection, run, usual: usually } = timeline;
  const order = inTopologicalOrder(manifest).map(({ taskId }) => taskId);
  const places = new Map(order.map((taskId, place) => [taskId, place]));
  const placeOf = ({ taskId }: InstanceTimes) => places.get(taskId) ?? order.length;
  return {
    dag_id: dagId,
    dag_run_id: run.run_id,
    state: run.state,
    as_of: at(run.now),
    start_date: atOrNull(run.started),
    end_date: atOrNull(run.ended),
    usual: showUsual(usually.run),
    usual_runs: usually.runs,
    time: path && showBreakdown(path.time),
    critical_path: path?.steps.map(showStep) ?? [],
    projection: projection && {
      end_date: at(projection.end),
      late_end_date: at(projection.lateEnd),
      path: [...projection.path],
      tasks: projection.tasks.map(({ end, lateEnd, start, taskId }) => ({
        ...{ task_id: taskId, start_date: at(start), end_date: at(end), late_end_date: at(lateEnd) },
      })),
    },
    tasks: showTasks(order, timeline),
    task_instances: instances
      .toSorted((a, b) => placeOf(a) - placeOf(b) || a.mapIndex - b.mapIndex)
      .map(({ intervals, label, mapIndex, state, taskId, tryNumber }) => ({
        task_id: taskId,
        map_index: mapIndex,
        rendered_map_index: label ?? (mapIndex < 0 ? null : String(mapIndex)),
        state: state === "pending" ? null : state,
        try_number: tryNumber,
        intervals: intervals.map(showInterval),
      })),
  };
}

function showTasks(order: readonly string[], { instances, maps, usual: { tasks } }: RunTimeline) {
  const mapped = Map.groupBy(maps, ({ taskId }) => taskId);
  const single = new Map(
    instances.filter(({ mapIndex }) => mapIndex === -1).map((each) => [each.taskId, each]),
  );
  return order.map((taskId) => {
    const rows = mapped.get(taskId);
    const one = single.get(taskId);
    const { first, last } = rangeOf(rows ?? []);
    const end = one?.intervals.at(-1)?.end ?? null;
    return {
      task_id: taskId,
      instances: rows?.reduce((sum, { instances: count }) => sum + count, 0) ?? (one ? 1 : 0),
      start_date: atOrNull(rows ? first : (one?.intervals[0]?.start ?? null)),
      end_date: atOrNull(rows ? last : end),
      usual: showUsual(tasks.get(taskId) ?? null),
    };
  });
}

function showUsual(time: UsualTime | null) {
  return time && { p50: time.p50 / 1000, p95: time.p95 / 1000 };
}

function showBreakdown({ overhead, queue, wait, work }: Breakdown) {
  return { work: work / 1000, queue: queue / 1000, wait: wait / 1000, overhead: overhead / 1000 };
}

function showStep({ after, end, mapIndex, start, taskId, time }: PathStep) {
  return {
    ...{ task_id: taskId, map_index: mapIndex, after, start_date: at(start), end_date: at(end) },
    ...showBreakdown(time),
  };
}

function showInterval({ end, kind, next, start, tryNumber }: Interval): z.output<typeof intervalDocument> {
  return {
    state: kind,
    try_number: tryNumber,
    start_date: at(start),
    end_date: atOrNull(end),
    next_state: next === "pending" ? null : next,
  };
}
