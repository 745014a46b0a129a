import type { Database } from "../../store/database/database.ts";
import { recordPolls } from "../../store/trigger/triggers.ts";

const EVERY_MS = 10_000;
const AT_ONCE = 500;

/** Triggers that have polled the outside world since the last write. */
export class PollNotes {
  readonly #database: Database;
  readonly #ids = new Set<number>();
  #writtenAt = performance.now();

  constructor(database: Database) {
    this.#database = database;
  }

  add(id: number): void {
    this.#ids.add(id);
  }

  clear(): void {
    this.#ids.clear();
  }

  /** Periodic, outside of the loop, in small batches: nothing depends on it, and events must not wait for it. */
  write(jobId: number): void {
    if (performance.now() - this.#writtenAt < EVERY_MS || this.#ids.size === 0) return;
    this.#writtenAt = performance.now();
    const ids = [...this.#ids];
    this.#ids.clear();
    void this.#write(jobId, ids).catch(() => {});
  }

  async #write(jobId: number, ids: readonly number[]): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE)
      await recordPolls(this.#database, jobId, ids.slice(at, at + AT_ONCE));
  }
}
