/** How long a backfill will take, from the durations of the latest runs. Pure. */

interface Bars {
  readonly started: readonly (number | null)[];
  readonly ended: readonly (number | null)[];
}

/** The median duration of the runs that have ended; null without one. */
export function usualMs({ started, ended }: Bars): number | null {
  const durations = started
    .map((from, index) => (from === null || ended[index] == null ? null : ended[index] - from))
    .filter((each) => each !== null)
    .sort((a, b) => a - b);
  return durations[Math.floor(durations.length / 2)] ?? null;
}

/** Runs in rounds of at most `atOnce`. */
export function estimate(runs: number, usual: number, atOnce: number): number {
  return Math.ceil(runs / Math.max(1, atOnce)) * usual;
}
