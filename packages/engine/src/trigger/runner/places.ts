/** Limits the concurrent work per key, e.g. a host name; excess work waits in FIFO order. */
interface Key {
  active: number;
  readonly waiting: Set<Waiter>;
}

interface Waiter {
  readonly limit: number;
  readonly enter: () => void;
}

export class Places {
  readonly #keys = new Map<string, Key>();

  /** Rejects without having called `work` if the signal fires before its turn. */
  async within<T>(key: string, limit: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    let entry = this.#keys.get(key);
    if (entry === undefined) {
      entry = { active: 0, waiting: new Set() };
      this.#keys.set(key, entry);
    }
    if (entry.active < limit && entry.waiting.size === 0) entry.active++;
    else await turn(entry, limit, signal);
    try {
      return await work();
    } finally {
      entry.active--;
      admit(entry);
      if (entry.active === 0 && entry.waiting.size === 0) this.#keys.delete(key);
    }
  }
}

function turn(entry: Key, limit: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => {
      entry.waiting.delete(waiter);
      reject(signal.reason as Error);
      admit(entry);
    };
    const waiter: Waiter = {
      // A limit below one would wait forever.
      limit: Math.max(1, limit),
      enter: () => {
        signal.removeEventListener("abort", leave);
        resolve();
      },
    };
    entry.waiting.add(waiter);
    signal.addEventListener("abort", leave, { once: true });
    admit(entry);
  });
}

/** FIFO: an entry with a lower limit blocks the entries behind it, so it is not starved. */
function admit(entry: Key): void {
  for (const waiter of entry.waiting) {
    if (entry.active >= waiter.limit) return;
    entry.waiting.delete(waiter);
    entry.active++;
    waiter.enter();
  }
}
