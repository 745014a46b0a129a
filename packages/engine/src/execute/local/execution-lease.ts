/**
 * How long this executor may run attempts for its owner. Each start compares the clock, not a flag: a process that slept
 * starts nothing before its timers have run. When trust has ended, all placed attempts are stopped: by this executor
 * within half of the margin, or by the guardian when the lease ends.
 */

import type { ChildEnd } from "../attempt/child-end.ts";
import type { LeaseTerm } from "../contract.ts";

export const LEASE_ENDED = "the scheduler could not renew its lease";

export class ExecutionLease {
  readonly #onTrustEnded: (graceMs: number) => void;
  /** Without a term, attempts run without a lease. */
  #term: LeaseTerm = { trustedUntil: Number.POSITIVE_INFINITY, endsAt: Number.POSITIVE_INFINITY };
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;
  /** Attempts placed before this moment have been stopped. */
  #stoppedBefore = Number.NEGATIVE_INFINITY;

  constructor(onTrustEnded: (graceMs: number) => void) {
    this.#onTrustEnded = onTrustEnded;
  }

  isTrusted(): boolean {
    return performance.now() < this.#term.trustedUntil;
  }

  extend(term: LeaseTerm): void {
    // The process slept past the end, and the timer has not fired yet.
    if (!this.isTrusted()) this.#stop();
    this.#term = term;
    if (this.isTrusted()) this.#isStopped = false;
    if (this.#timer === null) this.#arm();
  }

  close(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  /** Whether a process or job that started at `since` has been stopped. */
  isCut(since: number): boolean {
    return since < this.#stoppedBefore || !this.isTrusted();
  }

  /** Marks the end of a job whose process the guardian killed: the process did not die by itself. */
  cut(placedAt: number, end: ChildEnd): ChildEnd {
    const isOwn = end.report !== null || end.interference !== null;
    if (isOwn || !this.isCut(placedAt)) return end;
    return { ...end, interference: { why: "stop", reason: LEASE_ENDED } };
  }

  /** One timer that follows the term, not one per renewal. */
  #arm(): void {
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        if (this.isTrusted()) this.#arm();
        else this.#stop();
      },
      Math.max(0, Math.ceil(this.#term.trustedUntil - performance.now())),
    );
    this.#timer.unref();
  }

  #stop(): void {
    this.#stoppedBefore = performance.now();
    if (this.#isStopped) return;
    this.#isStopped = true;
    const { endsAt, trustedUntil } = this.#term;
    this.#onTrustEnded(Math.min(Math.max(0, endsAt - performance.now()), (endsAt - trustedUntil) / 2));
  }
}
