/**
 * The tasks of other schedulers that wait for slots, and the publication of our own. A hint: the order between schedulers
 * depends on it, safety does not.
 */
import type { ReadyQueue } from "../../model/index.ts";
import type { Call, Database } from "../../store/database/database.ts";
import { type PoolWaiter, publishWaiters, waitersOfOthers } from "../../store/pool/pool-waiters.ts";
import type { Ready } from "./ready-task.ts";

export class PeerPoolWaiters {
  readonly #database: Database;
  readonly #queue: ReadyQueue<Ready>;
  #inLine: Ready[] = [];
  /** How many slots our tasks took while a task of another scheduler did not fit, per waiting task. */
  #passed = new Map<string, number>();
  #published = "[]";
  #isClosed = false;

  constructor(database: Database, queue: ReadyQueue<Ready>) {
    this.#database = database;
    this.#queue = queue;
  }

  /** Adds the waiting tasks of other schedulers, so that slots stay free for those with higher priority. True: there are any. */
  async invite(jobId: number): Promise<boolean> {
    this.sendAway();
    if (this.#queue.size === 0) return false;
    const waiters = await waitersOfOthers(this.#database, jobId);
    const passed = new Map(waiters.map((waiter) => [nameOf(waiter), this.#passed.get(nameOf(waiter)) ?? 0]));
    this.#passed = passed;
    this.#inLine = waiters.map((waiter) => {
      const overtaken = passed.get(nameOf(waiter)) ?? 0;
      return { ...waiter, own: null, standsFor: waiter.amount, limits: [], overtaken };
    });
    for (const stranger of this.#inLine) this.#queue.add(stranger);
    return this.#inLine.length > 0;
  }

  sendAway(): void {
    for (const stranger of this.#inLine) {
      this.#queue.remove(stranger);
      this.#passed.set(nameOf(stranger), stranger.overtaken ?? 0);
    }
    this.#inLine = [];
  }

  /** Publishes our first waiting tasks; null: unchanged. */
  news(jobId: number, heads: readonly PoolWaiter[]): Call | null {
    const told = this.#isClosed ? [] : heads;
    const news = JSON.stringify(told);
    if (news === this.#published) return null;
    this.#published = news;
    return publishWaiters(jobId, told);
  }

  /** Admits nothing from now on: other schedulers need not keep slots free for the tasks that wait here. */
  close(): void {
    this.#isClosed = true;
  }

  /** The last publication may not have been stored. */
  reset(): void {
    this.#published = "";
  }
}

/** By its published facts; equal tasks count as one. */
function nameOf({ pool, weight, logicalDate, mapIndex, slots }: Omit<PoolWaiter, "amount">): string {
  return JSON.stringify([pool, weight, logicalDate, mapIndex, slots]);
}
