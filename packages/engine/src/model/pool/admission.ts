/**
 * Which tasks get the next free slots. `ReadyQueue` holds the scheduled tasks of all runs of one scheduler and picks, per
 * pool, in strict order: weight (high first), logical date (early first), map index, arrival.
 *
 * - Pools do not wait for each other.
 * - Among tasks of one width, no task starts before an earlier one in this order that may run.
 * - A task that needs more slots than are free lets narrower tasks behind it pass, until these have taken as many slots as
 *   the pool has. Then the pool waits for it. So it does not block tasks for long, and it does not starve: once it is its
 *   turn, it waits at most for the tasks that run and for one pool's worth of others.
 * - A task wider than its whole pool can never run. It is set aside until the size of the pool changes.
 * - A full limit (per run, per task, per executor ...) blocks only its own tasks: they are set aside under the limit, and
 *   others pass. `release(limit)` brings back the best of them and must be called whenever the limit has room: nothing else
 *   considers them again, so that a thousand waiting tasks cost nothing.
 *
 * Tasks with the same pool, width and limits form a lane: a condition that blocks one blocks all, so a lane moves as a
 * whole. `take` costs O(log n) per pick and per lane set aside, and O(1) per pool and width; never O(waiting).
 */
import { Heap } from "./heap.ts";
import { type Entry, goesBefore, Lane, Place } from "./lane.ts";

/** A task that waits for admission. Callers may attach their own fields. */
export interface Candidate {
  readonly weight: number;
  /** Milliseconds; null (a run without a logical date) sorts after all dates. */
  readonly logicalDate: number | null;
  readonly mapIndex: number;
  readonly pool: string;
  readonly slots: number;
  /** Names of limits; the task takes one unit of each. */
  readonly limits: readonly string[];
  /**
   * Set on a stand-in for this many tasks of its kind that wait in another scheduler. It reserves room for them as far as
   * there is room, but does not start itself, so it does not count as overtaking.
   */
  readonly standsFor?: number;
  /** Order of arrival: set by the queue at the first `add`, kept when the task is added again. */
  arrival?: number;
  /** Slots given to tasks behind it while it did not fit. */
  overtaken?: number;
}

/** Usage of a pool or a limit. slots < 0: unlimited. */
export interface Capacity {
  readonly slots: number;
  readonly occupied: number;
}

/** Capacity of a pool or limit by name. An unknown pool admits nothing, an unknown limit limits nothing. */
export type Capacities = (name: string, kind: "pool" | "limit") => Capacity | undefined;

interface Line<T extends Candidate> {
  /** All tasks of one width fit, or none does. */
  readonly widths: Map<number, Place<T>>;
  readonly tooWide: Place<T>;
  /** The size of the pool when `tooWide` was last checked. */
  sizeSeen: number | undefined;
}

/** A pool during one `take`. */
interface Pass<T extends Candidate> {
  readonly line: Line<T>;
  /** The best task of each width that does not fit. */
  readonly stuck: T[];
}

export class ReadyQueue<T extends Candidate> {
  readonly #entries = new Map<T, Entry<T>>();
  readonly #lanes = new Map<string, Lane<T>>();
  readonly #lines = new Map<string, Line<T>>();
  /** Lanes set aside: by limit, then by pool and width. */
  readonly #blockedLanes = new Map<string, Map<string, Place<T>>>();
  #arrivals = 0;

  /** The number of waiting tasks, including those set aside. */
  get size(): number {
    return this.#entries.size;
  }

