/**
 * Clients that are expensive to open and can be shared: one per connection, for any number of triggers, closed when the
 * last of them has released it. A changed connection has another key and so a new client, while the old one serves its
 * remaining holders.
 */
export interface Held<C> {
  readonly client: C;
  /** Idempotent. */
  release(): void;
}

export class SharedClients<C> {
  readonly #close: (client: C) => void;
  readonly #open = new Map<string, { readonly client: C; holders: number }>();

  constructor(close: (client: C) => void) {
    this.#close = close;
  }

  hold(key: string, create: () => C): Held<C> {
    const entry = this.#open.get(key) ?? { client: create(), holders: 0 };
    this.#open.set(key, entry);
    entry.holders++;
    let released = false;
    return {
      client: entry.client,
      release: () => {
        if (released) return;
        released = true;
        if (--entry.holders > 0) return;
        this.#open.delete(key);
        this.#close(entry.client);
      },
    };
  }
}
