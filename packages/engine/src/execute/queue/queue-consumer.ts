/**
 * Receives the ids of assignments from queues in Redis, at most as many as the worker has room for: a message that waits for
 * a slot here could be received by another worker. Room is a free slot; while tasks take only milliseconds, also as many more
 * as will have a slot within 40 ms, as in a scheduler. A message stays in Redis until its assignment has ended.
 */
import { Worker as QueueWorker } from "bullmq";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import { PREFIX, queueKey, receiverConnection } from "./queue-connection.ts";
import { SharedSlots } from "./shared-slots.ts";

export interface QueueConsumerOptions {
  readonly url: string;
  readonly queues: readonly string[];
  /** How many more assignments the worker accepts now. */
  readonly room: () => number;
  readonly logger: Logger;
  /** Runs an assignment; resolves when it has ended, or is not to be run. */
  readonly run: (id: string) => Promise<unknown>;
}

/** A message whose receiver died before it claimed the assignment is delivered again after at most both together. */
const LOCK_MS = 10_000;
const STALLED_MS = 5_000;

export class QueueConsumer {
  readonly #options: QueueConsumerOptions;
  readonly #receivers: QueueWorker[] = [];
  readonly #slots: SharedSlots;
  readonly #outage: Outage;

  constructor(options: QueueConsumerOptions) {
    this.#options = options;
    this.#outage = new Outage(options.logger, "receive from Redis");
    this.#slots = new SharedSlots({
      queues: options.queues.length,
      room: options.room,
      onLimit: (at, limit) => {
        const receiver = this.#receivers[at];
        if (receiver !== undefined) receiver.concurrency = limit;
      },
    });
  }

  start(): void {
    const { queues, room, url } = this.#options;
    for (const [at, queue] of queues.entries()) {
      const receiver = new QueueWorker(queueKey(queue), ({ id = "" }) => this.#receive(at, id), {
        connection: receiverConnection(url),
        prefix: PREFIX,
        concurrency: Math.max(1, room()),
        lockDuration: LOCK_MS,
        stalledInterval: STALLED_MS,
        // The database decides whether an assignment counts: a message is delivered as often as needed.
        maxStalledCount: 1_000_000,
        removeOnComplete: { count: 0 },
        removeOnFail: { count: 0 },
      });
      receiver.on("error", (error) => this.#outage.failed(error));
      receiver.on("active", () => this.#outage.passed());
      this.#receivers.push(receiver);
    }
  }

  /**
   * Receives nothing more. The connections are closed: a receiver that waits for a message would take the next one although
   * it is paused. The messages of assignments that have not ended stay in Redis; their claims decide what happens to them.
   */
  async pause(): Promise<void> {
    const receivers = this.#receivers.splice(0);
    await Promise.all(receivers.map((receiver) => receiver.close(true).catch(() => {})));
  }

  resume(): void {
    if (this.#receivers.length === 0) this.start();
  }

  async #receive(queue: number, id: string): Promise<void> {
    await this.#slots.acquire(queue);
    try {
      const running = this.#options.run(id);
      this.#slots.limit();
      await running;
    } catch (error) {
      // Its assignment is still unclaimed, or its worker is known: the message is not needed.
      this.#options.logger.warn("cannot run an assignment", { assignment: id, error: messageOf(error) });
    } finally {
      this.#slots.release(queue);
    }
  }
}
