/**
 * Sends the ids of assignments to queues in Redis. Redis is never the truth: a sweep sends unclaimed assignments again, which
 * changes nothing while their messages wait. Messages are missing after a failed send, a crash between commit and send, the
 * death of a worker between receipt and claim, or if Redis has lost its data. Repeated messages do no harm, because a claim
 * succeeds once.
 */
import type { Redis } from "ioredis";
import { messageOf } from "../../service/errors.ts";
import { Outage } from "../../service/outage.ts";
import type { Launcher, LauncherHost, LaunchRequest, UnclaimedAssignment } from "../remote/launcher.ts";
import { queueKey, senderConnection } from "./queue-connection.ts";

export interface QueueLauncherOptions {
  /** The address of Redis. */
  readonly url: string;
  /** How long a send may take. Default: 1 s. */
  readonly sendTimeoutMs?: number;
  /** Interval of the sweep. Default: 2 s. */
  readonly sweepMs?: number;
}

const SEND_TIMEOUT_MS = 1_000;
const SWEEP_MS = 2_000;
/** Messages of one command; several are sent in parallel. */
const BATCH = 250;
const PAGE = 500;
/** Assignments that one sweep checks at most; the next sweep continues after them. */
const MOST_CHECKED = 10_000;

export class QueueLauncher implements Launcher {
  readonly #options: QueueLauncherOptions;
  /** The queues to which it has sent. */
  readonly #queues = new Set<string>();
  #redis: Redis | null = null;
  #host: LauncherHost | null = null;
  #outage: Outage | null = null;
  #timer: NodeJS.Timeout | null = null;
  #sweeping: Promise<void> | null = null;
  /** Where the next sweep continues. */
  #after: UnclaimedAssignment | undefined;

  constructor(options: QueueLauncherOptions) {
    this.#options = options;
  }

  async start(host: LauncherHost): Promise<void> {
    this.#host = host;
    this.#outage = new Outage(host.logger, "send to Redis");
    this.#timer = setInterval(() => this.#sweep(), this.#options.sweepMs ?? SWEEP_MS);
  }

  launch(requests: readonly LaunchRequest[]): void {
    this.#send(requests).catch((error) => this.#outage?.failed(error));
  }

  /** Without the message, no worker is woken for a cancelled assignment. */
  withdraw(ids: readonly string[]): void {
    for (const queue of this.#queues) this.#client.zrem(queueKey(queue), ...ids).catch(() => {});
  }

  problem(): string | null {
    return this.#outage?.problem ?? null;
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#sweeping;
    this.#redis?.disconnect();
  }

  /** A failed send is repeated by the sweep. Returns how many messages were missing. */
  async #send(requests: readonly LaunchRequest[]): Promise<number> {
    const sends: Promise<number>[] = [];
    for (const [queue, group] of Map.groupBy(requests, (request) => request.queue)) {
      this.#queues.add(queue);
      for (let at = 0; at < group.length; at += BATCH) {
        const messages = group.slice(at, at + BATCH).flatMap(({ id, priority }) => [-priority, id]);
        sends.push(this.#client.zadd(queueKey(queue), "NX", ...messages));
      }
    }
    const added = await Promise.all(sends);
    this.#outage?.passed();
    return added.reduce((sum, count) => sum + count, 0);
  }

  /** Ends an outage although there is nothing to send. */
  async #ping(): Promise<void> {
    await this.#client.ping();
    this.#outage?.passed();
  }

  get #client(): Redis {
    this.#redis ??= this.#connect();
    return this.#redis;
  }

  #connect(): Redis {
    const redis = senderConnection(this.#options.url, this.#options.sendTimeoutMs ?? SEND_TIMEOUT_MS);
    // Reported by the call that fails.
    redis.on("error", (error) => this.#host?.logger.debug("redis", { error: messageOf(error) }));
    return redis;
  }

  #sweep(): void {
    this.#sweeping ??= this.#resend()
      .catch((error) => this.#outage?.failed(error))
      .finally(() => {
        this.#sweeping = null;
      });
  }

  /** Checks the whole backlog, and not only its beginning: a queue without workers must not hide the others. */
  async #resend(): Promise<void> {
    const host = this.#host;
    if (host === null) return;
    const waitedMs = this.#options.sweepMs ?? SWEEP_MS;
    for (let checked = 0; checked < MOST_CHECKED && this.#timer !== null; checked += PAGE) {
      const after = this.#after;
      const page = await host.unclaimed({ waitedMs, limit: PAGE, ...(after && { after }) });
      const messages = page.length === 0 ? 0 : await this.#send(page);
      if (page.length === 0 && this.problem() !== null) await this.#ping();
      // A few were received and claimed after they were read.
      if (messages > 0) host.logger.debug("sent assignments again", { messages });
      this.#after = page.length < PAGE ? undefined : page.at(-1);
      if (this.#after === undefined) return;
    }
  }
}
