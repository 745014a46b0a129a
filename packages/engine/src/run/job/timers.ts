/**
 * The timers of runs: retries, and timeouts of waits and runs. One timer for all runs, set to the earliest moment.
 */
import { Heap } from "../../model/pool/heap.ts";
import type { Admission } from "../admit/admission.ts";
import type { RunActor, Traces } from "../loaded/run-actor.ts";
import { timeOut } from "../loaded/run-ending.ts";
import type { Waits } from "../loaded/waits.ts";

export interface TimersOptions {
  readonly actors: ReadonlyMap<number, RunActor>;
  readonly admission: Admission;
  readonly waits: Waits;
  readonly onDue: () => void;
}

/** Entries of ended runs, in addition to the number of runs, before they are dropped. */
const MOST_STALE = 1_000;

function momentHeap(): Heap<{ readonly at: number; readonly runId: number }> {
  return new Heap((a, b) => a.at < b.at);
}

export class Timers {
  readonly #options: TimersOptions;
  #moments = momentHeap();
  #dueRuns: RunActor[] = [];
  #timer: NodeJS.Timeout | null = null;

  constructor(options: TimersOptions) {
    this.#options = options;
  }

  /** Adds the next timer of this run, unless an earlier one is set. */
  schedule(actor: RunActor): void {
    const at = actor.nextMoment();
    if (at >= actor.timerAt) return;
    actor.timerAt = at;
    this.#moments.push({ at, runId: actor.id });
    if (this.#moments.size > 2 * this.#options.actors.size + MOST_STALE) this.#dropStale();
  }

  /** The number of entries. */
  get size(): number {
    return this.#moments.size;
  }

  /** Drops the entries of ended runs: a run may have a timeout of a day and take a second. */
  #dropStale(): void {
    this.#moments = momentHeap();
    for (const { id, timerAt: notedAt } of this.#options.actors.values())
      if (Number.isFinite(notedAt)) this.#moments.push({ at: notedAt, runId: id });
  }

  fire(now: number, touched: Set<RunActor>, traces: Traces): void {
    const { actors, admission, waits } = this.#options;
    // A timeout of a wait whose event is stored would void the batch, and the next turn would read the same events.
    if (waits.isBehind) return;
    for (let next = this.#moments.peek(); next && next.at <= now; next = this.#moments.peek()) {
      this.#moments.pop();
      const actor = actors.get(next.runId);
      if (!actor) continue;
      actor.timerAt = Number.POSITIVE_INFINITY;
      if (actor.isLate(now)) {
        for (const instance of timeOut(actor, now, traces)) admission.freed(actor, instance);
        touched.add(actor);
        continue;
      }
      if (actor.retryAt !== null && actor.retryAt <= now) {
        this.#dueRuns.push(actor);
        continue;
      }
      const isOverdue = waits.endOverdue(actor, { traces, now });
      const isAsking = (actor.subscriptions?.nextQuestionAt() ?? Number.POSITIVE_INFINITY) <= now;
      const hasBegun = actor.beginGroups({ at: now, traces });
      if (actor.model.fireRetries(now) > 0 || hasBegun || isOverdue || isAsking) touched.add(actor);
      else this.schedule(actor);
    }
  }

  /** Failed runs whose next try is due. They have to be loaded again, because they have no timer any more. */
  drainDueRuns(markStale: (runId: number) => void): RunActor[] {
    const due = this.#dueRuns;
    this.#dueRuns = [];
    for (const { id } of due) markStale(id);
    return due;
  }

  arm(now: number): void {
    this.disarm();
    const next = this.#moments.peek();
    if (!next) return;
    this.#timer = setTimeout(this.#options.onDue, Math.min(Math.max(0, next.at - now), 2 ** 30));
  }

  disarm(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
