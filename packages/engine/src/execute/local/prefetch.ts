/**
 * How many workloads an executor may queue beyond its processes. If tasks take a fraction of a millisecond, a process
 * would idle during every batch of the scheduler unless its next tasks are queued here. If tasks take long, a queued task
 * would wait here while another machine is free. So the queue holds what the processes run in about two batches of a
 * busy scheduler.
 */
const AHEAD_MS = 40;
/**
 * The assumed duration before any task has ended: long enough that none is queued. A run with a queued attempt cannot be
 * handed to a scheduler with free slots. Twenty short tasks are enough to correct the estimate.
 */
const UNKNOWN_MS = 400;
/** Weight of the newest duration in the running mean. */
const WEIGHT = 0.1;

export class Prefetch {
  readonly #max: number;
  #meanMs = UNKNOWN_MS;

  constructor(max: number) {
    this.#max = max;
  }

  /** Records the duration of a task, from placing to its end. */
  observe(ms: number): void {
    this.#meanMs += WEIGHT * (Math.min(ms, 1_000) - this.#meanMs);
  }

  depth(processes: number): number {
    return Math.min(this.#max, Math.floor((processes * AHEAD_MS) / Math.max(this.#meanMs, 0.01)));
  }
}
