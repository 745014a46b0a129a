/**
 * Who gets the next free slots? `ReadyQueue` holds the scheduled tasks of all runs of one scheduler and picks, per pool,
 * in strict order: weight (high first), logical date (early first), map index, arrival.
 *
 * - A pool's head that does not fit waits, and the pool waits with it: a narrower task behind it does not overtake, or
 *   a wide one would starve. Pools do not wait for each other.
 * - A task wider than its whole pool can never run; it is set aside, and looked at again when the pool's size changes.
 * - A limit (per run, per task, of an executor ...) that is full holds back its own tasks only: they are set aside under
 *   the limit, others pass. `release(limit)` brings back the best of them, and must be called whenever a limit gets
 *   room: nothing else makes them be looked at again, so that a thousand waiting tasks cost nothing.
 *
 * Tasks with the same pool, width and limits form a lane: what blocks one blocks all, so a lane moves as a whole.
 * `take` costs O(log n) per pick and per lane set aside, and O(1) per pool; never O(waiting).
 */
import { Heap } from "./heap.ts";
import { type Entry, goesBefore, Lane, Place } from "./lane.ts";

/** A task that waits for admission; the caller's own facts may hang on it. */
export interface Candidate {
  readonly weight: number;
  /** Milliseconds; null, a run without a logical date, comes after all dates. */
  readonly logicalDate: number | null;
  readonly mapIndex: number;
  readonly pool: string;
  readonly slots: number;
  /** Names of limits; the task takes one slot of each. */
  readonly limits: readonly string[];
  /** Order of arrival: set by the queue at the first `add`, kept when the task is put back. */
  arrival?: number;
}

/** How full a pool or a limit is. slots < 0: no limit. */
export interface Capacity {
  readonly slots: number;
  readonly occupied: number;
}

/** Capacity of a pool or limit by name. An unknown pool admits nothing, an unknown limit limits nothing. */
export type Capacities = (name: string, kind: "pool" | "limit") => Capacity | undefined;

interface Line<T extends Candidate> {
  readonly queue: Place<T>;
  readonly tooWide: Place<T>;
  /** The pool's size when `tooWide` was last looked through. */
  sizeSeen: number | undefined;
}

export class ReadyQueue<T extends Candidate> {
  readonly #entries = new Map<T, Entry<T>>();
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #lines = new Map<string, Line<T>>();
  /** Lanes set aside: by limit, then by pool. */
  readonly #parked = new Map<string, Map<string, Place<T>>>();
  #arrivals = 0;

  /** How many wait, in any place. */
  get size(): number {
    return this.#entries.size;
  }

