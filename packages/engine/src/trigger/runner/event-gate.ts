/**
 * Limits the bytes of events in flight: sent to the supervisor and not yet stored there. A trigger has at most one event
 * in flight; ten thousand events of a megabyte each would fill the memory of both processes. Events that find no room
 * wait in FIFO order.
 */
const MAX_BYTES = 32 * 1024 * 1024;

interface Waiter {
  readonly bytes: number;
  readonly enter: () => void;
}

export class EventGate {
  readonly #maxBytes: number;
  readonly #waiting = new Set<Waiter>();
  #bytes = 0;

  constructor(maxBytes = MAX_BYTES) {
    this.#maxBytes = maxBytes;
  }

  /** Returns the function to call when the event is stored or dropped. A trigger that is stopped while it waits does not enter. */
  async enter(bytes: number, signal: AbortSignal): Promise<() => void> {
    let isInside = true;
    if (this.#waiting.size === 0 && this.#hasRoom(bytes)) this.#bytes += bytes;
    else isInside = await this.#turn(bytes, signal);
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#bytes -= bytes;
      this.#admit();
    };
  }

  /** An event that is larger than the limit is admitted alone. */
  #hasRoom(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#maxBytes;
  }

  #turn(bytes: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#waiting.delete(waiter);
        resolve(false);
        // It may have blocked the events behind it.
        this.#admit();
      };
      const waiter: Waiter = {
        bytes,
        enter: () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        },
      };
      this.#waiting.add(waiter);
      if (signal.aborted) leave();
      else signal.addEventListener("abort", leave, { once: true });
    });
  }

  #admit(): void {
    for (const waiter of this.#waiting) {
      if (!this.#hasRoom(waiter.bytes)) return;
      this.#waiting.delete(waiter);
      this.#bytes += waiter.bytes;
      waiter.enter();
    }
  }
}
