import type { Topic } from "../../job/wake-up.ts";
import { isRunTopic } from "./scheduler-reads.ts";

/** The reasons that follow from a wake-up. "run": a change of one run. */
export type ReadsAfter<Reason> = { readonly [T in Topic | "run"]?: readonly Reason[] };

/** The reasons of a job to query the database, until it has done so; at first all of them. */
export class PendingReads<Reason extends string> {
  readonly #all: readonly Reason[];
  readonly #after: ReadsAfter<Reason>;
  readonly #pending: Set<Reason>;

  constructor(all: readonly Reason[], after: ReadsAfter<Reason>) {
    this.#all = all;
    this.#after = after;
    this.#pending = new Set(all);
  }

  get size(): number {
    return this.#pending.size;
  }

  has(reason: Reason): boolean {
    return this.#pending.has(reason);
  }

  request(...reasons: readonly Reason[]): void {
    for (const each of reasons) this.#pending.add(each);
  }

  requestAll(): void {
    this.request(...this.#all);
  }

  /** "": wake-ups may have been lost. Returns false if nothing follows from the wake-up. */
  requestAfter(topic: Topic | ""): boolean {
    const reasons = topic === "" ? this.#all : this.#after[isRunTopic(topic) ? "run" : topic];
    this.request(...(reasons ?? []));
    return reasons !== undefined;
  }

  drop(reason: Reason): void {
    this.#pending.delete(reason);
  }

  /** Returns the pending reasons; none is pending afterwards. */
  consume(): ReadonlySet<Reason> {
    const reasons = new Set(this.#pending);
    this.#pending.clear();
    return reasons;
  }
}
