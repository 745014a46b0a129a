/**
 * Names of instances whose items lie in large lists. The scheduler does not hold those lists: it reads the items that it has
 * just made instances of, piece by piece, beside its loop, and forgets them when the names are made. Until then the run is
 * not over; nothing else waits. The names are then stored in a batch of the run's owner, as all names are.
 *
 * What cannot be read keeps its index, and so does what a scheduler was reading when it died: a name is not worth a failure.
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
  /** null: not yet. */
  names: readonly { readonly instance: Instance; readonly name: string }[] | null;
}

/** Items between two that are wanted: so many are rather read with them. */
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

  /** Gives the names that were found to their runs. */
  settle(touched: Set<RunActor>): void {
    for (const naming of this.#naming) {
      const { actor, names } = naming;
      if (names === null) continue;
      this.#naming.delete(naming);
      actor.unmeasured--;
      touched.add(actor);
      // One that was folded up meanwhile is not what lies there now.
      for (const { instance, name } of names) if (instance.position >= 0) actor.model.label(instance, name);
    }
  }

  /** Never fails: what is missing in the answer could not be read. */
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

  /** undefined where one alone is too much. */
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

/** An output that is large as a whole is in none: it is not read. */
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

/** From and to, both in it: what lies close together is one. */
function stretches(indexes: ReadonlySet<number>): [number, number][] {
  const found: [number, number][] = [];
  for (const index of [...indexes].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && index - last[1] <= GAP) last[1] = index;
    else found.push([index, index]);
  }
  return found;
}
