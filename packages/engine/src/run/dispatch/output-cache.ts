/**
 * A cache of values that were just stored (outputs, ended waits), so that a downstream task needs no query. Values that
 * are not here are read from the database. Bounded by bytes, and the oldest entries are dropped first. Each entry also
 * counts its overhead, so that any number of small values is bounded. For a large output it has the reference.
 */
import type { Known } from "../../model/index.ts";

interface Entry {
  readonly value: Known;
  readonly bytes: number;
}

/** The overhead of an entry: the key, the entry and its slot in the map. */
const ENTRY_BYTES = 250;

export class OutputCache {
  readonly #limit: number;
  readonly #entries = new Map<string, Entry>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.#limit = limitBytes;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @param length The length of the value as JSON. */
  set(key: string, value: Known, length: number): void {
    this.delete(key);
    const bytes = length + ENTRY_BYTES;
    if (bytes > this.#limit / 8) return;
    this.#entries.set(key, { value, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#limit) break;
      this.delete(oldest);
    }
  }

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  get(key: string): Known | undefined {
    return this.#entries.get(key)?.value;
  }

  delete(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
  }
}

export function outputKey(runId: number, taskId: string, mapIndex: number): string {
  return `${runId}/${taskId}/${mapIndex}`;
}
