/** `/ui/home`: whether anything is wrong now, and the runs of the last hours. */
import { z } from "zod";
import { listImportErrors } from "../../store/list/import-errors.ts";
import { dagProblems } from "../../store/ui/dag-problems.ts";
import { databaseLatency } from "../../store/ui/database-state.ts";
import {
  activeBackfills,
  components,
  errorCounts,
  failedRunTasks,
  nowCounts,
  poolUse,
} from "../../store/ui/home.ts";
import { recentRuns } from "../../store/ui/recent-runs.ts";
import { readRunBars } from "../../store/ui/run-bars.ts";
import type { Resource } from "../server/context.ts";
import { date, int, iso, nullableDate } from "../server/fields.ts";
import { boundedCount, legend, RUN_LEGEND, UI_TAG } from "./columns.ts";
import { barsDocument, problemDocuments, showBars, showProblems } from "./dag-runs-shown.ts";

/** DAGs in the lists of failing and late ones. */
const LISTED = 20;
const LISTED_ERRORS = 5;
const SLICES = 144;
/** Runs per DAG in the timeline. */
const MOST_BARS = 400;
const HOUR_MS = 3_600_000;

const counted = boundedCount.extend({
  dags: z.number().describe("In how many DAGs; 0 for waiting tasks."),
  oldest: nullableDate,
});

const componentDocument = z
  .object({
    id: z.number(),
    kind: z.string(),
    name: z.string().nullable(),
    hostname: z.string(),
    pid: z.number(),
    version: z.string(),
    is_alive: z.boolean(),
    started_at: date,
    heartbeat_age: z.number().describe("Seconds, by the clock of the database."),
  })
  .meta({ id: "UiComponent" });

const homeDocument = z
  .object({
    now: date,
    counts: z.object({
      failing: z.object({ dags: z.number(), latest: nullableDate }),
      late: z.object({ dags: z.number(), oldest: nullableDate }),
      running: counted,
      queued: counted,
      waiting: counted,
    }),
    errors: z.object({ import_errors: z.number(), dead_letters: z.number(), dead_deliveries: z.number() }),
    components: z.array(componentDocument),
    database: z.object({ latency_ms: z.number() }),
    failing: z.array(
      z.object({
        dag_id: z.string(),
        run_id: z.string(),
        failed_at: date,
        task: z
          .object({
            task_id: z.string(),
            map_index: z.number(),
            try_number: z.number(),
            reason: z.string().nullable(),
            failed_instances: z.number(),
          })
          .nullable()
          .describe("The task that failed first."),
      }),
    ),
    late: z.array(
      z.object({
        dag_id: z.string(),
        run_id: z.string().nullable(),
        since: date,
        because: z.enum(["not_created", "not_started", "deadline"]),
      }),
    ),
    import_errors: z.array(
      z.object({ id: z.number(), file: z.string(), message: z.string(), created_at: date }),
    ),
    backfills: z.array(
      z.object({
        id: z.number(),
        dag_id: z.string(),
        state: z.string(),
        from_date: date,
        to_date: date,
        total_runs: z.number(),
        handled: z.number().describe("Dates that have been reached."),
        queued: z.number(),
        running: z.number(),
        failed: z.number(),
        created_at: date,
      }),
    ),
    pools: z.array(z.object({ name: z.string(), slots: z.number(), occupied: z.number() })),
    timeline: z.object({
      from: date,
      to: date,
      is_partial: z.boolean().describe("There were too many runs: it begins later than asked for."),
      slices: z
        .object({ success: z.array(z.number()), failed: z.array(z.number()) })
        .describe("Ended runs of all DAGs, in slices of equal length."),
      run_states: legend,
      dags: z
        .array(
          z.object({
            dag_id: z.string(),
            is_paused: z.boolean(),
            next_run_after: nullableDate,
            runs: z.number().describe("Runs that ended in this time."),
            failed: z.number(),
            ...problemDocuments,
            bars: barsDocument,
          }),
        )
        .describe("Failing DAGs first, then late ones, then those with the most runs."),
    }),
  })
  .meta({ id: "UiHome" });

