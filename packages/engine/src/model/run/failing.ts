/** When a DAG is paused because its runs keep failing. */

/** An ended scheduled run. */
interface EndedRun {
  readonly run_id: string;
  readonly state: string;
}

/**
 * Why the DAG is paused, given its newest ended runs, newest first; null: it is not paused. Only `limit` consecutive
 * failures count: one success among them resets the count.
 */
export function failingReason(newest: readonly EndedRun[], limit: number): string | null {
  const streak = newest.slice(0, limit);
  if (limit < 1 || streak.length < limit || streak.some(({ state }) => state !== "failed")) return null;
  const last = streak[0]?.run_id ?? "";
  const runs = limit === 1 ? "the last scheduled run has" : `the last ${limit} scheduled runs have`;
  return `${runs} failed, up to ${last} (pauseAfterFailures)`;
}
