/**
 * Evaluates deadlines, and delivers notices, beside a scheduler and apart from its loop. Event-driven: it wakes up when
 * runs are created, start or end, when deliveries are stored, and when the next deadline or delivery is due. In addition
 * it polls three mostly empty indexes every few seconds, in case a wake-up got lost or another host died.
 *
 * Any number of hosts may run: each skips the rows that another has locked (store/notify/deadlines.ts). No host owns
 * anything that would have to be taken over.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Topic, WakeUps } from "../job/wake-up.ts";
import type { Logger } from "../service/logger.ts";
import { Outage } from "../service/outage.ts";
import type { Service } from "../service/service.ts";
import type { Connection, Database } from "../store/database/database.ts";
import {
  deadlinesOfVersion,
  judgeDeadlines,
  keepDeadlines,
  type OwnedDeadlines,
  readDueDeadlines,
} from "../store/notify/deadlines.ts";
import { expireDeliveries } from "../store/notify/deliveries.ts";
import { Deliverer, type DelivererOptions } from "./deliverer.ts";
import type { FindConnection } from "./notices.ts";

const LOOK_MS = 5_000;
/** Minimum interval of polls, also while other hosts have locked what is due. */
const GAP_MS = 50;
const NOTES_AT_ONCE = 200;
const DUE_AT_ONCE = 100;
const BURY_EVERY_MS = 10_000;
const VERSIONS_KEPT = 500;

export interface NoticeHostOptions extends Pick<DelivererOptions, "publicUrl"> {
  readonly database: Database;
  readonly logger: Logger;
  readonly wakeUps: WakeUps;
  readonly connection: FindConnection;
  /** Functions were passed on to the jobs that run callbacks. */
  readonly onHanded?: () => void;
  readonly times?: Pick<DelivererOptions, "attemptMs" | "leaseMs"> & {
    readonly buryEveryMs?: number;
    /** Interval of polls without a wake-up: the backstop for a lost one. */
    readonly lookMs?: number;
  };
}

export class NoticeHost implements Service {
  readonly name = "notices";
  readonly #options: NoticeHostOptions;
  readonly #deliverer: Deliverer;
  readonly #over = new AbortController();
  /** By version, which never changes. */
  readonly #deadlines = new Map<number, readonly OwnedDeadlines[]>();
  #offLocal: () => void = () => {};
  #loop: Promise<void> = Promise.resolve();
  #bell = Promise.withResolvers<void>();
  #expireAt = 0;

  constructor(options: NoticeHostOptions) {
    this.#options = options;
    const { connection, database, logger, onHanded, publicUrl, times = {}, wakeUps } = options;
    this.#deliverer = new Deliverer({
      database,
      connection,
      logger,
      onHanded,
      publicUrl,
      onSignal: () => wakeUps.send("signals"),
      onEnd: () => this.#bell.resolve(),
      ...times,
    });
  }

  async start(): Promise<void> {
    this.#offLocal = this.#options.wakeUps.onLocal((topic) => {
      if (concerns(topic)) this.#bell.resolve();
    });
    this.#loop = this.#run();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    this.#offLocal();
    this.#bell.resolve();
    await this.#loop;
    await this.#deliverer.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    const outage = new Outage(this.#options.logger, "look after deadlines and deliveries");
    const rest = (ms: number) => sleep(ms, undefined, { signal }).catch(() => {});
    while (!signal.aborted) {
      this.#bell = Promise.withResolvers();
      let waitMs = this.#sweepMs;
      try {
        waitMs = await this.#step();
        outage.passed();
      } catch (error) {
        // The database is unavailable: the next poll retries.
        outage.failed(error);
      }
      await Promise.race([rest(waitMs), this.#bell.promise]);
      if (waitMs > 0) await rest(GAP_MS);
    }
  }

  /** Does the due work; returns the time until the next. */
  async #step(): Promise<number> {
    const { database, times } = this.#options;
    if (performance.now() >= this.#expireAt) {
      await expireDeliveries(database);
      this.#expireAt = performance.now() + (times?.buryEveryMs ?? BURY_EVERY_MS);
    }
    const look = await readDueDeadlines(database);
    let done = 0;
    if (look.hasNotes) {
      const ofVersion = (tx: Connection, version: number) => this.#ofVersion(tx, version);
      const { missed, taken } = await keepDeadlines(database, ofVersion, NOTES_AT_ONCE);
      this.#logMissed(missed);
      done += taken;
    }
    if (look.dueInMs !== null && look.dueInMs <= 0) {
      const { due, missed } = await judgeDeadlines(database, DUE_AT_ONCE);
      this.#logMissed(missed);
      done += due;
    }
    const isDue = look.deliveryInMs !== null && look.deliveryInMs <= 0;
    if (isDue) done += await this.#deliverer.begin();
    // Completed work may have made more work due.
    if (done > 0) return 0;
    // Due work that was not done is locked by another host, or waits for a place whose release wakes this loop.
    const next = [look.dueInMs, isDue ? null : look.deliveryInMs].map((ms) =>
      Math.max(ms ?? this.#sweepMs, 0),
    );
    return Math.min(this.#sweepMs, ...next.map((ms) => Math.ceil(ms) + 1));
  }

  get #sweepMs(): number {
    return this.#options.times?.lookMs ?? LOOK_MS;
  }

  #logMissed(missed: number): void {
    if (missed === 0) return;
    const { logger, wakeUps } = this.#options;
    logger.info("deadlines were missed", { deadlines: missed });
    wakeUps.send("signals");
  }

  async #ofVersion(tx: Connection, versionId: number): Promise<readonly OwnedDeadlines[]> {
    const known = this.#deadlines.get(versionId);
    if (known !== undefined) return known;
    const read = await deadlinesOfVersion(tx, versionId);
    if (this.#deadlines.size >= VERSIONS_KEPT) this.#deadlines.clear();
    this.#deadlines.set(versionId, read);
    return read;
  }
}

/** A run may have been created, started, ended or edited, or a delivery stored. */
function concerns(topic: Topic): boolean {
  return topic === "notices" || topic === "runs" || topic === "ended" || topic.startsWith("run:");
}
