/** The executors of a job, and what they have room for. */
import type { Executor } from "../../execute/contract.ts";
import type { FreeSlots } from "../../store/run/run-hand-over.ts";

/** Of what is chosen for an executor and not stored yet, only that counts. */
interface Chosen {
  readonly executor: Executor;
}

/** Attempts that executors and the job count differently. */
export interface PendingAttempts {
  /** On their way to an executor that it does not know of yet. */
  readonly unsubmitted: (executor: Executor) => number;
  /** Their executors have reported their end, which is not stored yet. */
  readonly unstoredEnds: () => number;
}

export class ExecutorRoom {
  readonly all: readonly Executor[];
  readonly #byName: ReadonlyMap<string, Executor>;
  readonly #pending: PendingAttempts;

  constructor(all: readonly Executor[], pending: PendingAttempts) {
    this.all = all;
    this.#byName = new Map(all.map((executor) => [executor.name, executor]));
    this.#pending = pending;
  }

  /** A task that names an executor this scheduler does not have waits for none: it runs on the default one. */
  of(name: string | null): Executor {
    const executor = (name === null ? undefined : this.#byName.get(name)) ?? this.all[0];
    if (!executor) throw new Error("a scheduler needs at least one executor");
    return executor;
  }

  get streamingSlots(): number {
    return this.all.reduce((sum, { streamingSlots = 0 }) => sum + streamingSlots, 0);
  }

  /** How many more it may be given, beside what was chosen for it already. */
  free(executor: Executor, chosen: readonly Chosen[]): number {
    const underWay =
      this.#pending.unsubmitted(executor) + chosen.filter((each) => each.executor === executor).length;
    return executor.freeSlots() - underWay;
  }

  /**
   * Tasks that could start at once: an executor may be given more than that, to have the next ones at hand. The slot of an
   * attempt counts as free when its end is stored: the same batch gives it to the next ready task of its run.
   */
  idle(): FreeSlots {
    let slots: number | null = 0;
    let free = 0;
    for (const executor of this.all) {
      const each = executor.slots();
      slots = slots === null || each.slots === null ? null : slots + each.slots;
      free += Math.max(0, each.free - this.#pending.unsubmitted(executor));
    }
    return { slots, free: Math.max(0, free - this.#pending.unstoredEnds()) };
  }
}
