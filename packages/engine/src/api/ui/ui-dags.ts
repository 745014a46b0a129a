/** `/ui/dags`: the table of DAGs, and the number of DAGs for each further filter. */
import { z } from "zod";
import { zoneOf } from "../../model/index.ts";
import type { Connection } from "../../store/database/database.ts";
import { type DagProblems, dagProblems } from "../../store/ui/dag-problems.ts";
import {
  countDagTable,
  countFacets,
  DAG_TABLE_ORDERS,
  type DagRunFacts,
  type DagTableFilter,
  type DagTableRow,
  type LastRunFacts,
  listDagTable,
  readDagRunFacts,
  readLastRunFacts,
} from "../../store/ui/dag-table.ts";
import { readRunBars } from "../../store/ui/run-bars.ts";
import { scheduleError, scheduleErrorDocument, timetable } from "../dag/schedule-document.ts";
import type { Resource } from "../server/context.ts";
import {
  cursorPageOf,
  date,
  flag,
  id,
  int,
  iso,
  many,
  nullableDate,
  orderBy,
  text,
} from "../server/fields.ts";
import { boundedCount, legend, RUN_LEGEND, UI_TAG } from "./columns.ts";
import { barsDocument, problemDocuments, showBars, showProblems } from "./dag-runs-shown.ts";

/** Runs per DAG. */
const BARS = 30;
const MOST_WORDS = 8;

const STATES = ["failing", "late", "running", "never_run", "import_error"] as const;

const rowDocument = z
  .object({
    dag_id: z.string(),
    description: z.string().nullable(),
    owner: z.string().nullable(),
    tags: z.array(z.string()),
    file: z.string(),
    is_paused: z.boolean(),
    pause_reason: z.string().nullable(),
    version: z.number().nullable(),
    task_count: z.number().nullable(),
    schedule: z.object({
      summary: z.string().nullable().describe("As in the file, e.g. a cron expression."),
      text: z.string().describe("In words."),
      zone: z.string(),
      is_periodic: z.boolean(),
    }),
    schedule_error: scheduleErrorDocument.nullable(),
    next_run_after: nullableDate,
    next_logical_date: nullableDate,
    import_error: z.string().nullable().describe("The first line of the error of its file."),
    ...problemDocuments,
    queued_runs: z.number().describe("Up to 1,000."),
    running_runs: z.number().describe("Up to 1,000."),
    last_failure: z.object({ run_id: z.string(), at: date }).nullable(),
    last_run: z
      .object({
        run_id: z.string(),
        run_type: z.string(),
        tasks: z.number().describe("Task instances, up to 2,000."),
        finished: z.number(),
        waiting: z.number().describe("Deferred task instances."),
        failed_task: z.string().nullable(),
        failed_reason: z.string().nullable(),
      })
      .nullable()
      .describe("Its state and times are the last ones of `bars`."),
    bars: barsDocument,
  })
  .meta({ id: "UiDag" });

const filterQuery = {
  q: text.optional().describe("Words: each must occur in the id, owner, tags or description."),
  tag: many(id).optional(),
  owner: id.optional(),
};
const listQuery = z.strictObject({
  ...filterQuery,
  state: z.enum(STATES).optional(),
  paused: flag.optional(),
  order_by: orderBy(Object.fromEntries(DAG_TABLE_ORDERS.map((name) => [name, name])), "dag_id"),
  limit: int(1, 200).default(50),
  cursor: z.string().max(10_000).default(""),
});

