/**
 * How many workloads an executor may hold beyond its processes. While tasks take a fraction of a millisecond, a
 * process would idle through every batch of the scheduler unless its next tasks are already here; when tasks take
 * long, a task held here would only wait behind them while another machine is free. So: as many as the processes
 * will get through in about the time of two batches of a scheduler that is busy, for some take longer than others.
 */
const AHEAD_MS = 40;
/**
 * What a task is thought to take while none has ended: long enough that none is held. A run with an attempt that is held
 * here cannot be handed to a scheduler with free slots. Twenty short tasks are enough to know better.
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

  /** A task took this long, from being sent to being over. */
  observe(ms: number): void {
    this.#meanMs += WEIGHT * (Math.min(ms, 1_000) - this.#meanMs);
  }

  depth(processes: number): number {
    return Math.min(this.#max, Math.floor((processes * AHEAD_MS) / Math.max(this.#meanMs, 0.01)));
  }
}
