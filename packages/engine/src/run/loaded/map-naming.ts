/**
 * Names instances whose items are in large lists. The scheduler does not hold those lists in memory: it reads the items of
 * new instances piece by piece, outside of its loop, and drops them when the names are made. The run does not end before
 * that; nothing else waits. The names are then stored in a batch of the run's owner.
 *
 * An instance whose item cannot be read, or whose scheduler died meanwhile, keeps its index: a name is not worth a failure.
 */
import type { Json } from "@tradewind/sdk/manifest";
import { type Instance, type LabelPart, LargeValue, largeIn, nameOf } from "../../model/index.ts";
import type { LargeLists } from "../dispatch/large-lengths.ts";
import type { RunActor } from "./run-actor.ts";

export interface Unnamed {
  readonly instance: Instance;
  readonly parts: readonly LabelPart[];
}

interface Naming {
  readonly actor: RunActor;
  /** null: not read yet. */
  names: readonly { readonly instance: Instance; readonly name: string }[] | null;
}

/** Gaps of at most this many unneeded items are read along. */
const GAP = 16;

export class MapNaming {
  readonly #lists: LargeLists;
  readonly #wake: () => void;
  readonly #naming = new Set<Naming>();

  constructor(lists: LargeLists, wake: () => void) {
    this.#lists = lists;
    this.#wake = wake;
  }

  drop(actor: RunActor): void {
    for (const each of this.#naming) if (each.actor === actor) this.#naming.delete(each);
  }

  begin(actor: RunActor, unnamed: readonly Unnamed[]): void {
    const naming: Naming = { actor, names: null };
    this.#naming.add(naming);
    actor.unmeasured++;
    void this.#read(unnamed.flatMap(({ parts }) => largeIn(parts))).then((items) => {
      const item = (value: LargeValue) => items.get(value.name);
      naming.names = unnamed.map(({ instance, parts }) => ({ instance, name: nameOf(parts, item) }));
      this.#wake();
    });
  }

  /** Applies the names that were read. */
  applyNames(touched: Set<RunActor>): void {
    for (const naming of this.#naming) {
      const { actor, names } = naming;
      if (names === null) continue;
      this.#naming.delete(naming);
      actor.unmeasured--;
      touched.add(actor);
      // An instance of a map that was collapsed meanwhile does not exist any more.
      for (const { instance, name } of names) if (instance.position >= 0) actor.model.label(instance, name);
    }
  }

  /** Never rejects: items that could not be read are missing in the result. */
  async #read(values: readonly LargeValue[]): Promise<ReadonlyMap<string, Json>> {
    const found = new Map<string, Json>();
    for (const { indexes, list } of byList(values)) {
      for (const [first, last] of stretches(indexes)) {
        const items = await this.#items(list, first, last - first + 1).catch(() => []);
        for (const [place, item] of items.entries())
          if (item !== undefined) found.set(list.item(first + place).name, item);
      }
    }
    return found;
  }

  /** undefined for an item that is too large by itself. */
  async #items(list: LargeValue, first: number, count: number): Promise<readonly (Json | undefined)[]> {
    const items = await this.#lists.items(list, first, count);
    if (items !== null) return items;
    if (count === 1) return [undefined];
    const half = Math.floor(count / 2);
    return [
      ...(await this.#items(list, first, half)),
      ...(await this.#items(list, first + half, count - half)),
    ];
  }
}

/** Skips values that are whole outputs: these are not read. */
function byList(values: readonly LargeValue[]): Iterable<{ list: LargeValue; indexes: Set<number> }> {
  const lists = new Map<string, { list: LargeValue; indexes: Set<number> }>();
  for (const { path, reference } of values) {
    const index = path.at(-1);
    if (index === undefined) continue;
    const list = new LargeValue(reference, path.slice(0, -1));
    const known = lists.get(list.name) ?? { list, indexes: new Set<number>() };
    lists.set(list.name, known);
    known.indexes.add(index);
  }
  return lists.values();
}

/** Inclusive ranges of indexes; close indexes share a range. */
function stretches(indexes: ReadonlySet<number>): [number, number][] {
  const found: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && index - last[1] <= GAP) last[1] = index;
    else found.push([index, index]);
  }
  return found;
}
