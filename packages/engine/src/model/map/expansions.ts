/** The expanded scopes of a run, their lengths, and the relation between the ordinals of nested items. */
import type { Scope } from "../graph/scope.ts";

/** A scope within one item of its parent; -1: the scope has no parent. */
export interface ScopePlace {
  readonly scope: Scope;
  readonly parent: number;
}

/** An expanded scope: its items have the ordinals from `base` on. */
export interface Expansion extends ScopePlace {
  readonly base: number;
  readonly length: number;
  /** The highest try of the instances before the scope was expanded again: the tries of its instances continue from it. */
  readonly tries: number;
  /** How many items have instances already: a long list is created in batches. */
  made: number;
}

/** The stored form. */
export interface ExpansionRow {
  readonly mapId: string;
  readonly parent: number;
  readonly base: number;
  readonly length: number;
  readonly tries: number;
}

interface Known {
  readonly byParent: Map<number, Expansion>;
  /** Sorted by base. */
  readonly inOrder: Expansion[];
}

export class Expansions {
  readonly #known: readonly Known[];

  constructor(scopes: number) {
    this.#known = Array.from({ length: scopes }, () => ({ byParent: new Map(), inOrder: [] }));
  }

  find({ scope, parent }: ScopePlace): Expansion | undefined {
    return this.#known[scope.index]!.byParent.get(parent);
  }

  of(scope: Scope): Iterable<Expansion> {
    return this.#known[scope.index]!.inOrder;
  }

  open({ scope, parent }: ScopePlace, { length, tries }: Pick<Expansion, "length" | "tries">): Expansion {
    const last = this.#known[scope.index]!.inOrder.at(-1);
    const base = last ? last.base + last.length : 0;
    return this.restore({ scope, parent, base, length, tries, made: 0 });
  }

  restore(expansion: Expansion): Expansion {
    const { byParent, inOrder } = this.#known[expansion.scope.index]!;
    byParent.set(expansion.parent, expansion);
    inOrder.splice(this.#after(inOrder, expansion.base), 0, expansion);
    return expansion;
  }

  close({ scope, parent }: ScopePlace): void {
    const { byParent, inOrder } = this.#known[scope.index]!;
    const expansion = byParent.get(parent);
    if (!expansion) return;
    byParent.delete(parent);
    inOrder.splice(inOrder.indexOf(expansion), 1);
  }

  /** The expansion that contains an item. */
  around(scope: Scope, ordinal: number): Expansion {
    const { inOrder } = this.#known[scope.index]!;
    return inOrder[this.#after(inOrder, ordinal) - 1]!;
  }

  /** The item at `level` that encloses an item of `scope`; -1 for level 0. */
  ancestor(scope: Scope | null, ordinal: number, level: number): number {
    if (level === 0) return -1;
    let at = ordinal;
    for (let each = scope; each !== null && each.depth > level; each = each.parent)
      at = this.around(each, at).parent;
    return at;
  }

  /** The index of an item in each enclosing list, outermost first. */
  path(scope: Scope, ordinal: number): number[] {
    const path: number[] = [];
    let at = ordinal;
    for (let each: Scope | null = scope; each !== null; each = each.parent) {
      const { base, parent } = this.around(each, at);
      path.unshift(at - base);
      at = parent;
    }
    return path;
  }

  /** The number of expansions that begin at or before an ordinal. */
  #after(inOrder: readonly Expansion[], ordinal: number): number {
    let [low, high] = [0, inOrder.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (inOrder[middle]!.base <= ordinal) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
