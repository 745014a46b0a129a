/**
 * Waits for signals, evaluated together: waits for the same exact key share its rows, each from its own last position.
 * A wait fires with the first signal that matches it and was sent since the wait's start time, possibly before the wait
 * was created.
 *
 * Matches stay here until `take` returns them: a poll that fails half way loses nothing.
 */
import type { SignalArgs, SignalEvent } from "@tradewind/sdk/builtin-triggers";
import { RESERVED_NAMESPACES } from "@tradewind/sdk/signal-names";
import { fitsWait, hasWildcard, type SignalFacts } from "../../model/index.ts";
import { isReserved, likePattern } from "../../model/signal/signal-names.ts";
import type { Database } from "../../store/database/database.ts";
import {
  comparePositions,
  LOG_BEGIN,
  type LogPosition,
  startSince,
} from "../../store/signal/signals-position.ts";
import { readMatching, type SignalRow, sentAt, signalFacts } from "../../store/signal/signals-read.ts";
import {
  logHead,
  positionsOf,
  readKeys,
  versionsBefore,
} from "../../store/trigger/engine-conditions-signals.ts";
import { WaitIndex } from "./engine-signals-index.ts";

const KEYS_AT_ONCE = 500;
const ROWS_OF_A_KEY = 100;
const LAST_VERSION = Number.MAX_SAFE_INTEGER;

/** One wait; `from` is the position of its next poll, null before the first. */
interface Wait<From> {
  readonly id: number;
  readonly args: SignalArgs;
  readonly since: Date;
  from: From | null;
}

/** Waits for the same namespace and key. */
class Group<From> {
  readonly namespace: string;
  readonly key: string;
  readonly #waits = new Map<number, Wait<From>>();
  readonly #index = new WaitIndex<Wait<From>>();
  readonly #compare: (a: From, b: From) => number;

  constructor({ key, namespace }: SignalArgs, compare: (a: From, b: From) => number) {
    this.namespace = namespace;
    this.key = key;
    this.#compare = compare;
  }

  get size(): number {
    return this.#waits.size;
  }

  add(wait: Wait<From>): void {
    this.#waits.set(wait.id, wait);
    this.#index.add(wait);
  }

  delete(id: number): void {
    const wait = this.#waits.get(id);
    if (wait === undefined) return;
    this.#waits.delete(id);
    this.#index.delete(wait);
  }

