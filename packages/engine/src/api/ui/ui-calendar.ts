/** `/ui/dags/{dag_id}/calendar`: the runs of a DAG by day, and the planned ones. */
import { z } from "zod";
import { dayStarts, zoneOf } from "../../model/index.ts";
import { findDag } from "../../store/list/dags.ts";
import { MOST_CALENDAR_RUNS, readCalendar } from "../../store/ui/calendar.ts";
import { noDag } from "../dag/dags.ts";
import { upcomingOf } from "../dag/schedule-document.ts";
import type { Resource } from "../server/context.ts";
import { id, instant, text } from "../server/fields.ts";
import { invalid } from "../server/problem.ts";
import { UI_TAG } from "./columns.ts";

const MOST_DAYS = 400;
const DEFAULT_DAYS = 365;
const DEFAULT_AHEAD = 30;
const DAY_MS = 86_400_000;
const MOST_PLANNED = 2_000;

const counts = z.array(z.number());

const calendarDocument = z
  .object({
    zone: z.string(),
    days: z.array(z.string()).describe("Each day of the range, as YYYY-MM-DD."),
    queued: counts,
    running: counts,
    success: counts,
    failed: counts,
    longest: z.array(z.number().nullable()).describe("Milliseconds, of the runs that have ended."),
    run_ids: z
      .array(z.string().nullable())
      .describe("One run of the day: the latest failed one, or the latest."),
    planned: counts.describe(
      "Runs that the schedule will create. Events and custom timetables are not foreseen.",
    ),
    is_partial: z.boolean().describe("There were too many runs: the earliest are missing."),
  })
  .meta({
    id: "UiCalendar",
    description: "Columns with one value per day. The day of a run is that of its logical date.",
  });

const day = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}$/, "Must be a day, e.g. 2026-01-31")
  .pipe(instant);

const calendarQuery = z.strictObject({
  from: day.optional().describe("The first day; by default a year before the last."),
  to: day.optional().describe("The last day; by default in a month."),
  zone: text.optional().describe("The time zone of the days; by default that of the schedule."),
});

export const uiCalendar: Resource = (app, { database }) => {
  app.get(
    "/ui/dags/:dag_id/calendar",
    {
      schema: {
        params: z.object({ dag_id: id }),
        querystring: calendarQuery,
        response: { 200: calendarDocument },
        tags: [UI_TAG.name],
      },
    },
    async ({ params: { dag_id: dagId }, query }) => {
      const dag = await findDag(database, dagId);
      if (dag === undefined) throw noDag(dagId);
      const zone = query.zone === undefined ? zoneOf(dag.manifest?.schedule) : zoneGiven(query.zone);
      const last = query.to?.getTime() ?? startOfDay(Date.now() + DEFAULT_AHEAD * DAY_MS);
      const first = query.from?.getTime() ?? last - (DEFAULT_DAYS - 1) * DAY_MS;
      const length = Math.round((last - first) / DAY_MS) + 1;
      if (length < 1 || length > MOST_DAYS)
        throw invalid(["query", "from"], `Must be a range of 1 to ${MOST_DAYS} days`);
      const starts = dayStarts(first, length + 1, zone);
      const rows = await readCalendar(
        database,
        dagId,
        starts.map((start) => new Date(start)),
      );
      const byDay = new Map(rows.map((row) => [row.day, row]));
      const days = Array.from({ length }, (_, index) => index);
      const column = (name: "queued" | "running" | "success" | "failed") =>
        days.map((each) => byDay.get(each)?.[name] ?? 0);
      const planned = days.map(() => 0);
      for (const { logicalDate } of upcomingOf(dag, MOST_PLANNED)) {
        const at = starts.findLastIndex((start) => start <= logicalDate);
        if (at >= 0 && at < length) planned[at]!++;
      }
      const total = rows.reduce((sum, row) => sum + row.queued + row.running + row.success + row.failed, 0);
      return {
        zone,
        days: days.map((each) => new Date(first + each * DAY_MS).toISOString().slice(0, 10)),
        queued: column("queued"),
        running: column("running"),
        success: column("success"),
        failed: column("failed"),
        longest: days.map((each) => byDay.get(each)?.longest ?? null),
        run_ids: days.map((each) => byDay.get(each)?.run_id ?? null),
        planned,
        is_partial: total >= MOST_CALENDAR_RUNS,
      };
    },
  );
};

/** Its usual name. */
function zoneGiven(name: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
  } catch {
    throw invalid(["query", "zone"], "Must be a time zone, e.g. UTC or Europe/Berlin");
  }
}

function startOfDay(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS;
}
