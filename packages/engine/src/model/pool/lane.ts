/**
 * The parts of the ready queue. A lane holds the waiting tasks with the same pool, width and limits. It is in one place at a
 * time (the line of its pool, or aside), represented there by its head. Stale entries, which no longer represent their lane
 * or whose task has left, stay in the heaps until they reach the top.
 */
import type { Candidate } from "./admission.ts";
import { Heap } from "./heap.ts";

export interface Entry<T extends Candidate> {
  readonly task: T;
  readonly lane: Lane<T>;
  isGone: boolean;
}

export class Lane<T extends Candidate> {
  readonly key: string;
  readonly #entries = new Heap<Entry<T>>(goesBefore);
  place: Place<T> | null = null;
  head: Entry<T> | undefined;
  /** Tasks still waiting. */
  size = 0;

  constructor(key: string) {
    this.key = key;
  }

  /** Returns true if the task is the new head of the lane. */
  add(entry: Entry<T>): boolean {
    this.#entries.push(entry);
    this.size++;
    if (this.place) this.place.tasks++;
    return !this.head || this.head.isGone || goesBefore(entry, this.head);
  }

  leave(entry: Entry<T>): void {
    entry.isGone = true;
    this.size--;
    if (this.place) this.place.tasks--;
  }

  moveTo(place: Place<T> | null): void {
    if (this.place) {
      this.place.lanes--;
      this.place.tasks -= this.size;
    }
    if (place) {
      place.lanes++;
      place.tasks += this.size;
    }
    this.place = place;
    this.refreshHead();
  }

  /** Registers the best waiting task with the place of the lane. */
  refreshHead(): void {
    while (this.#entries.peek()?.isGone) this.#entries.pop();
    this.head = this.#entries.peek();
    if (this.head) this.place?.announce(this.head);
  }
}

/** A place for lanes: the line of a pool and width, or aside. */
export class Place<T extends Candidate> {
  readonly key: string;
  readonly limit: string | null;
  lanes = 0;
  tasks = 0;
  readonly #queue = new Heap<Entry<T>>(goesBefore);

  constructor(key: string, limit: string | null = null) {
    this.key = key;
    this.limit = limit;
  }

  announce(entry: Entry<T>): void {
    this.#queue.push(entry);
  }

  /** The best task of all lanes in this place. */
  head(): Entry<T> | undefined {
    for (let entry = this.#queue.peek(); entry; entry = this.#queue.peek()) {
      const { lane } = entry;
      const isRepresentative = lane.place === this && lane.head === entry;
      if (isRepresentative && !entry.isGone) return entry;
      this.#queue.pop();
      if (isRepresentative) lane.refreshHead();
    }
    return undefined;
  }
}

export function goesBefore<T extends Candidate>(a: Entry<T>, b: Entry<T>): boolean {
  return byTurn(a.task, b.task) < 0;
}

/** Weight high first, logical date early first, map index, arrival. */
export function byTurn(x: Candidate, y: Candidate): number {
  if (x.weight !== y.weight) return y.weight - x.weight;
  const xDate = x.logicalDate ?? Number.POSITIVE_INFINITY;
  const yDate = y.logicalDate ?? Number.POSITIVE_INFINITY;
  if (xDate !== yDate) return xDate < yDate ? -1 : 1;
  return x.mapIndex - y.mapIndex || (x.arrival ?? 0) - (y.arrival ?? 0);
}
