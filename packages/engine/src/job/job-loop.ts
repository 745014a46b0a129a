/**
 * The lifecycle of a job: it holds a lease, turns its loop whenever there is work, and renews the lease from within the
 * loop, so that the heartbeat proves progress and not just a live process. During a turn a timer renews it, for a bounded
 * time.
 *
 * A turn that throws is logged and repeated: the state it worked on is in the database. The loop waits for an unavailable
 * database.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../service/errors.ts";
import type { Logger } from "../service/logger.ts";
import type { Service } from "../service/service.ts";
import { CommitUnknownError, type Database, isTransient } from "../store/database/database.ts";
import type { JobIdentity } from "../store/job/job-lease.ts";
import { Lease, type LeaseTimes } from "./lease.ts";
import type { Mailbox } from "./mailbox.ts";

/** A turn that takes longer than this many leases hangs: its lease is left to expire. */
const TURN_LEASES = 5;

export abstract class JobLoop implements Service {
  readonly name: string;
  protected readonly lease: Lease;
  protected readonly logger: Logger;
  /** "draining": a stop follows; active work may end, and nothing else is started. */
  protected state: "new" | "running" | "draining" | "stopping" | "stopped" = "new";
  /** Where the loop waits for work. */
  readonly #mailbox: Mailbox<unknown>;
  readonly #renewMs: number;
  readonly #turnLimitMs: number;
  #renewTimer: NodeJS.Timeout | null = null;
  /** When the current turn began; null between turns. */
  #turnBegan: number | null = null;
  #loop: Promise<void> = Promise.resolve();

  constructor(
    database: Database,
    who: JobIdentity,
    options: { logger: Logger; times: LeaseTimes; mailbox: Mailbox<unknown> },
  ) {
    this.name = who.kind;
    this.logger = options.logger.child({ component: who.kind });
    this.lease = new Lease(database, who, options.times);
    this.#mailbox = options.mailbox;
    this.#renewMs = options.times.renewMs;
    this.#turnLimitMs = TURN_LEASES * options.times.ttlMs;
  }

  /** Before the first turn, with the lease held. */
  protected abstract onStart(): Promise<void>;
  /** Ends active work within `graceMs`; the loop still turns, and stores what is reported. */
  protected abstract onStopping(graceMs: number): Promise<void>;
  protected abstract onHeartbeat(): Promise<void>;
  /** Another job has declared this job dead: release everything. A new lease follows. */
  protected abstract onLeaseLost(): void;
  protected abstract turn(): Promise<void>;

  isReady(): boolean {
    return this.lease.isTrusted();
  }

  /** False if the work of this job makes no progress. The lease is left to expire, so that others take over. */
  protected mayRenew(): boolean {
    return true;
  }

  async start(): Promise<void> {
    await this.lease.acquire();
    try {
      await this.onStart();
    } catch (error) {
      await this.onStopping(0).catch(() => {});
      await this.lease.release().catch(() => {});
      throw error;
    }
    this.state = "running";
    this.#renewTimer = setInterval(() => this.#renewMeanwhile(), this.#renewMs);
    this.#loop = this.#run();
    this.logger.info("started", { job: this.lease.jobId });
    this.#mailbox.wake();
  }

  async stop(graceMs = 5_000): Promise<void> {
    if (this.state !== "running" && this.state !== "draining") return;
    this.state = "stopping";
    await this.onStopping(graceMs);
    this.state = "stopped";
    this.#mailbox.wake();
    await this.#loop;
    if (this.#renewTimer) clearInterval(this.#renewTimer);
    await this.lease
      .release()
      .catch((error) => this.logger.warn("could not end the lease", { error: String(error) }));
  }

  /** Makes the loop turn soon, after an external event that may concern it. */
  wake(): void {
    this.#mailbox.wake();
  }

  async #run(): Promise<void> {
    let renewedAt = performance.now();
    let isAway = false;
    while (this.state !== "stopped" || this.#mailbox.size > 0) {
      await this.#mailbox.wait();
      try {
        // After an outage the lease is renewed in any case: a turn without work proves nothing.
        const isDue =
          isAway || performance.now() - renewedAt >= this.#renewMs * 0.9 || !this.lease.isTrusted();
        const isRenewed = isDue && this.mayRenew();
        if (isRenewed) {
          if (!(await this.lease.renew())) await this.#startOver();
          renewedAt = performance.now();
          await this.onHeartbeat();
        }
        this.#turnBegan = performance.now();
        await this.turn();
        if (isAway && isRenewed) {
          this.logger.info("the database is available again");
          isAway = false;
        }
      } catch (error) {
        const wasAway = isAway;
        isAway = isTransient(error) || error instanceof CommitUnknownError;
        if (isAway) this.#reportOutage(error, wasAway);
        else this.logger.error("a turn of the loop failed", { error: traceOf(error) });
        if (this.state === "stopped") return;
        await sleep(isAway ? 200 : 1_000);
        this.#mailbox.wake();
      } finally {
        this.#turnBegan = null;
      }
    }
  }

  /**
   * A turn may take longer than the lease: many runs at once, a slow database. It counts as work up to the limit; the
   * next turn renews the lease itself, and handles the result of the renewal.
   */
  #renewMeanwhile(): void {
    this.#mailbox.wake();
    if (this.#turnBegan === null || performance.now() - this.#turnBegan > this.#turnLimitMs) return;
    if (this.lease.isDue() && this.mayRenew()) void this.lease.renew().catch(() => {});
  }

  /** Logged once per outage: the loop retries five times a second. */
  #reportOutage(error: unknown, isKnown: boolean): void {
    if (!isKnown) this.logger.warn("the database is unavailable", { error: messageOf(error) });
    this.logger.debug("the database is unavailable", { error: traceOf(error) });
  }

  async #startOver(): Promise<void> {
    this.logger.warn("lease lost: releasing everything", { job: this.lease.jobId });
    this.onLeaseLost();
    await this.lease.acquire();
    this.logger.info("started again", { job: this.lease.jobId });
  }
}

function traceOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
