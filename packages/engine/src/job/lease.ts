/**
 * A job's lease, from the inside. The database decides whether it is still held; in between, the job trusts it only
 * until `renewal started + ttl - margin` on the monotonic clock, so that a slow round trip or a sleep of the whole
 * process can only shorten that trust, never stretch it.
 *
 * Lost (the process slept, and others declared it dead): they have its runs. The job then lets go of everything, kills
 * its attempts, and comes back under a new identity. Lapsed (the database was away from everybody) is not lost: the
 * job goes on, but gives the others the time of one lease to come back, too, before it declares any of them dead.
 */

import type { Database } from "../store/database/database.ts";
import {
  buryDeadJobs,
  type DeadJob,
  endJob,
  type JobIdentity,
  registerJob,
  renewJob,
} from "../store/job/job-lease.ts";

export interface LeaseTimes {
  readonly ttlMs: number;
  readonly renewMs: number;
  readonly marginMs: number;
}

/** How far one renewal reaches, in moments of `performance.now()`. No peer can take over before `endsAt`. */
export interface LeaseTerm {
  readonly trustedUntil: number;
  readonly endsAt: number;
}

export class Lease {
  readonly #database: Database;
  readonly #who: JobIdentity;
  readonly #times: LeaseTimes;
  #jobId = 0;
  #trustedUntil = 0;
  #patientUntil = 0;
  #someoneLeft = false;
  #epoch = 0;
  #hasLapsed = false;
  /** Called at each acquisition and renewal, before anything else is done with it. */
  onExtended: ((term: LeaseTerm) => void) | null = null;
  /** Database clock minus local clock, in milliseconds. */
  #offset = 0;

  constructor(database: Database, who: JobIdentity, times: LeaseTimes) {
    this.#database = database;
    this.#who = who;
    this.#times = times;
  }

  get jobId(): number {
    return this.#jobId;
  }

  /** The database's clock, estimated from the last round trip. */
  now(): number {
    return Date.now() + this.#offset;
  }

  /** A moment of this machine's clock, in the database's. */
  fromLocal(at: number): number {
    return at + this.#offset;
  }

  isTrusted(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  /** A third of the trust in it is used up. */
  isDue(): boolean {
    const { marginMs, ttlMs } = this.#times;
    return this.#trustedUntil - performance.now() < ((ttlMs - marginMs) * 2) / 3;
  }

  /** Changes whenever trust was interrupted: a decision made in an earlier epoch may concern runs that others own by now. */
  get epoch(): number {
    return this.#epoch;
  }

  /** true once after trust was interrupted: what is owned has to be compared with the database. */
  takeLapse(): boolean {
    const hasLapsed = this.#hasLapsed;
    this.#hasLapsed = false;
    return hasLapsed;
  }

  /** Whether those who look dead may be taken for dead: not just after a time in which nobody could show life. */
  mayJudge(): boolean {
    return performance.now() >= this.#patientUntil;
  }

  /** Whether the last renewal found that another job ended lately: what it had may lie there for anybody. */
  get someoneLeft(): boolean {
    return this.#someoneLeft;
  }

  /** Declares dead those whose lease ran out before the last renewal. */
  async buryOthers(): Promise<DeadJob[]> {
    return this.#someoneLeft && this.mayJudge() ? buryDeadJobs(this.#database) : [];
  }

  async acquire(): Promise<void> {
    const started = performance.now();
    const { id, now } = await registerJob(this.#database, this.#who, this.#times.ttlMs);
    this.#jobId = id;
    this.#trustedUntil = 0;
    this.#settle(started, now);
  }

  /** false: the lease is gone for good. Rejects when the database cannot be asked. */
  async renew(): Promise<boolean> {
    const started = performance.now();
    const renewal = await renewJob(this.#database, this.#jobId, this.#times.ttlMs);
    if (renewal === null) return false;
    if (!renewal.wasHeld) this.#patientUntil = performance.now() + this.#times.ttlMs;
    this.#someoneLeft = renewal.someoneLeft;
    this.#settle(started, renewal.now);
    return true;
  }

  async release(): Promise<void> {
    this.#trustedUntil = 0;
    await endJob(this.#database, this.#jobId);
  }

  #settle(started: number, databaseNow: number): void {
    if (!this.isTrusted()) {
      this.#epoch++;
      this.#hasLapsed = true;
    }
    // Two renewals may be under way at once; the one that began later reaches further.
    const endsAt = Math.max(started + this.#times.ttlMs, this.#trustedUntil + this.#times.marginMs);
    this.#trustedUntil = endsAt - this.#times.marginMs;
    this.onExtended?.({ trustedUntil: this.#trustedUntil, endsAt });
    // The answer is at most one round trip old; half of it is the best guess.
    this.#offset = databaseNow - (Date.now() - (performance.now() - started) / 2);
  }
}
