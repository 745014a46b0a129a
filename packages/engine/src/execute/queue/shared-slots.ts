/**
 * The capacity of a worker, shared by its queues. Each queue may have as many messages in hand as it has assignments here, and
 * as there is room: so a busy queue takes all, and an idle one takes the next free slot. A message that arrives although the
 * last slot was just taken waits for the next one.
 */
export interface SharedSlotsOptions {
  readonly queues: number;
  /** How many more assignments the worker accepts now. */
  readonly room: () => number;
  /** How many messages a queue may have in hand, at least 1. */
  readonly onLimit: (queue: number, limit: number) => void;
}

export class SharedSlots {
  readonly #options: SharedSlotsOptions;
  readonly #inHand: number[];
  readonly #waiting: { readonly queue: number; readonly start: () => void }[] = [];

  constructor(options: SharedSlotsOptions) {
    this.#options = options;
    this.#inHand = Array.from({ length: options.queues }, () => 0);
  }

  /** Resolves when there is room for a message of this queue. */
  async acquire(queue: number): Promise<void> {
    this.#count(queue, 1);
    if (this.#options.room() > 0 || this.#started === 1) return;
    await new Promise<void>((start) => this.#waiting.push({ queue, start }));
  }

  /** The assignment of a message has ended. */
  release(queue: number): void {
    this.#count(queue, -1);
    this.limit();
  }

  /**
   * The room has changed. It may also grow without a call of this, e.g. when a bundle is fetched. So a message is started
   * without room if no other one would start it when it ends.
   */
  limit(): void {
    if (this.#options.room() > 0 || this.#started === 0) this.#waiting.shift()?.start();
    const room = Math.max(0, this.#options.room() - this.#waiting.length);
    for (const [queue, inHand] of this.#inHand.entries())
      this.#options.onLimit(queue, Math.max(1, inHand + room));
  }

  /** The number of messages in hand that do not wait. */
  get #started(): number {
    return this.#inHand.reduce((sum, inHand) => sum + inHand, 0) - this.#waiting.length;
  }

  #count(queue: number, by: 1 | -1): void {
    this.#inHand[queue] = (this.#inHand[queue] ?? 0) + by;
  }
}
