/**
 * Keeps a backfill job at hand without one: it is started when there is a backfill that nobody alive owns, and stopped
 * when it has had none for a while. Until then there is no process, no lease and no connection, only one look at an
 * index that has nothing in it every few seconds, in case a wake-up got lost or an owner died unnoticed.
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

/** By itself it misses an owner that dies at once when the lease has run out; beside a scheduler it is told. */
const LOOK_MS = 2_000;
const SELDOM_MS = 10_000;
const IDLE_MS = 15_000;

export interface BackfillHostOptions {
  readonly database: Database;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  /** Only backfills of these DAGs; left out: all. */
  readonly dags?: ServedDags | undefined;
  /** Hear wake-ups of other processes by itself: for a process in which nobody else does and passes them on. */
  readonly listens: boolean;
  /** How long a job without a backfill is kept. */
  readonly idleMs?: number;
  /** Between two looks without a reason: the backstop for a lost wake-up. */
  readonly lookMs?: number;
  /** A job can be started once only. */
  readonly makeJob: () => HostedJob;
}

export interface HostedJob {
  readonly job: BackfillJob;
  /** What it was made with, when it has stopped. */
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
        // The database is away, or the machine short of something: the next look tries again.
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
    // The drain began while the job was starting.
    if (this.#over.signal.aborted) await this.#dismiss();
  }

  async #dismiss(graceMs?: number): Promise<void> {
    const hosted = this.#hosted;
    this.#hosted = null;
    await hosted?.job.stop(graceMs);
    await hosted?.close();
  }
}