  get fresh(): Wait<From>[] {
    return [...this.#waits.values()].filter(({ from }) => from === null);
  }

  /** The position of the wait that is furthest behind; null if there are no waits. */
  get from(): From | null {
    let first: From | null = null;
    for (const { from } of this.#waits.values())
      if (from !== null && (first === null || this.#compare(from, first) < 0)) first = from;
    return first;
  }

  /** Returns the waits that the signals end, and removes them from this group. */
  offer(rows: readonly SignalRow[], at: (row: SignalRow) => From): [number, SignalEvent][] {
    const found: [number, SignalEvent][] = [];
    for (const row of rows) {
      const [facts, place] = [signalFacts(row), at(row)];
      for (const wait of this.#index.candidates(facts)) {
        if (wait.from === null || this.#compare(place, wait.from) <= 0 || !fits(wait, row, facts)) continue;
        found.push([wait.id, { key: row.key, value: row.value, version: row.id }]);
        this.delete(wait.id);
      }
    }
    return found;
  }

  passed(to: From): void {
    for (const wait of this.#waits.values())
      if (wait.from !== null && this.#compare(wait.from, to) < 0) wait.from = to;
  }
}

export interface SignalRead {
  /** False if the time ran out before everything was read. */
  readonly isComplete: boolean;
  /** A signal is stored but not readable yet, because an older transaction is still open. */
  readonly isHeld: boolean;
}

export class SignalWaits {
  readonly #database: Database;
  /** By name. */
  readonly #keys = new Map<string, Group<number>>();
  readonly #patterns = new Map<string, Group<LogPosition>>();
  readonly #found = new Map<number, SignalEvent>();
  /** Null: not computed yet. */
  #wantsStates: boolean | null = false;

  constructor(database: Database) {
    this.#database = database;
  }

  get size(): number {
    return this.#keys.size + this.#patterns.size + this.#found.size;
  }

  /** True if a wait is for the engine's own signals. Read for each batch. */
  get wantsStates(): boolean {
    this.#wantsStates ??= [...this.#patterns.values()].some(({ namespace }) => isReserved(namespace));
    return this.#wantsStates;
  }

  /** `begun`: when the wait began. */
  add(id: number, args: SignalArgs, begun: Date): void {
    this.#wantsStates = null;
    const since = args.since === null ? begun : new Date(args.since);
    const name = nameOf(args);
    if (isReadByKey(args)) {
      const group = this.#keys.get(name) ?? new Group<number>(args, (a, b) => a - b);
      this.#keys.set(name, group);
      group.add({ id, args, since, from: args.after });
    } else {
      const group = this.#patterns.get(name) ?? new Group<LogPosition>(args, comparePositions);
      this.#patterns.set(name, group);
      group.add({ id, args, since, from: null });
    }
  }

  delete(id: number, args: SignalArgs): void {
    this.#wantsStates = null;
    this.#found.delete(id);
    leave(this.#keys, nameOf(args), id);
    leave(this.#patterns, nameOf(args), id);
  }

  /** The matches since the last call. */
  drain(): [number, SignalEvent][] {
    const found = [...this.#found];
    this.#found.clear();
    return found;
  }

  async read(deadline: number): Promise<SignalRead> {
    const isRead = await this.#readDueKeys(deadline);
    if (this.#patterns.size === 0) return { isComplete: isRead, isHeld: false };
    const head = await logHead(this.#database);
    const isMatched = await this.#readDuePatterns(head.position, deadline);
    return { isComplete: isRead && isMatched, isHeld: head.isHeld };
  }

  /** Reads each key once regardless of the time limit, and the rest of longer keys while time remains. */
  async #readDueKeys(deadline: number): Promise<boolean> {
    await this.#locate();
    let open = [...this.#keys.values()];
    for (let round = 0; open.length > 0; round++) {
      if (round > 0 && performance.now() > deadline) return false;
      const longer: Group<number>[] = [];
      for (let at = 0; at < open.length; at += KEYS_AT_ONCE)
        longer.push(...(await this.#readKeys(open.slice(at, at + KEYS_AT_ONCE))));
      open = longer;
    }
    return true;
  }

  /** Returns the groups that have more to read. */
  async #readKeys(groups: readonly Group<number>[]): Promise<Group<number>[]> {
    // If all waits of a group were removed meanwhile, the group requests nothing.
    const asked = groups.map(({ from, key, namespace }) => ({ namespace, key, after: from ?? LAST_VERSION }));
    const read = await readKeys(this.#database, asked, ROWS_OF_A_KEY);
    return groups.filter((group, at) => {
      const rows = read[at]!;
      const last = rows.at(-1);
      if (last === undefined) return false;
      this.#keep(group.offer(rows, ({ id }) => id));
      group.passed(last.id);
      leave(this.#keys, nameOf(group));
      return rows.length === ROWS_OF_A_KEY && group.size > 0;
    });
  }

  async #locate(): Promise<void> {
    const groups = [...this.#keys.values()].filter(({ fresh }) => fresh.length > 0);
    const asked = groups.map(({ fresh, key, namespace }) => ({ namespace, key, since: earliest(fresh) }));
    const versions = await versionsBefore(this.#database, asked);
    groups.forEach((group, at) => {
      for (const wait of group.fresh) wait.from = versions[at] ?? 0;
    });
  }

  async #readDuePatterns(head: LogPosition, deadline: number): Promise<boolean> {
    for (const group of this.#patterns.values()) {
      await this.#place(group);
      const filter = {
        namespace: likePattern(group.namespace),
        keys: [likePattern(group.key)],
        sender: null,
        afterVersion: null,
        since: null,
      };
      for (;;) {
        const { from: after } = group;
        if (after === null || comparePositions(after, head) >= 0) break;
        const page = { after, upTo: head, filter, limit: ROWS_OF_A_KEY };
        const { position, rows } = await readMatching(this.#database, page);
        this.#keep(group.offer(rows, ({ id, tx }) => ({ tx, id })));
        group.passed(position);
        if (performance.now() > deadline) return false;
      }
      leave(this.#patterns, nameOf(group));
    }
    this.#wantsStates = null;
    return true;
  }

  /** After the signal that was consumed last if it still exists, otherwise from the wait's start time on. */
  async #place({ fresh }: Group<LogPosition>): Promise<void> {
    if (fresh.length === 0) return;
    const taken = fresh.flatMap(({ args }) => (args.after === null ? [] : [args.after]));
    const places = await positionsOf(this.#database, taken);
    const placeOf = ({ args }: Wait<LogPosition>) =>
      args.after === null ? undefined : places.get(args.after);
    const others = fresh.filter((wait) => placeOf(wait) === undefined);
    const start =
      others.length === 0 ? LOG_BEGIN : (await startSince(this.#database, earliest(others))).position;
    for (const wait of fresh) wait.from = placeOf(wait) ?? start;
  }

  #keep(found: readonly [number, SignalEvent][]): void {
    for (const [id, event] of found) this.#found.set(id, event);
  }
}

/** In the other namespaces, writers are not serialized per key, or there is no index by key. */
function isReadByKey(args: SignalArgs): boolean {
  return !hasWildcard(args) && !RESERVED_NAMESPACES.has(args.namespace);
}

/** Without an id: the matched waits were already removed from the group. */
function leave<From>(groups: Map<string, Group<From>>, name: string, id?: number): void {
  const group = groups.get(name);
  if (id !== undefined) group?.delete(id);
  if (group?.size === 0) groups.delete(name);
}

function fits({ args, since }: Wait<unknown>, row: SignalRow, facts: SignalFacts): boolean {
  return sentAt(row) >= since && fitsWait(args, facts);
}

function earliest(waits: readonly Wait<unknown>[]): Date {
  return new Date(waits.reduce((first, { since }) => Math.min(first, since.getTime()), Infinity));
}

function nameOf({ key, namespace }: { readonly namespace: string; readonly key: string }): string {
  return `${namespace}\n${key}`;
}
