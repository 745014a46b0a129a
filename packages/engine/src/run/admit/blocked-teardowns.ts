/**
 * Teardowns, and setups that run again, start only when no process is left that uses what they remove or create. The
 * database has ended such attempts already, so these instances are ready; they wait here for the exit of the last process.
 * Nothing of this is stored: a scheduler that takes the run over has none of those processes.
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

  /** The instances of this run that became ready and may start, with those that were blocked and are free now. */
  drainReady(actor: RunActor, now: number): Instance[] {
    const ready = actor.model.drainReady();
    for (const instance of ready) {
      // Loaded again, or withdrawn from its slots: it has been ready since then.
      const since = instance.committed === "scheduled" ? instance.scheduledAt : null;
      instance.scheduledAt = since ?? now;
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

  /** Whether the end of an attempt of this run may unblock an instance. */
  has(actor: RunActor): boolean {
    return this.#waiting.has(actor);
  }

  drop(actor: RunActor): void {
    this.#waiting.delete(actor);
  }
}
