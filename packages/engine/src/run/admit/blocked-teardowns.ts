/**
 * Teardowns, and setups that run again, begin only when nothing is left that works on what they clear away or make. The
 * journal has given such attempts up, so that nothing holds these instances but this: they are ready, and wait here until
 * the last of the processes is gone. Nothing of it is stored: whoever takes the run over has none of those processes.
 */
import type { Instance } from "../../model/index.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import type { RunActor } from "../loaded/run-actor.ts";

export class BlockedTeardowns {
  readonly #activeAttempts: ActiveAttempts;
  readonly #waiting = new Map<RunActor, ReadonlySet<Instance>>();

  constructor(activeAttempts: ActiveAttempts) {
    this.#activeAttempts = activeAttempts;
  }

  /** What became ready in this run since the last call and may begin; with what was held back and is free now. */
  takeReady(actor: RunActor, now: number): Instance[] {
    const ready = actor.model.takeReady();
    for (const instance of ready) {
      instance.scheduledAt = now;
      instance.queuedAt = null;
      instance.pid = null;
    }
    const former = [...(this.#waiting.get(actor) ?? [])].filter(({ state }) => state === "scheduled");
    this.#waiting.delete(actor);
    const all = former.length === 0 ? ready : [...new Set([...former, ...ready])];
    const early = new Set(all.filter((instance) => this.#activeAttempts.keepsWaiting(instance, actor)));
    if (early.size === 0) return all;
    this.#waiting.set(actor, early);
    return all.filter((instance) => !early.has(instance));
  }

  /** Whether to look at this run again when one of its attempts is gone. */
  has(actor: RunActor): boolean {
    return this.#waiting.has(actor);
  }

  drop(actor: RunActor): void {
    this.#waiting.delete(actor);
  }
}
