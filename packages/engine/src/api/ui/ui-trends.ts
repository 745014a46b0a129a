/** How long a DAG or a task took in the latest runs, and how its tasks ended. */
import { z } from "zod";
import { inTopologicalOrder, KIND_OF, type TimeKind, worstState } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { readManifests } from "../../store/list/dag-versions.ts";
import { findDag } from "../../store/list/dags.ts";
import { readRunTimes } from "../../store/timeline/run-timeline.ts";
import { latestRuns, readTaskOutcomes, type TrendRun } from "../../store/ui/trends.ts";
import { noDag } from "../dag/dags.ts";
import { type InstanceTimes, withIntervals } from "../run/run-times.ts";
import type { Resource } from "../server/context.ts";
import { id, int } from "../server/fields.ts";
import { bytes, legend, RUN_LEGEND, runStateBytes, TASK_LEGEND, taskByte, times, UI_TAG } from "./columns.ts";

/** Probes of the index of task instances, one per run and task. */
const MOST_PROBES = 20_000;
/** Instances of a mapped task that count. */
const MOST_INSTANCES = 100;

const durations = z.array(z.number().nullable());

const runColumns = {
  run_ids: z.array(z.string()),
  run_after: times,
  logical_dates: times,
  versions: z.array(z.number()),
};

const durationsDocument = z
  .object({
    ...runColumns,
    states: bytes,
    state_names: legend.describe("The meaning of each byte of `states`: of runs, or of the task."),
    durations: durations.describe(
      "Milliseconds: of the run; or of the task, from its readiness to its end, with all tries.",
    ),
    work: durations.describe("The time of processes; null: of a run, or of a mapped task."),
    queue: durations.describe(
      "The time before the run started; or the time in which the task waited for slots and its executor.",
    ),
    wait: durations.describe("The time in deferrals and before retries; null: as `work`."),
  })
  .meta({ id: "UiDurations", description: "Columns with one value per run, the oldest run first." });

const trendDocument = z.object({
  task_id: z.string(),
  states: bytes.describe("Base64: one byte per run; of a mapped task, the worst of its first 100 instances."),
  durations: durations.describe("Milliseconds of the last try, per run."),
  p50: z.number().nullable().describe("Of the runs in which the task succeeded."),
  p95: z.number().nullable(),
  ended: z.number().describe("Runs in which the task succeeded or failed."),
  failed: z.number(),
  retried: z.number().describe("Runs in which it had more than one try."),
});

const trendsDocument = z
  .object({
    ...runColumns,
    task_states: legend,
    tasks: z.array(trendDocument).describe("Of the current version, in topological order."),
  })
  .meta({ id: "UiTaskTrends" });

const dagParams = z.object({ dag_id: id });
const runs = int(1, 500);

export const uiTrends: Resource = (app, { database }) => {
  app.get(
    "/ui/dags/:dag_id/durations",
    {
      schema: {
        params: dagParams,
        querystring: z.strictObject({ task_id: id.optional(), runs: runs.default(100) }),
        response: { 200: durationsDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId }, query: { runs: count, task_id: taskId } }) => {
      if ((await findDag(database, dagId)) === undefined) throw noDag(dagId);
      const shown = (await latestRuns(database, dagId, count)).reverse();
      if (taskId !== undefined)
        return { ...showRuns(shown), ...(await taskColumns(database, shown, taskId)) };
      return {
        ...showRuns(shown),
        states: runStateBytes(shown.map(({ state }) => state)),
        state_names: [...RUN_LEGEND],
        durations: shown.map(({ duration }) => duration),
        work: shown.map(() => null),
        queue: shown.map(({ queue }) => queue),
        wait: shown.map(() => null),
      };
    },
  );

  app.get(
    "/ui/dags/:dag_id/task-trends",
    {
      schema: {
        params: dagParams,
        querystring: z.strictObject({
          runs: int(1, 100).default(30).describe("Fewer for DAGs with many tasks."),
        }),
        response: { 200: trendsDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId }, query }) => {
      const dag = await findDag(database, dagId);
      if (dag === undefined) throw noDag(dagId);
      const versionId = dag.version_id;
      const manifest =
        versionId === null ? undefined : (await readManifests(database, [versionId])).get(versionId);
      const taskIds = manifest ? inTopologicalOrder(manifest).map(({ taskId }) => taskId) : [];
      const most = Math.max(1, Math.floor(MOST_PROBES / Math.max(1, taskIds.length)));
      const shown = (await latestRuns(database, dagId, Math.min(query.runs, most))).reverse();
      return {
        ...showRuns(shown),
        task_states: [...TASK_LEGEND],
        tasks: await taskTrends(database, shown, taskIds),
      };
    },
  );
};

