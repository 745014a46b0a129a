/**
 * Ends streams whose token was revoked or has expired. A request is checked when it begins; a stream may last for days.
 * Each token with an open stream is checked every two seconds, once for all its streams. While the database is
 * unavailable, no stream is ended.
 */
export class TokenWatch {
  readonly #isValid: (token: string) => Promise<boolean>;
  readonly #watched = new Map<string, Set<() => void>>();
  #timer: NodeJS.Timeout | null = null;

  constructor(isValid: (token: string) => Promise<boolean>) {
    this.#isValid = isValid;
  }

  /** Calls `onRevoked` once, unless the returned function is called before. */
  watch(token: string, onRevoked: () => void): () => void {
    const streams = this.#watched.get(token) ?? new Set();
    this.#watched.set(token, streams.add(onRevoked));
    this.#timer ??= setTimeout(() => void this.#check(), CHECK_MS).unref();
    return () => {
      streams.delete(onRevoked);
      if (streams.size === 0 && this.#watched.get(token) === streams) this.#watched.delete(token);
    };
  }

  async #check(): Promise<void> {
    await Promise.all([...this.#watched].map(([token, streams]) => this.#checkOne(token, streams)));
    this.#timer = this.#watched.size === 0 ? null : setTimeout(() => void this.#check(), CHECK_MS).unref();
  }

  async #checkOne(token: string, streams: ReadonlySet<() => void>): Promise<void> {
    if (await this.#isValid(token).catch(() => true)) return;
    this.#watched.delete(token);
    for (const end of streams) end();
  }
}

const CHECK_MS = 2_000;