const homeQuery = z.strictObject({
  hours: int(1, 168).default(24),
  dags: int(1, 100).default(14).describe("DAGs in the timeline."),
});

export const uiHome: Resource = (app, { database }) => {
  app.get(
    "/ui/home",
    { schema: { querystring: homeQuery, response: { 200: homeDocument }, tags: [UI_TAG.name] } },
    async ({ query }) => {
      const to = new Date();
      const [problems, counts, errors, jobs, latency, importErrors, backfills, pools] = await Promise.all([
        dagProblems(database),
        nowCounts(database),
        errorCounts(database),
        components(database),
        databaseLatency(database),
        listImportErrors(database, {}, { limit: LISTED_ERRORS, offset: 0, orderBy: ["-timestamp"] }),
        activeBackfills(database),
        poolUse(database),
      ]);
      const late = problems.late.toSorted((a, b) => a.since.getTime() - b.since.getTime());
      const shownFailing = problems.failing.slice(0, LISTED);
      const [tasks, recent] = await Promise.all([
        failedRunTasks(
          database,
          shownFailing.map(({ dag_run_id }) => dag_run_id),
        ),
        recentRuns(database, {
          from: new Date(to.getTime() - query.hours * HOUR_MS),
          to,
          slices: SLICES,
          dags: query.dags,
          first: [...new Set([...problems.failing, ...late].map(({ dag_id }) => dag_id))],
        }),
      ]);
      const bars = await readRunBars(
        database,
        recent.dags.map(({ dag_id }) => dag_id),
        { count: MOST_BARS, since: recent.from },
      );
      const failingOf = new Map(problems.failing.map((each) => [each.dag_id, each]));
      const lateOf = new Map(late.map((each) => [each.dag_id, each]));
      const show = <C extends { oldest: Date | null }>(each: C) => ({ ...each, oldest: iso(each.oldest) });
      return {
        now: iso(to),
        counts: {
          failing: { dags: problems.failing.length, latest: iso(problems.failing[0]?.failed_at ?? null) },
          late: { dags: late.length, oldest: iso(late[0]?.since ?? null) },
          running: show(counts.running),
          queued: show(counts.queued),
          waiting: show(counts.waiting),
        },
        errors,
        components: jobs.map(({ started_at, state: _, ...job }) => ({ ...job, started_at: iso(started_at) })),
        database: { latency_ms: latency },
        failing: shownFailing.map(({ dag_id, dag_run_id, failed_at, run_id }) => {
          const task = tasks.get(dag_run_id);
          return {
            dag_id,
            run_id,
            failed_at: iso(failed_at),
            task: task === undefined ? null : showTask(task),
          };
        }),
        late: late.slice(0, LISTED).map((each) => ({ ...each, since: iso(each.since) })),
        import_errors: importErrors.rows.map((row) => ({
          ...row,
          message: firstLine(row.message),
          created_at: iso(row.created_at),
        })),
        backfills: backfills.map((row) => ({
          ...row,
          from_date: iso(row.from_date),
          to_date: iso(row.to_date),
          created_at: iso(row.created_at),
        })),
        pools,
        timeline: {
          from: iso(recent.from),
          to: iso(to),
          is_partial: recent.is_partial,
          slices: { success: [...recent.success], failed: [...recent.failed] },
          run_states: [...RUN_LEGEND],
          dags: recent.dags.map(({ dag_id: dagId, next_run_after, ...dag }) => ({
            dag_id: dagId,
            ...dag,
            next_run_after: iso(next_run_after),
            ...showProblems(failingOf.get(dagId), lateOf.get(dagId)),
            bars: showBars(bars.get(dagId)),
          })),
        },
      };
    },
  );
};

function showTask({
  failed,
  map_index,
  reason,
  task_id,
  try_number,
}: {
  task_id: string;
  map_index: number;
  try_number: number;
  reason: string | null;
  failed: number;
}) {
  return { task_id, map_index, try_number, reason, failed_instances: failed };
}

function firstLine(text: string): string {
  return (text.split("\n", 1)[0] ?? "").slice(0, 500);
}