  /** The number of tasks set aside because this limit was full. */
  waitingFor(limit: string): number {
    let tasks = 0;
    for (const place of this.#blockedLanes.get(limit)?.values() ?? []) tasks += place.tasks;
    return tasks;
  }

  /** Also for a task that was taken but not started: it keeps its turn. */
  add(task: T): void {
    if (this.#entries.has(task)) return;
    task.arrival ??= this.#arrivals++;
    const lane = this.#laneOf(task);
    const entry: Entry<T> = { task, lane, isGone: false };
    this.#entries.set(task, entry);
    // A new head changes the turn of the lane, so the lane returns to the line to be compared.
    if (lane.add(entry)) this.#move(lane, this.#inLine(task));
  }

  remove(task: T): boolean {
    const entry = this.#entries.get(task);
    if (!entry) return false;
    const wasHead = entry.lane.head === entry;
    this.#leave(entry);
    // It may have represented, in the line, other tasks that wait for the same limit.
    if (wasHead) for (const limit of task.limits) this.#unpark(limit, placeKey(task));
    return true;
  }

  /** Call when a limit has room again. */
  release(limit: string): void {
    for (const key of [...(this.#blockedLanes.get(limit)?.keys() ?? [])]) this.#unpark(limit, key);
  }

  /** The tasks to admit now, best first. They leave the queue. */
  admit(capacities: Capacities, most = Number.POSITIVE_INFINITY): T[] {
    const room = new Room(capacities);
    type Turn = Pass<T> & { readonly place: Place<T> };
    const open = new Heap<Turn>((a, b) => goesBefore(a.place.head()!, b.place.head()!));
    for (const [pool, line] of this.#lines) {
      this.#reviewTooWide(line, capacities(pool, "pool"));
      const stuck: T[] = [];
      for (const place of line.widths.values()) if (place.head()) open.push({ line, place, stuck });
    }
    const picks: T[] = [];
    while (picks.length < most) {
      const turn = open.pop();
      if (!turn) break;
      const head = turn.place.head()!;
      const answer = this.#offer(turn, head, room);
      if (answer === "stuck") turn.stuck.push(head.task);
      if (answer === "stuck" || answer === "held") continue;
      if (answer === "picked") picks.push(head.task);
      if (turn.place.head()) open.push(turn);
    }
    return picks;
  }

  /** The best task of each pool and width, with the number waiting there: after `take`, tasks without room. */
  *heads(): Iterable<{ readonly task: T; readonly waiting: number }> {
    for (const { widths } of this.#lines.values()) {
      for (const place of widths.values()) {
        const head = place.head();
        if (head) yield { task: head.task, waiting: place.tasks };
      }
    }
  }

  /** stuck: it does not fit. held: it would fit, but a task it would overtake has been overtaken enough. */
  #offer(pass: Pass<T>, head: Entry<T>, room: Room): "stuck" | "held" | "picked" | "aside" {
    const { task, lane } = head;
    const size = room.sizeOf(task.pool);
    const isTooWide = task.slots > size;
    const blocking = task.limits.find((limit) => room.left(limit, "limit") < 1);
    if (isTooWide) this.#move(lane, pass.line.tooWide);
    else if (blocking !== undefined) this.#move(lane, this.#parkingOf(blocking, task));
    else if (room.left(task.pool, "pool") < task.slots) return "stuck";
    else if (pass.stuck.some(({ overtaken = 0 }) => overtaken + task.slots > size)) return "held";
    else {
      const { standsFor } = task;
      if (standsFor === undefined)
        for (const passed of pass.stuck) passed.overtaken = (passed.overtaken ?? 0) + task.slots;
      const most = Math.floor(room.left(task.pool, "pool") / task.slots);
      room.use(task.pool, "pool", task.slots * Math.min(standsFor ?? 1, most));
      for (const limit of task.limits) room.use(limit, "limit", 1);
      this.#leave(head);
    }
    // Picked or set aside, it no longer represents tasks that wait for one of its limits. They return if the limit has room.
    for (const limit of task.limits) {
      if (limit !== blocking && room.left(limit, "limit") >= 1) this.#unpark(limit, placeKey(task));
    }
    return isTooWide || blocking !== undefined ? "aside" : "picked";
  }

  #reviewTooWide(line: Line<T>, pool: Capacity | undefined): void {
    if (pool?.slots === line.sizeSeen) return;
    line.sizeSeen = pool?.slots;
    for (let head = line.tooWide.head(); head; head = line.tooWide.head())
      this.#move(head.lane, this.#inLine(head.task));
  }

  #unpark(limit: string, key: string): void {
    const head = this.#blockedLanes.get(limit)?.get(key)?.head();
    if (head) this.#move(head.lane, this.#inLine(head.task));
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
    // Limits come and go with runs: an empty place must not remain.
    const places = this.#blockedLanes.get(old.limit);
    places?.delete(old.key);
    if (places?.size === 0) this.#blockedLanes.delete(old.limit);
  }

  #laneOf(task: T): Lane<T> {
    const key = laneOf(task);
    return entryOf(this.#lanes, key, () => new Lane<T>(key));
  }

  #inLine({ pool, slots }: T): Place<T> {
    const line = entryOf(this.#lines, pool, () => {
      return { widths: new Map<number, Place<T>>(), tooWide: new Place<T>(pool), sizeSeen: undefined };
    });
    return entryOf(line.widths, slots, () => new Place<T>(pool));
  }

  #parkingOf(limit: string, task: T): Place<T> {
    const places = entryOf(this.#blockedLanes, limit, () => new Map<string, Place<T>>());
    return entryOf(places, placeKey(task), () => new Place<T>(placeKey(task), limit));
  }
}

/** A condition that blocks one task of a lane blocks all. */
function laneOf({ limits, pool, slots }: Pick<Candidate, "limits" | "pool" | "slots">): string {
  return JSON.stringify([pool, slots, limits]);
}

/** Tasks of one pool and width wait behind each other. */
function placeKey({ pool, slots }: Candidate): string {
  return `${slots} ${pool}`;
}

/** The remaining room during one `take`: the capacities minus the picks. */
class Room {
  readonly #capacities: Capacities;
  readonly #used = { pool: new Map<string, number>(), limit: new Map<string, number>() };

  constructor(capacities: Capacities) {
    this.#capacities = capacities;
  }

  /** The most that a single task could use: infinite for an unknown pool, which has no room but may be created. */
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

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
