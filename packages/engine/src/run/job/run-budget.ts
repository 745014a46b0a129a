/**
 * `tradewind scheduler --runs N`: how many more runs the scheduler may claim until N that it owned have ended. The database
 * counts, so runs that were ended by others and lost answers of commits do not matter. A run that was handed to a peer or
 * went back to the queue is replaced by another. Runs that were started by tasks of other runs do not count: a run that
 * waits for its sub-DAG could not end without them.
 */
import type { Database } from "../../store/database/database.ts";
import { countEnded, countedRuns } from "../../store/run/run-count.ts";

export class RunBudget {
  readonly #database: Database;
  /** How many runs must still end. */
  #left: number;
  #owned = new Set<number>();

  constructor(database: Database, runs: number) {
    this.#database = database;
    this.#left = runs;
  }

  /** Whether the runs have ended, and the job owns no other, as of the last `room()`. */
  get isSpent(): boolean {
    return this.#left <= 0 && this.#owned.size === 0;
  }

  /** Runs that were claimed since the last `room()`. */
  add(runs: readonly { readonly id: number }[]): void {
    for (const { id } of runs) this.#owned.add(id);
  }

  /** How many runs may be claimed now. */
  async room(jobId: number): Promise<number> {
    const owned = await countedRuns(this.#database, jobId);
    const ids = new Set(owned.map(({ id }) => id));
    const gone = [...this.#owned].filter((id) => !ids.has(id));
    if (gone.length > 0) this.#left -= await countEnded(this.#database, gone);
    this.#owned = ids;
    return Math.max(this.#left - owned.filter(({ isCounted }) => isCounted).length, 0);
  }
}
