/**
 * Clients that are dear to open and good to share: one per connection, however many triggers use it, closed when the
 * last of them has let go. A connection that was changed has another key and so a client of its own, while the old one
 * serves whoever still holds it.
 */
export interface Held<C> {
  readonly client: C;
  /** Harmless when repeated. */
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
