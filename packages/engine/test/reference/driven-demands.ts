/**
 * Tracks which tasks of a signal-driven run were started and have not begun since, by observing starts and states only. At
 * the end of a successful run it shows whether a start was lost.
 */
import { type DrivenState, isEnded } from "./driven-event.ts";
import type { DrivenReference } from "./driven-reference.ts";

interface Before {
  readonly starts: number;
  readonly tries: number;
  readonly hasEnded: boolean;
}

const NEW: Before = { starts: 0, tries: 0, hasEnded: false };

export class DrivenDemands {
  readonly #started: Set<string>;
  readonly #before: Map<string, Before>;
  /** Number of starts that ran after their task had ended without them. */
  carriedOut: number;

  constructor(from?: DrivenDemands) {
    this.carriedOut = from?.carriedOut ?? 0;
    this.#started = new Set(from ? from.#started : []);
    this.#before = new Map(from ? from.#before : []);
  }

  copy(): DrivenDemands {
    return new DrivenDemands(this);
  }

  /** Called after every event. */
  record(run: DrivenReference): void {
    for (const { id, isImplied, starts, state, tries } of run.tasks()) {
      const before = this.#before.get(id) ?? NEW;
      const hasEnded = isEnded(state) || (before.hasEnded && tries === before.tries);
      this.#before.set(id, { starts: starts.length, tries, hasEnded });
      if (starts.length > before.starts) this.#started.add(id);
      const hasBegun = tries > before.tries && isUnderWay(state);
      if (hasBegun && before.hasEnded && before.starts === 0 && this.#started.has(id)) this.carriedOut++;
      // Dropped by a stop, or when the run closed. A task ruled out by its upstream has used its start.
      const isForgotten = starts.length < before.starts && tries === before.tries && starts.length === 0;
      // Only its upstream began again: a task with starts of its own keeps its state.
      const isLeft = isImplied && run.judge(id) !== state;
      if (hasBegun || isLeft || (isForgotten && (run.isClosed || !isImplied))) this.#started.delete(id);
    }
  }

  /** Called for tasks that a user marked. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#started.delete(id);
  }

  /** Pending starts are dropped with the run, except the first start of a task that has not begun. */
  cancel(run: DrivenReference, as: "success" | "failed"): void {
    for (const { id, isImplied, starts, state, tries } of run.tasks()) {
      const isOwed = isImplied ? starts.length === 0 : tries === 0 && !isEnded(state);
      if (as === "success" || !isOwed) this.#started.delete(id);
    }
  }

  /** Describes the tasks that the rules of a successful or just edited run demand, and that have not run. */
  unmet(run: DrivenReference): string[] {
    return (
      run
        .tasks()
        .filter(({ id, isImplied }) => isImplied && (this.#started.has(id) || run.isDemanded(id)))
        // A task with a pending start begins again.
        .filter(({ starts }) => starts.length === 0)
        .filter(({ id }) => run.judge(id) === "run")
        .map(({ id, state }) => `${id} is ${state}, but has not run`)
    );
  }
}

function isUnderWay(state: DrivenState): boolean {
  return state !== "pending" && !isEnded(state);
}
