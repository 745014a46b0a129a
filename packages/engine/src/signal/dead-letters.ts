/** The keys of a listener that wait for a retry, by the clock of this process. */
import type { RetryEntry } from "../store/signal/signals-listener.ts";

interface KeyName {
  readonly namespace: string;
  readonly key: string;
}

export class DeadLetters {
  readonly #entries = new Map<string, { readonly entry: RetryEntry; readonly at: number }>();

  constructor(entries: readonly RetryEntry[] = []) {
    for (const entry of entries) this.set(entry);
  }

  get size(): number {
    return this.#entries.size;
  }

  has(name: KeyName): boolean {
    return this.#entries.size > 0 && this.#entries.has(nameOf(name));
  }

  set(entry: RetryEntry): void {
    this.#entries.set(nameOf(entry), { entry, at: performance.now() + entry.inMs });
  }

  delete(name: KeyName): void {
    this.#entries.delete(nameOf(name));
  }

  due(): RetryEntry[] {
    const now = performance.now();
    return [...this.#entries.values()].filter(({ at }) => at <= now).map(({ entry }) => entry);
  }

  nextInMs(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#entries.values()) next = Math.min(next, at);
    return Math.max(0, next - performance.now());
  }
}

function nameOf({ key, namespace }: KeyName): string {
  return `${namespace}\n${key}`;
}
