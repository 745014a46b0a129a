/**
 * Sends the ids of assignments to queues in Redis. Redis is never the truth: a sweep sends an unclaimed assignment again if
 * its message is missing, after a failed send, a crash between commit and send, or a Redis that lost its data. Repeated
 * messages do no harm, because a claim succeeds once.
 */
import type { Queue } from "bullmq";
import { messageOf } from "../../service/errors.ts";
import { Outage } from "../../service/outage.ts";
import type { Launcher, LauncherHost, LaunchRequest, UnclaimedAssignment } from "../remote/launcher.ts";
import { MESSAGE, messagePriority, openQueue } from "./queue-connection.ts";

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
/** Messages of one pipeline; several are sent in parallel. */
const BATCH = 250;
const PAGE = 500;
/** Assignments that one sweep checks at most; the next sweep continues after them. */
const MOST_CHECKED = 10_000;

export class QueueLauncher implements Launcher {
  readonly #options: QueueLauncherOptions;
  readonly #queues = new Map<string, Queue>();
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
    void this.#send(requests);
  }

  /** Without the message, no worker is woken for a cancelled assignment. */
  withdraw(ids: readonly string[]): void {
    for (const queue of this.#queues.values()) for (const id of ids) void queue.remove(id).catch(() => {});
  }

  problem(): string | null {
    return this.#outage?.problem ?? null;
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#sweeping;
    await Promise.all([...this.#queues.values()].map((queue) => queue.close().catch(() => {})));
    this.#queues.clear();
  }

  /** A failed send is repeated by the sweep. */
  async #send(requests: readonly LaunchRequest[]): Promise<void> {
    const sends: Promise<unknown>[] = [];
    for (const [name, group] of Map.groupBy(requests, ({ queue }) => queue)) {
      for (let at = 0; at < group.length; at += BATCH) {
        const messages = group.slice(at, at + BATCH).map(({ id, priority }) => {
          return { name: MESSAGE, data: {}, opts: { jobId: id, priority: messagePriority(priority) } };
        });
        sends.push(this.#within(this.#queue(name).addBulk(messages)));
      }
    }
    try {
      await Promise.all(sends);
      this.#outage?.passed();
    } catch (error) {
      this.#outage?.failed(error);
    }
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
      const missing = await this.#missing(page);
      if (missing.length > 0) {
        host.logger.info("sending assignments again", { messages: missing.length });
        await this.#send(missing);
      }
      this.#after = page.length < PAGE ? undefined : page.at(-1);
      if (this.#after === undefined) return;
    }
  }

  async #missing(page: readonly UnclaimedAssignment[]): Promise<UnclaimedAssignment[]> {
    const messages = page.map(async ({ id, queue: name }) => {
      const queue = this.#queue(name);
      return (await queue.backend.client).hexists(queue.toKey(id), "name");
    });
    const found = await this.#within(Promise.all(messages));
    return page.filter((_, at) => found[at] === 0);
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = openQueue(name, this.#options.url);
      // Reported by the call that fails.
      queue.on("error", (error) => this.#host?.logger.debug("redis", { error: messageOf(error) }));
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async #within<T>(work: Promise<T>): Promise<T> {
    const ms = this.#options.sendTimeoutMs ?? SEND_TIMEOUT_MS;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`Redis did not answer within ${ms} ms`)), ms);
    });
    try {
      return await Promise.race([work, late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
