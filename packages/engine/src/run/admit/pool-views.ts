/**
 * The pools (and the counters of limits, which are internal pools) as last read from the database, and the slots that the
 * current batch frees and takes. The view may be outdated if other schedulers use a pool: it guides the choice, and the
 * database rejects a batch that would oversubscribe one.
 */
import type { Capacity, Place } from "../../model/index.ts";
import type { Database } from "../../store/database/database.ts";
import { limitNames } from "../../store/pool/limit-key.ts";
import { type PoolView, readPools } from "../../store/pool/pool-occupancy.ts";

export class PoolViews {
  readonly #database: Database;
  /** A counter has more free slots than before. */
  readonly #onRoom: (name: string) => void;
  #pools = new Map<string, Capacity>();
  /** Pools that count deferred tasks. */
  readonly #counting = new Set<string>();
  readonly #pending = new Map<string, number>();

  constructor(database: Database, onRoom: (name: string) => void) {
    this.#database = database;
    this.#onRoom = onRoom;
  }

  async refresh(): Promise<void> {
    this.#replace(await readPools(this.#database), "all");
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

  /** The current batch was rejected. */
  reset(): void {
    this.#pending.clear();
    // Tasks may have been set aside because of the slots that the rejected batch took.
    for (const name of this.#pools.keys()) if (isCounter(name)) this.#onRoom(name);
  }

  /** The batch is stored: pending changes become final, then the numbers of the database replace them. */
  commit(settled: readonly PoolView[]): void {
    for (const [name, delta] of this.#pending) {
      const view = this.#pools.get(name);
      if (view) this.#pools.set(name, { slots: view.slots, occupied: view.occupied + delta });
    }
    this.#pending.clear();
    this.#replace(settled, "some");
  }

  #replace(pools: readonly PoolView[], which: "all" | "some"): void {
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

/** An internal pool, which counts the active instances of a task or a DAG across all its runs. */
export function isCounter(name: string): boolean {
  return name.startsWith("@");
}
