/** The executors of a job, and what they have room for. */
import type { Executor } from "../execute/contract.ts";
import type { FreeSlots } from "../store/run-hand-over.ts";

/** Of what is chosen for an executor and not stored yet, only that counts. */
interface Chosen {
  readonly executor: Executor;
}

export class ExecutorRoom {
  readonly all: readonly Executor[];
  readonly #byName: ReadonlyMap<string, Executor>;
  readonly #unsubmitted: (executor: Executor) => number;

  /** @param unsubmitted Attempts on their way to an executor that it does not know of yet. */
  constructor(all: readonly Executor[], unsubmitted: (executor: Executor) => number) {
    this.all = all;
    this.#byName = new Map(all.map((executor) => [executor.name, executor]));
    this.#unsubmitted = unsubmitted;
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
    const underWay = this.#unsubmitted(executor) + chosen.filter((each) => each.executor === executor).length;
    return executor.freeSlots() - underWay;
  }

  /** Tasks that could start at once: an executor may be given more than that, to have the next ones at hand. */
  idle(): FreeSlots {
    let slots: number | null = 0;
    let free = 0;
    for (const executor of this.all) {
      const each = executor.slots();
      slots = slots === null || each.slots === null ? null : slots + each.slots;
      free += Math.max(0, each.free - this.#unsubmitted(executor));
    }
    return { slots, free };
  }
}
