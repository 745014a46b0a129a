/**
 * The pools (and the counters of limits, which are pools of the engine's own) as last seen in the database, and what the
 * batch at hand frees and takes of them. May be out of date where other schedulers use them, too: it guides the choice,
 * and the batch that stores the choice is refused if it would oversubscribe one.
 */
import type { Capacity, Place } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { limitNames } from "../../store/pool/limit-key.ts";
import { type PoolView, readPools } from "../../store/pool/pool-occupancy.ts";

export class PoolViews {
  readonly #database: Database;
  /** A counter has more room than before. */
  readonly #onRoom: (name: string) => void;
  #pools = new Map<string, Capacity>();
  /** Pools that count deferred tasks, too. */
  readonly #counting = new Set<string>();
  readonly #pending = new Map<string, number>();

  constructor(database: Database, onRoom: (name: string) => void) {
    this.#database = database;
    this.#onRoom = onRoom;
  }

  async refresh(): Promise<void> {
    this.#see(await readPools(this.#database), "all");
  }

  countsDeferred(pool: string): boolean {
    return this.#counting.has(pool);
  }

  now(name: string): Capacity | undefined {
    const view = this.#pools.get(name);
    return view && { slots: view.slots, occupied: view.occupied + (this.#pending.get(name) ?? 0) };
  }

  sizeOf(name: string): number | undefined {
    return this.#pools.get(name)?.slots;
  }

  count({ limitKey, pool, slots }: Place, by: 1 | -1): void {
    this.#pending.set(pool, (this.#pending.get(pool) ?? 0) + by * slots);
    for (const name of limitNames(limitKey)) this.#pending.set(name, (this.#pending.get(name) ?? 0) + by);
  }

  /** The batch at hand came to nothing. */
  reset(): void {
    this.#pending.clear();
    // Some may have been set aside because of what has now come to nothing.
    for (const name of this.#pools.keys()) if (isCounter(name)) this.#onRoom(name);
  }

  /** The batch is stored: what was pending is now so, and the database's own numbers come last. */
  settle(settled: readonly PoolView[]): void {
    for (const [name, delta] of this.#pending) {
      const view = this.#pools.get(name);
      if (view) this.#pools.set(name, { slots: view.slots, occupied: view.occupied + delta });
    }
    this.#pending.clear();
    this.#see(settled, "some");
  }

  #see(pools: readonly PoolView[], which: "all" | "some"): void {
    const before = this.#pools;
    if (which === "all") {
      this.#pools = new Map();
      this.#counting.clear();
    }
    for (const { name, slots, occupied, include_deferred } of pools) {
      if (include_deferred) this.#counting.add(name);
      else this.#counting.delete(name);
      const old = before.get(name);
      this.#pools.set(name, { slots, occupied });
      if (isCounter(name) && old && (old.slots !== slots || old.occupied > occupied)) this.#onRoom(name);
    }
  }
}

/** The engine's own pools: how many instances of a task, or of a DAG, are active across all its runs. */
export function isCounter(name: string): boolean {
  return name.startsWith("@");
}