  /** Also puts back a task that was taken in vain: it keeps its turn. */
  add(task: T): void {
    if (this.#entries.has(task)) return;
    task.arrival ??= this.#arrivals++;
    const lane = this.#laneOf(task);
    const entry: Entry<T> = { task, lane, isGone: false };
    this.#entries.set(task, entry);
    // A new head changes the lane's turn, so the lane has to stand in line again to be compared.
    if (lane.add(entry)) this.#move(lane, this.#lineOf(task.pool).queue);
  }

  remove(task: T): boolean {
    const entry = this.#entries.get(task);
    if (!entry) return false;
    const wasHead = entry.lane.head === entry;
    this.#leave(entry);
    // It may have stood in line for others that wait for the same limit.
    if (wasHead) for (const limit of task.limits) this.#unpark(limit, task.pool);
    return true;
  }

  /** A limit has room again. */
  release(limit: string): void {
    for (const pool of [...(this.#parked.get(limit)?.keys() ?? [])]) this.#unpark(limit, pool);
  }

  /** The tasks to admit now, best first; they leave the queue. */
  take(capacities: Capacities, most = Number.POSITIVE_INFINITY): T[] {
    const room = new Room(capacities);
    const open = new Heap<Line<T>>((a, b) => goesBefore(a.queue.head()!, b.queue.head()!));
    for (const line of this.#lines.values()) {
      this.#reviewTooWide(line, capacities(line.queue.pool, "pool"));
      if (line.queue.head()) open.push(line);
    }
    const picks: T[] = [];
    while (picks.length < most) {
      const line = open.pop();
      if (!line) break;
      const head = line.queue.head()!;
      const answer = this.#offer(line, head, room);
      if (answer === "full") continue;
      if (answer === "picked") picks.push(head.task);
      if (line.queue.head()) open.push(line);
    }
    return picks;
  }

  /** The best task in line for this pool: after `take`, the one the pool has no room for. */
  head(pool: string): T | undefined {
    return this.#lines.get(pool)?.queue.head()?.task;
  }

  /** Pools with a task in line. */
  *pools(): Iterable<string> {
    for (const [pool, line] of this.#lines) if (line.queue.head()) yield pool;
  }

  #offer(line: Line<T>, head: Entry<T>, room: Room): "full" | "picked" | "aside" {
    const { task, lane } = head;
    const isTooWide = task.slots > room.sizeOf(task.pool);
    const blocking = task.limits.find((limit) => room.left(limit, "limit") < 1);
    if (isTooWide) this.#move(lane, line.tooWide);
    else if (blocking !== undefined) this.#move(lane, this.#parkingOf(blocking, task.pool));
    else if (room.left(task.pool, "pool") < task.slots) return "full";
    else {
      room.use(task.pool, "pool", task.slots);
      for (const limit of task.limits) room.use(limit, "limit", 1);
      this.#leave(head);
    }
    // Picked or set aside: it no longer stands in line for those that wait for one of its limits, if that has room.
    for (const limit of task.limits) {
      if (limit !== blocking && room.left(limit, "limit") >= 1) this.#unpark(limit, task.pool);
    }
    return isTooWide || blocking !== undefined ? "aside" : "picked";
  }

  #reviewTooWide(line: Line<T>, pool: Capacity | undefined): void {
    if (pool?.slots === line.sizeSeen) return;
    line.sizeSeen = pool?.slots;
    for (let head = line.tooWide.head(); head; head = line.tooWide.head()) this.#move(head.lane, line.queue);
  }

  #unpark(limit: string, pool: string): void {
    const head = this.#parked.get(limit)?.get(pool)?.head();
    if (head) this.#move(head.lane, this.#lineOf(pool).queue);
  }

  #leave(entry: Entry<T>): void {
    const { lane, task } = entry;
    this.#entries.delete(task);
    lane.leave(entry);
    if (lane.size > 0) return;
    this.#lanes.delete(lane.key);
    this.#move(lane, null);
  }

  #move(lane: Lane<T>, place: Place<T> | null): void {
    const { place: old } = lane;
    lane.moveTo(place);
    if (!old || old.limit === null || old.lanes > 0) return;
    // Limits come and go with runs: an empty place must not stay behind.
    const places = this.#parked.get(old.limit);
    places?.delete(old.pool);
    if (places?.size === 0) this.#parked.delete(old.limit);
  }

  #laneOf(task: T): Lane<T> {
    const key = JSON.stringify([task.pool, task.slots, task.limits]);
    return entryOf(this.#lanes, key, () => new Lane<T>(key));
  }

  #lineOf(pool: string): Line<T> {
    return entryOf(this.#lines, pool, () => {
      return { queue: new Place<T>(pool), tooWide: new Place<T>(pool), sizeSeen: undefined };
    });
  }

  #parkingOf(limit: string, pool: string): Place<T> {
    const places = entryOf(this.#parked, limit, () => new Map<string, Place<T>>());
    return entryOf(places, pool, () => new Place<T>(pool, limit));
  }
}

/** What is left while picks are made: the capacities as they were, less what was picked. */
class Room {
  readonly #capacities: Capacities;
  readonly #used = { pool: new Map<string, number>(), limit: new Map<string, number>() };

  constructor(capacities: Capacities) {
    this.#capacities = capacities;
  }

  /** What a single task could use at most: unbounded for an unknown pool, which has no room but may appear. */
  sizeOf(pool: string): number {
    const slots = this.#capacities(pool, "pool")?.slots ?? -1;
    return slots < 0 ? Number.POSITIVE_INFINITY : slots;
  }

  left(name: string, kind: "pool" | "limit"): number {
    const capacity = this.#capacities(name, kind);
    if (!capacity) return kind === "pool" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    if (capacity.slots < 0) return Number.POSITIVE_INFINITY;
    return capacity.slots - capacity.occupied - (this.#used[kind].get(name) ?? 0);
  }

  use(name: string, kind: "pool" | "limit", slots: number): void {
    this.#used[kind].set(name, (this.#used[kind].get(name) ?? 0) + slots);
  }
}

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
