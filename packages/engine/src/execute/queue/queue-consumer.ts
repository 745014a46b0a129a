/**
 * Receives the ids of assignments from queues in Redis, at most as many as the worker has room for: another worker could run
 * what waits for a slot here. Room is a free slot; while tasks take only milliseconds, also as many more as will have a slot
 * within 40 ms, as in a scheduler. A received message is gone from Redis. If its receiver dies before it has claimed the
 * assignment, the sweep of the launcher sends it again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { messageOf } from "../../service/errors.ts";
import type { Logger } from "../../service/logger.ts";
import { Outage } from "../../service/outage.ts";
import { WakeableSleep } from "../../service/wakeable-sleep.ts";
import { queueKey, receiverConnection, WAIT_S } from "./queue-connection.ts";

export interface QueueConsumerOptions {
  readonly url: string;
  readonly queues: readonly string[];
  /** How many more assignments the worker accepts now. */
  readonly room: () => number;
  readonly logger: Logger;
  /** Runs an assignment; resolves when it has ended, or is not to be run. */
  readonly run: (id: string) => Promise<unknown>;
}

const RETRY_MS = 500;
/** The room is read again after this time: it may also grow without the end of an assignment. */
const ROOM_MS = 500;

export class QueueConsumer {
  readonly #options: QueueConsumerOptions;
  readonly #keys: string[];
  readonly #outage: Outage;
  readonly #roomSleep = new WakeableSleep();
  #redis: Redis | null = null;
  /** Assignments that were received and have not ended. */
  #inHand = 0;

  constructor(options: QueueConsumerOptions) {
    this.#options = options;
    this.#keys = options.queues.map(queueKey);
    this.#outage = new Outage(options.logger, "receive from Redis");
  }

  start(): void {
    const redis = receiverConnection(this.#options.url);
    redis.on("error", (error) => this.#outage.failed(error));
    this.#redis = redis;
    void this.#receive(redis);
  }

  /** Receives nothing more. A message that Redis sends at this moment is lost, and sent again. */
  pause(): void {
    this.#redis?.disconnect();
    this.#redis = null;
    this.#roomSleep.wake();
  }

  resume(): void {
    if (this.#redis === null) this.start();
  }

  async #receive(redis: Redis): Promise<void> {
    while (this.#redis === redis) {
      const room = this.#room;
      if (room <= 0) {
        await this.#roomSleep.sleep(ROOM_MS);
        continue;
      }
      try {
        const ids = await this.#next(redis, room);
        this.#outage.passed();
        for (const id of ids) void this.#run(id);
      } catch (error) {
        if (this.#redis !== redis) return;
        this.#outage.failed(error);
        await sleep(RETRY_MS);
      }
    }
  }

  /** Without an assignment in hand, no end of one would make room: the next one waits here. */
  get #room(): number {
    return Math.max(this.#options.room(), this.#inHand === 0 ? 1 : 0);
  }

  async #next(redis: Redis, room: number): Promise<string[]> {
    for (const key of this.#keys) {
      const found = idsOf(await redis.zpopmin(key, room));
      if (found.length === 0) continue;
      this.#putLast(key);
      return found;
    }
    const found = await redis.bzpopmin(...this.#keys, WAIT_S);
    return found === null ? [] : [found[1]];
  }

  /** A busy queue must not hide the others. */
  #putLast(key: string): void {
    this.#keys.splice(this.#keys.indexOf(key), 1);
    this.#keys.push(key);
  }

  async #run(id: string): Promise<void> {
    this.#inHand++;
    try {
      await this.#options.run(id);
    } catch (error) {
      // Its assignment is still unclaimed, or its worker is known: the message is not needed.
      this.#options.logger.warn("cannot run an assignment", { assignment: id, error: messageOf(error) });
    } finally {
      this.#inHand--;
      this.#roomSleep.wake();
    }
  }
}

/** Redis answers with ids and scores by turns. */
function idsOf(answer: readonly string[]): string[] {
  return answer.filter((_, at) => at % 2 === 0);
}
