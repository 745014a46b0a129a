/**
 * Finds what is new in the result of a poll. There are two kinds of results:
 *
 * A state: an answer, a row, a value. It may end and return, so nothing in it distinguishes this occurrence from the
 * last. The last event is stored outside of this process until the state is seen to have ended: a start that finds the
 * same state reports nothing.
 *
 * Things: files, objects of a bucket. Each is an event of its own, with a key that identifies its current version. Every
 * process computes the same key, so the store of events recognizes it.
 */
import { isDeepStrictEqual } from "node:util";
import type { Json } from "@tradewind/sdk/manifest";
import type { BuiltinHost, Fired } from "./builtin-kind.ts";

/** The result of a poll: the event, or in a few words why there is none yet. */
export type Sight = { readonly event: Json } | { readonly event?: undefined; readonly note: string };

/** The target of polls. */
export interface Place {
  /** Polls of the same place share a limit, across all triggers of the process. */
  readonly place: string;
  readonly limit: number;
  /** Calls `hurry` if a poll before the interval is worthwhile. `name`: of the changed thing. */
  watch?(hurry: (name: string | null) => void): void;
  close?(): void;
}

export interface View extends Place {
  /** Polls once. Aborts its work when the signal fires. */
  poll(signal: AbortSignal): Promise<Sight>;
}

export interface Listing extends Place {
  /** The existing things, in order, as they are found: a caller that needs only one does not read the rest. */
  things(signal: AbortSignal): AsyncIterable<Thing>;
  /** Logged if there is none. */
  readonly none: string;
}

export interface Thing {
  readonly name: string;
  readonly event: Json;
  readonly key: string;
}

/** The outcome of one poll. */
export interface Seen {
  readonly fresh: readonly Fired[];
  /** Why there is nothing; null: there is something. */
  readonly note: string | null;
  /** Another poll at once is worthwhile. */
  readonly hasMore: boolean;
}

export interface Watch<V extends Place> {
  /** No further events can follow. */
  readonly isOver: boolean;
  /** Whether a change may be something new. */
  mayBeNew(name: string | null): boolean;
  poll(view: V, signal: AbortSignal): Promise<Seen>;
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

  mayBeNew(): boolean {
    return this.#last === undefined;
  }

  async poll(view: View, signal: AbortSignal): Promise<Seen> {
    const sight = await view.poll(signal);
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

/** Events per poll. A wait needs only the first, so the first poll reads one. */
const AT_FIRST = 1;
const AT_ONCE = 100;

export class ThingWatch implements Watch<Listing> {
  readonly isOver = false;
  /** Keys of the existing things, by name. */
  readonly #known = new Map<string, string>();
  /** The last event of an earlier start: not reported again, which saves the receiver the check of its key. */
  #last: Json | undefined;
  #atOnce = AT_FIRST;

  constructor(last: Json | undefined) {
    this.#last = last;
  }

  mayBeNew(name: string | null): boolean {
    return name === null ? this.#known.size === 0 : !this.#known.has(name);
  }

  async poll({ none, things }: Listing, signal: AbortSignal): Promise<Seen> {
    const fresh: Thing[] = [];
    const there = new Set<string>();
    const tell = (hasMore: boolean): Seen => {
      for (const { key, name } of fresh) this.#known.set(name, key);
      const note = there.size === 0 ? none : null;
      return { fresh: fresh.map(({ event, key }) => ({ payload: event, key })), note, hasMore };
    };
    for await (const thing of things(signal)) {
      there.add(thing.name);
      if (this.#known.get(thing.name) === thing.key || this.#isLast(thing)) continue;
      fresh.push(thing);
      if (fresh.length < this.#atOnce) continue;
      this.#atOnce = AT_ONCE;
      return tell(true);
    }
    for (const name of this.#known.keys()) if (!there.has(name)) this.#known.delete(name);
    return tell(false);
  }

  #isLast({ event, key, name }: Thing): boolean {
    if (this.#last === undefined || !isDeepStrictEqual(event, this.#last)) return false;
    this.#last = undefined;
    this.#known.set(name, key);
    return true;
  }
}
