/**
 * Starts a backfill job when there is a backfill without a live owner, and stops it when it has had none for a while. In
 * between there is no process, no lease and no connection, only a query on an empty index every few seconds, in case a
 * wake-up was lost or an owner died unnoticed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import type { Service } from "../../service/service.ts";
import { hasFreeBackfill } from "../../store/backfill/backfill-claim.ts";
import type { Database, Listening } from "../../store/database/database.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import type { BackfillJob } from "./backfill-job.ts";

/** Finds a dead owner soon after its lease has expired; next to a scheduler, a wake-up is faster. */
const LOOK_MS = 2_000;
const SELDOM_MS = 10_000;
const IDLE_MS = 15_000;

export interface BackfillHostOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  /** Only backfills of these DAGs; left out: all. */
  readonly dags?: ServedDags | undefined;
  /** Whether it subscribes to wake-ups of other processes; false: another part of this process passes them on. */
  readonly listens: boolean;
  /** How long a job without a backfill is kept. */
  readonly idleMs?: number;
  /** Time between two queries without a wake-up: the backstop for a lost one. */
  readonly lookMs?: number;
  /** A job can be started once only. */
  readonly makeJob: () => HostedJob;
}

export interface HostedJob {
  readonly job: BackfillJob;
  /** Closes the resources of the job after it has stopped. */
  close(): Promise<void>;
}

export class BackfillHost implements Service {
  readonly name = "backfills";
  readonly #options: BackfillHostOptions;
  readonly #over = new AbortController();
  #hosted: HostedJob | null = null;
  #listening: Listening | null = null;
  #offLocal: () => void = () => {};
  #loop: Promise<void> = Promise.resolve();
  #bell = Promise.withResolvers<void>();

  constructor(options: BackfillHostOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const { listens, wakeUps } = this.#options;
    const hear = (topic: string) => {
      if (topic === "backfills" || topic === "jobs" || topic === "") this.#bell.resolve();
    };
    this.#offLocal = wakeUps.onLocal(hear);
    if (listens) this.#listening = await wakeUps.listen(hear);
    this.#loop = this.#run();
  }

  /** Does not wait for the loop: its query may be waiting for a database that does not answer. */
  async drain(): Promise<void> {
    this.#over.abort();
    await this.#hosted?.job.drain();
  }

  endDrain(): boolean {
    return this.#hosted?.job.endDrain() ?? false;
  }

  async stop(graceMs?: number): Promise<void> {
    this.#over.abort();
    this.#offLocal();
    await this.#listening?.close();
    await this.#loop;
    await this.#dismiss(graceMs);
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    const { listens, logger, lookMs = listens ? LOOK_MS : SELDOM_MS } = this.#options;
    const outage = new Outage(logger, "look after backfills");
    let idleSince = performance.now();
    while (!signal.aborted) {
      try {
        if (this.#hosted === null) {
          await this.#engage();
          idleSince = performance.now();
        }
        if (this.#hosted?.job.isIdle !== true) idleSince = performance.now();
        else if (performance.now() - idleSince > (this.#options.idleMs ?? IDLE_MS)) await this.#dismiss();
        outage.passed();
      } catch (error) {
        // The database is unavailable, or a resource of the machine is exhausted: retried at the next query.
        outage.failed(error);
      }
      await Promise.race([sleep(lookMs, undefined, { signal }).catch(() => {}), this.#bell.promise]);
      this.#bell = Promise.withResolvers();
    }
  }

  async #engage(): Promise<void> {
    if (!(await hasFreeBackfill(this.#options.database, this.#options.dags)) || this.#over.signal.aborted)
      return;
    const hosted = this.#options.makeJob();
    try {
      await hosted.job.start();
    } catch (error) {
      await hosted.close();
      throw error;
    }
    this.#hosted = hosted;
    // The drain started while the job was starting.
    if (this.#over.signal.aborted) await this.#dismiss();
  }

  async #dismiss(graceMs?: number): Promise<void> {
    const hosted = this.#hosted;
    this.#hosted = null;
    await hosted?.job.stop(graceMs);
    await hosted?.close();
  }
}