export const uiDags: Resource = (app, { database }) => {
  app.get(
    "/ui/dags",
    {
      schema: {
        querystring: listQuery,
        response: {
          200: z.object({
            dags: z.array(rowDocument),
            total: boundedCount,
            run_states: legend,
            next_cursor: z.string().nullable(),
            previous_cursor: z.string().nullable(),
          }),
        },
        tags: [UI_TAG.name],
      },
    },
    async ({ query }) => {
      const page = cursorPageOf({ ...query, offset: 0 });
      // Both questions are about all DAGs, and only asked if the filter or the order needs the answer.
      const isByProblem = query.order_by.some((key) => key.endsWith("problems"));
      const isOfProblem = query.state === "failing" || query.state === "late";
      const all = isByProblem || isOfProblem ? await dagProblems(database) : null;
      const filter = filterOf(query, all);
      const [listed, total] = await Promise.all([
        listDagTable(database, filter, {
          ...page,
          problems: all === null ? [] : idsOf([...all.failing, ...all.late]),
        }),
        countDagTable(database, filter),
      ]);
      return {
        dags: await withRuns(database, listed.rows),
        total,
        run_states: [...RUN_LEGEND],
        next_cursor: listed.next,
        previous_cursor: listed.previous,
      };
    },
  );

  app.get(
    "/ui/dags/facets",
    {
      schema: {
        querystring: z.strictObject(filterQuery),
        response: { 200: facetsDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ query }) => {
      const { failing, late } = await dagProblems(database);
      const counts = await countFacets(database, filterOf(query, null), {
        failing: idsOf(failing),
        late: idsOf(late),
      });
      return { ...counts, tags: [...counts.tags], owners: [...counts.owners] };
    },
  );
};

const named = z.array(z.object({ name: z.string(), count: z.number() }));
const facetsDocument = z
  .object({
    total: z.number(),
    paused: z.number(),
    running: z.number(),
    never_run: z.number(),
    import_error: z.number(),
    failing: z.number(),
    late: z.number(),
    tags: named.describe("The most frequent first, up to 100."),
    owners: named.describe("The most frequent first, up to 100."),
  })
  .meta({ id: "UiDagFacets", description: "The number of DAGs that each further filter would show." });

interface Filter {
  readonly q?: string | undefined;
  readonly tag?: readonly string[] | undefined;
  readonly owner?: string | undefined;
  readonly state?: (typeof STATES)[number] | undefined;
  readonly paused?: boolean | undefined;
}

function filterOf(
  { owner, paused, q = "", state, tag }: Filter,
  problems: DagProblems | null,
): DagTableFilter {
  return {
    words: q.split(/\s+/).filter(Boolean).slice(0, MOST_WORDS),
    tags: tag,
    owner,
    isPaused: paused,
    hasImportError: state === "import_error",
    isRunning: state === "running",
    hasNeverRun: state === "never_run",
    dagIds: state === "failing" || state === "late" ? idsOf(problems?.[state] ?? []) : undefined,
  };
}

function idsOf(rows: readonly { readonly dag_id: string }[]): string[] {
  return rows.map(({ dag_id }) => dag_id);
}

async function withRuns(
  connection: Connection,
  rows: readonly DagTableRow[],
): Promise<z.output<typeof rowDocument>[]> {
  if (rows.length === 0) return [];
  const dagIds = idsOf(rows);
  const [bars, facts, lastRuns, problems] = await Promise.all([
    readRunBars(connection, dagIds, { count: BARS }),
    readDagRunFacts(connection, dagIds),
    readLastRunFacts(connection, dagIds),
    dagProblems(connection, dagIds),
  ]);
  const failing = new Map(problems.failing.map((each) => [each.dag_id, each]));
  const late = new Map(problems.late.map((each) => [each.dag_id, each]));
  return rows.map((row) => {
    const dagId = row.dag_id;
    return {
      ...showDag(row),
      ...showProblems(failing.get(dagId), late.get(dagId)),
      ...showFacts(facts.get(dagId)),
      last_run: showLastRun(lastRuns.get(dagId)),
      bars: showBars(bars.get(dagId)),
    };
  });
}

function showDag(row: DagTableRow) {
  const schedule = row.header?.schedule;
  const shown = timetable(schedule);
  return {
    dag_id: row.dag_id,
    description: row.header?.description ?? null,
    owner: row.header?.owner ?? null,
    tags: [...(row.header?.tags ?? [])],
    file: row.file,
    is_paused: row.is_paused,
    pause_reason: row.pause_reason,
    version: row.version_number,
    task_count: row.task_count,
    schedule: {
      summary: shown.timetable_summary,
      text: shown.timetable_description,
      zone: zoneOf(schedule),
      is_periodic: shown.timetable_periodic,
    },
    schedule_error: scheduleError(row),
    next_run_after: iso(row.next_run_after),
    next_logical_date: iso(row.next_logical_date),
    import_error: row.import_error,
  };
}

function showFacts(facts: DagRunFacts | undefined) {
  const { last_failed_at: at = null, last_failed_run: runId = null } = facts ?? {};
  return {
    queued_runs: facts?.queued ?? 0,
    running_runs: facts?.running ?? 0,
    last_failure: runId === null || at === null ? null : { run_id: runId, at: iso(at) },
  };
}

function showLastRun(facts: LastRunFacts | undefined) {
  if (facts === undefined) return null;
  const { dag_id: _, ...shown } = facts;
  return shown;
}
