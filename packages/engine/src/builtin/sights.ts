/**
 * What a look has found that is new. There are two sorts of things to see:
 *
 * A state: an answer, a row, a value. It may cease and come again, so nothing about it tells this time from the last.
 * The last event is remembered beyond this process, until the state is seen to have ceased: a start that finds it as it
 * was says nothing.
 *
 * Things: files, objects of a bucket. Each is an event of its own, with a key that tells this state of it from all
 * others. Whoever sees it again, in whatever process, gives the same key, and whoever stores events knows it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Json } from "@tradewind/sdk/manifest";
import type { BuiltinHost, Fired } from "./builtin-kind.ts";

/** What was seen: the event, or in a few words why there is none yet. */
export type Sight = { readonly event: Json } | { readonly event?: undefined; readonly note: string };

/** Where looks are made. */
export interface Place {
  /** Looks at the same place are limited together, across all triggers of the process. */
  readonly place: string;
  readonly limit: number;
  /** Calls `hurry` when it is worth looking before the interval is over. `name`: of the thing that was changed. */
  watch?(hurry: (name: string | null) => void): void;
  close?(): void;
}

export interface View extends Place {
  /** One look. Ends what it has under way when the signal fires. */
  look(signal: AbortSignal): Promise<Sight>;
}

export interface Listing extends Place {
  /** What is there, in its order, as it is found: whoever needs one only does not look for the rest. */
  things(signal: AbortSignal): AsyncIterable<Thing>;
  /** What is said when there is none. */
  readonly none: string;
}

export interface Thing {
  readonly name: string;
  readonly event: Json;
  readonly key: string;
}

/** What one look came to. */
export interface Seen {
  readonly fresh: readonly Fired[];
  /** Why there is nothing; null: there is something. */
  readonly note: string | null;
  /** It is worth looking again at once. */
  readonly hasMore: boolean;
}

export interface Watch<V extends Place> {
  /** There is nothing more to come. */
  readonly isOver: boolean;
  /** Whether a change may be something new. */
  isWorthALook(name: string | null): boolean;
  look(view: V, signal: AbortSignal): Promise<Seen>;
}

export class StateWatch implements Watch<View> {
  readonly again: "changed" | "again" | "never";
  readonly #host: BuiltinHost;
  #last: Json | undefined;

  constructor(again: StateWatch["again"], host: BuiltinHost) {
    this.again = again;
    this.#host = host;
    this.#last = host.lastEvent;
  }

  get isOver(): boolean {
    return this.again === "never" && this.#last !== undefined;
  }

  isWorthALook(): boolean {
    return this.#last === undefined;
  }

  async look(view: View, signal: AbortSignal): Promise<Seen> {
    const sight = await view.look(signal);
    if (sight.event === undefined) {
      if (this.#last !== undefined) this.#host.ceased?.();
      this.#last = undefined;
      return { fresh: [], note: sight.note, hasMore: false };
    }
    const isNew = this.#last === undefined || this.#differs(this.#last, sight.event);
    if (isNew) this.#last = sight.event;
    return { fresh: isNew ? [{ payload: sight.event, key: null }] : [], note: null, hasMore: false };
  }

  #differs(last: Json, event: Json): boolean {
    return this.again === "changed" && !isDeepStrictEqual(last, event);
  }
}

/** Events of one look. A wait needs the first alone: so much the first look is for. */
const AT_FIRST = 1;
const AT_ONCE = 100;

export class ThingWatch implements Watch<Listing> {
  readonly isOver = false;
  /** Keys of the things that are there, by name. */
  readonly #told = new Map<string, string>();
  /** Of a former start: one that need not be told again, to whoever would have to find that out from its key. */
  #last: Json | undefined;
  #atOnce = AT_FIRST;

  constructor(last: Json | undefined) {
    this.#last = last;
  }

  isWorthALook(name: string | null): boolean {
    return name === null ? this.#told.size === 0 : !this.#told.has(name);
  }

  async look({ none, things }: Listing, signal: AbortSignal): Promise<Seen> {
    const fresh: Thing[] = [];
    const there = new Set<string>();
    const tell = (hasMore: boolean): Seen => {
      for (const { key, name } of fresh) this.#told.set(name, key);
      const note = there.size === 0 ? none : null;
      return { fresh: fresh.map(({ event, key }) => ({ payload: event, key })), note, hasMore };
    };
    for await (const thing of things(signal)) {
      there.add(thing.name);
      if (this.#told.get(thing.name) === thing.key || this.#isLast(thing)) continue;
      fresh.push(thing);
      if (fresh.length < this.#atOnce) continue;
      this.#atOnce = AT_ONCE;
      return tell(true);
    }
    for (const name of this.#told.keys()) if (!there.has(name)) this.#told.delete(name);
    return tell(false);
  }

  #isLast({ event, key, name }: Thing): boolean {
    if (this.#last === undefined || !isDeepStrictEqual(event, this.#last)) return false;
    this.#last = undefined;
    this.#told.set(name, key);
    return true;
  }
}
