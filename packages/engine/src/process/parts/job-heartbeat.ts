/** Shows a component without runs (DAG processor, API) as alive: a lease that is renewed while its loop turns. */
import { hostname } from "node:os";
import { Lease } from "../../job/lease.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import type { Service } from "../../service/service.ts";
import type { Database } from "../../store/database/database.ts";
import type { JobKind } from "../../store/job/job-lease.ts";
import { VERSION } from "../../version.ts";

const TIMES = { ttlMs: 30_000, renewMs: 10_000, marginMs: 2_000 };

export class JobHeartbeat implements Service {
  readonly name: string;
  readonly #lease: Lease;
  readonly #outage: Outage;
  #timer: NodeJS.Timeout | null = null;
  /** The beat in progress: one at a time, so that a slow database cannot make it register twice. */
  #beating: Promise<void> | null = null;

  constructor(kind: JobKind, database: Database, logger: Logger) {
    this.name = `${kind} heartbeat`;
    this.#outage = new Outage(logger, "renew the heartbeat");
    const who = { kind, hostname: hostname(), pid: process.pid, version: VERSION };
    this.#lease = new Lease(database, who, TIMES);
  }

  async start(): Promise<void> {
    await this.#lease.acquire();
    this.#timer = setInterval(() => {
      this.#beating ??= this.#beat().finally(() => {
        this.#beating = null;
      });
    }, TIMES.renewMs);
  }

  isReady(): boolean {
    return this.#lease.isTrusted();
  }

  /** Waits for a beat in progress: it may register a new job id, which is the one to end. */
  async stop(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    await this.#beating;
    // If this fails, the lease expires.
    await this.#lease.release().catch((error) => this.#outage.failed(error));
  }

  async #beat(): Promise<void> {
    try {
      const isHeld = await this.#lease.renew();
      if (!isHeld && this.#timer !== null) await this.#lease.acquire();
      this.#outage.passed();
    } catch (error) {
      this.#outage.failed(error);
    }
  }
}
