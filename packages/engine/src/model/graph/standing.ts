/**
 * Counts the states of the upstream of a task, or of the source of a map. Instances outside of all scopes count for all
 * instances of the task; instances within a scope are counted per item, by the level of the edge.
 */
import { type Counters, emptyCounters } from "./trigger-rules.ts";

export class Standing {
  /** Over edges of level 0. */
  readonly shared = emptyCounters();
  /** By level, then by item ordinal; null: no instance within a scope was counted. */
  #deep: Map<number, Map<number, Counters>> | null = null;

  /** Whether one verdict holds for all instances. */
  get isShared(): boolean {
    return this.#deep === null;
  }

  at(level: number, ordinal: number): Counters {
    if (level === 0) return this.shared;
    this.#deep ??= new Map();
    return entryOf(
      entryOf(this.#deep, level, () => new Map<number, Counters>()),
      ordinal,
      emptyCounters,
    );
  }

  /** Everything that counts for an instance in the given items, one per level up to `level`. */
  seenFrom(level: number, ordinalAt: (level: number) => number): Counters {
    if (this.#deep === null) return this.shared;
    const sum = { ...this.shared };
    for (const [each, byOrdinal] of this.#deep) {
      const counters = each <= level ? byOrdinal.get(ordinalAt(each)) : undefined;
      if (!counters) continue;
      for (const key of Object.keys(sum) as (keyof Counters)[]) sum[key] += counters[key];
    }
    return sum;
  }
}

function entryOf<V>(map: Map<number, V>, key: number, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
