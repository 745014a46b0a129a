/**
 * A job's lease, seen from the job. The database decides whether it is still held; in between, the job trusts it only
 * until `renewal started + ttl - margin` on the monotonic clock, so that a slow round trip or a suspended process can only
 * shorten that trust, never extend it.
 *
 * Lost (the process was suspended, and other jobs declared it dead): they own its runs. The job then releases everything,
 * kills its attempts, and returns under a new identity. Lapsed (the database was unavailable to all jobs) is not lost: the
 * job continues, but gives the others the time of one lease to return, too, before it declares any of them dead.
 */

import type { Database } from "../store/database/database.ts";
import {
  type DeadJob,
  endJob,
  expireDeadJobs,
  type JobIdentity,
  registerJob,
  renewJob,
} from "../store/job/job-lease.ts";

export interface LeaseTimes {
  readonly ttlMs: number;
  readonly renewMs: number;
  readonly marginMs: number;
}

/** The extent of one renewal, in times of `performance.now()`. No peer can take over before `endsAt`. */
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

  /** Converts a time of this machine's clock to the database's. */
  fromLocal(at: number): number {
    return at + this.#offset;
  }

  isTrusted(): boolean {
    return performance.now() < this.#trustedUntil;
  }

  /** True if a third of the trusted time has passed. */
  isDue(): boolean {
    const { marginMs, ttlMs } = this.#times;
    return this.#trustedUntil - performance.now() < ((ttlMs - marginMs) * 2) / 3;
  }

  /** Changes whenever trust was interrupted: a decision from an earlier epoch may concern runs that others own by now. */
  get epoch(): number {
    return this.#epoch;
  }

  /** True once after trust was interrupted: owned rows must be compared with the database. */
  consumeLapse(): boolean {
    const hasLapsed = this.#hasLapsed;
    this.#hasLapsed = false;
    return hasLapsed;
  }

  /** Whether expired jobs may be declared dead: not just after a time in which no job could renew. */
  mayJudge(): boolean {
    return performance.now() >= this.#patientUntil;
  }

  /** True if the last renewal found that another job has ended recently: its work may be unowned. */
  get someoneLeft(): boolean {
    return this.#someoneLeft;
  }

  /** Declares jobs dead whose lease expired before the last renewal. */
  async expireOthers(): Promise<DeadJob[]> {
    return this.#someoneLeft && this.mayJudge() ? expireDeadJobs(this.#database) : [];
  }

  async acquire(): Promise<void> {
    const started = performance.now();
    const { id, now } = await registerJob(this.#database, this.#who, this.#times.ttlMs);
    this.#jobId = id;
    this.#trustedUntil = 0;
    this.#accept(started, now);
  }

  /** False if the lease is permanently lost. Rejects if the database is unavailable. */
  async renew(): Promise<boolean> {
    const started = performance.now();
    const renewal = await renewJob(this.#database, this.#jobId, this.#times.ttlMs);
    if (renewal === null) return false;
    if (!renewal.wasHeld) this.#patientUntil = performance.now() + this.#times.ttlMs;
    this.#someoneLeft = renewal.someoneLeft;
    this.#accept(started, renewal.now);
    return true;
  }

  async release(): Promise<void> {
    this.#trustedUntil = 0;
    await endJob(this.#database, this.#jobId);
  }

  #accept(started: number, databaseNow: number): void {
    if (!this.isTrusted()) {
      this.#epoch++;
      this.#hasLapsed = true;
    }
    // Two renewals may be in progress at once; the one that began later extends further.
    const endsAt = Math.max(started + this.#times.ttlMs, this.#trustedUntil + this.#times.marginMs);
    this.#trustedUntil = endsAt - this.#times.marginMs;
    this.onExtended?.({ trustedUntil: this.#trustedUntil, endsAt });
    // The answer is at most one round trip old; half of it is the best estimate.
    this.#offset = databaseNow - (Date.now() - (performance.now() - started) / 2);
  }
}
