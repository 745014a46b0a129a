/**
 * Which tasks of a signal-driven run were started and have not begun since. It is noted from the outside, by what happens to
 * starts and states, and says at the end of a run that is a success whether a start was lost.
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
  /** How many starts were carried out after their task had ended without them. */
  carriedOut: number;

  constructor(from?: DrivenDemands) {
    this.carriedOut = from?.carriedOut ?? 0;
    this.#started = new Set(from ? from.#started : []);
    this.#before = new Map(from ? from.#before : []);
  }

  copy(): DrivenDemands {
    return new DrivenDemands(this);
  }

  /** After everything that happens. */
  note(run: DrivenReference): void {
    for (const { id, isImplied, starts, state, tries } of run.tasks()) {
      const before = this.#before.get(id) ?? NEW;
      const hasEnded = isEnded(state) || (before.hasEnded && tries === before.tries);
      this.#before.set(id, { starts: starts.length, tries, hasEnded });
      if (starts.length > before.starts) this.#started.add(id);
      const hasBegun = tries > before.tries && isUnderWay(state);
      if (hasBegun && before.hasEnded && before.starts === 0 && this.#started.has(id)) this.carriedOut++;
      // By a stop, or by the end of hearing. What its upstream rules out has taken its start.
      const isForgotten = starts.length < before.starts && tries === before.tries && starts.length === 0;
      // Its upstream has begun again by itself: a task with starts of its own stays as it is.
      const isLeft = isImplied && run.judge(id) !== state;
      if (hasBegun || isLeft || (isForgotten && (run.isClosed || !isImplied))) this.#started.delete(id);
    }
  }

  /** A person says what became of these. */
  forget(ids: readonly string[]): void {
    for (const id of ids) this.#started.delete(id);
  }

  /** Starts that wait go with the run, but for the first of a task that has not begun. */
  cancel(run: DrivenReference, as: "success" | "failed"): void {
    for (const { id, isImplied, starts, state, tries } of run.tasks()) {
      const isOwed = isImplied ? starts.length === 0 : tries === 0 && !isEnded(state);
      if (as === "success" || !isOwed) this.#started.delete(id);
    }
  }

  /** In words: what the rules of a run demand that is a success, or was just edited, and has not run. */
  unmet(run: DrivenReference): string[] {
    return (
      run
        .tasks()
        .filter(({ id, isImplied }) => isImplied && (this.#started.has(id) || run.isDemanded(id)))
        // One that has a start left begins again by it.
        .filter(({ starts }) => starts.length === 0)
        .filter(({ id }) => run.judge(id) === "run")
        .map(({ id, state }) => `${id} is ${state}, and has not run`)
    );
  }
}

function isUnderWay(state: DrivenState): boolean {
  return state !== "none" && !isEnded(state);
}
