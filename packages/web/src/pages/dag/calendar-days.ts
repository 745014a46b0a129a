/** A calendar as weeks, and what each day shows. Pure. */

/** As the server sends it: columns with one value per day. */
export interface CalendarColumns {
  readonly days: readonly string[];
  readonly queued: readonly number[];
  readonly running: readonly number[];
  readonly success: readonly number[];
  readonly failed: readonly number[];
  readonly planned: readonly number[];
  readonly longest: readonly (number | null)[];
  readonly run_ids: readonly (string | null)[];
}

export interface CalendarDay {
  readonly day: string;
  /** Column and row: the week, and Monday as 0. */
  readonly week: number;
  readonly weekday: number;
  readonly counts: Readonly<Record<"failed" | "running" | "queued" | "success" | "planned", number>>;
  readonly longest: number | null;
  readonly runId: string | null;
}

export interface CalendarMonth {
  readonly label: string;
  readonly week: number;
}

const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

export function calendarDays(columns: CalendarColumns): CalendarDay[] {
  const [first] = columns.days;
  if (first === undefined) return [];
  const before = weekdayOf(first);
  return columns.days.map((day, index) => ({
    day,
    week: Math.floor((index + before) / 7),
    weekday: (index + before) % 7,
    counts: {
      failed: columns.failed[index]!,
      running: columns.running[index]!,
      queued: columns.queued[index]!,
      success: columns.success[index]!,
      planned: columns.planned[index]!,
    },
    longest: columns.longest[index] ?? null,
    runId: columns.run_ids[index] ?? null,
  }));
}

/** The months that begin in these days, above the week of their first day. */
export function calendarMonths(days: readonly CalendarDay[]): CalendarMonth[] {
  return days
    .filter(({ day }) => day.endsWith("-01"))
    .map(({ day, week }) => {
      const month = Number(day.slice(5, 7)) - 1;
      return { label: month === 0 ? `Jan ${day.slice(0, 4)}` : MONTHS[month]!, week };
    });
}

/** The worst state of a day; null: nothing happened. */
export function stateOfDay({
  counts,
}: CalendarDay): "failed" | "running" | "queued" | "success" | "planned" | null {
  for (const state of ["failed", "running", "queued", "success", "planned"] as const)
    if (counts[state] > 0) return state;
  return null;
}

/** Of the runs that have ended. */
export function failureShare({ counts }: CalendarDay): number {
  const ended = counts.failed + counts.success;
  return ended === 0 ? 0 : counts.failed / ended;
}

/** `2 failed, 22 success`. */
export function dayText({ counts }: CalendarDay): string {
  const parts = Object.entries(counts)
    .filter(([, number]) => number > 0)
    .map(([state, number]) => `${number} ${state}`);
  return parts.join(", ") || "no run";
}

function weekdayOf(day: string): number {
  return (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;
}