function showRuns(shown: readonly TrendRun[]) {
  return {
    run_ids: shown.map(({ run_id }) => run_id),
    run_after: shown.map(({ run_after }) => run_after),
    logical_dates: shown.map(({ logical_date }) => logical_date),
    versions: shown.map(({ version }) => version),
  };
}

async function taskColumns(connection: Connection, shown: readonly TrendRun[], taskId: string) {
  const range = { taskId, from: -1, to: MOST_INSTANCES - 1, also: [] };
  const ids = shown.map((run) => run.id);
  const instances = withIntervals(await readRunTimes(connection, ids, range));
  const byRun = Map.groupBy(instances, ({ runId }) => runId);
  const rows = shown.map((run) => byRun.get(run.id) ?? []);
  const partOf = (kind: TimeKind) =>
    rows.map((own) => (own.length === 1 && own[0]!.mapIndex < 0 ? timeOf(own[0]!, kind) : null));
  return {
    states: stateBytes(rows.map((own) => own.map(({ state }) => state))),
    state_names: [...TASK_LEGEND],
    durations: rows.map(durationOf),
    work: partOf("work"),
    queue: partOf("queue"),
    wait: partOf("wait"),
  };
}

/** null: none has ended, or one goes on. */
function durationOf(instances: readonly InstanceTimes[]): number | null {
  const intervals = instances.flatMap((each) => each.intervals);
  if (intervals.length === 0 || intervals.some(({ end }) => end === null)) return null;
  const end = intervals.reduce((last, each) => Math.max(last, each.end!), Number.NEGATIVE_INFINITY);
  return end - intervals.reduce((first, { start }) => Math.min(first, start), end);
}

function timeOf({ intervals }: InstanceTimes, kind: TimeKind): number | null {
  if (intervals.length === 0 || intervals.at(-1)!.end === null) return null;
  return intervals.reduce(
    (sum, each) => (KIND_OF[each.kind] === kind ? sum + each.end! - each.start : sum),
    0,
  );
}

function stateBytes(states: readonly (readonly InstanceTimes["state"][])[]): string {
  return Buffer.from(states.map((own) => (own.length === 0 ? 0 : taskByte(worstState(own))))).toString(
    "base64",
  );
}

async function taskTrends(connection: Connection, shown: readonly TrendRun[], taskIds: readonly string[]) {
  const ids = shown.map((run) => run.id);
  const rows = await readTaskOutcomes(connection, ids, taskIds);
  const byTask = Map.groupBy(rows, ({ task_id }) => task_id);
  return taskIds.map((taskId): z.output<typeof trendDocument> => {
    const own = new Map(byTask.get(taskId)?.map((row) => [row.dag_run_id, row]));
    const inOrder = ids.map((runId) => own.get(runId));
    const worst = inOrder.map((row) => row && worstState(row.states));
    const good = inOrder.flatMap((row, place) => (worst[place] === "success" ? (row?.duration ?? []) : []));
    good.sort((a, b) => a - b);
    const failed = worst.filter((state) => state === "failed").length;
    return {
      task_id: taskId,
      states: stateBytes(inOrder.map((row) => row?.states ?? [])),
      durations: inOrder.map((row) => row?.duration ?? null),
      p50: quantile(good, 0.5),
      p95: quantile(good, 0.95),
      ended: failed + worst.filter((state) => state === "success").length,
      failed,
      retried: inOrder.filter((row) => (row?.tries ?? 0) > 1).length,
    };
  });
}

/** As percentile_disc of PostgreSQL. */
function quantile(sorted: readonly number[], part: number): number | null {
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? null;
}
