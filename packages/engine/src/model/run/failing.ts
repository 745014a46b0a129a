/** When a DAG fails so often that it is better left alone. */

/** A scheduled run that has ended. */
interface EndedRun {
  readonly run_id: string;
  readonly state: string;
}

/**
 * Why the DAG is to be paused, given its newest ended runs, the newest first; null: it is not. Only that many failures in
 * a row count: one success among them, and it goes on.
 */
export function failingReason(newest: readonly EndedRun[], limit: number): string | null {
  const streak = newest.slice(0, limit);
  if (limit < 1 || streak.length < limit || streak.some(({ state }) => state !== "failed")) return null;
  const last = streak[0]?.run_id ?? "";
  const runs = limit === 1 ? "the last scheduled run has" : `the last ${limit} scheduled runs have`;
  return `${runs} failed, up to ${last} (pauseAfterFailures)`;
}
