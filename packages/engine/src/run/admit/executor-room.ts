/** The executors of a job and their free slots. */
import type { Executor } from "../../execute/contract.ts";
import type { FreeSlots } from "../../store/run/run-hand-over.ts";

/** An instance that was chosen for an executor and is not stored yet. */
interface Chosen {
  readonly executor: Executor;
}

/** Attempts that an executor and the job count differently. */
export interface PendingAttempts {
  /** Attempts that are not submitted to the executor yet. */
  readonly unsubmitted: (executor: Executor) => number;
  /** Attempts whose end is reported and not stored yet. */
  readonly unstoredEnds: () => number;
}

export class ExecutorRoom {
  readonly all: readonly Executor[];
  readonly #byName: ReadonlyMap<string, Executor>;
  readonly #pending: PendingAttempts;
  readonly #foreign: Executor | undefined;

  /** @param foreign Holds adopted attempts of executors that this process does not have. */
  constructor(all: readonly Executor[], pending: PendingAttempts, foreign?: Executor) {
    this.all = all;
    this.#foreign = foreign;
    this.#byName = new Map(all.map((executor) => [executor.name, executor]));
    this.#pending = pending;
  }

  /** A task that names an unknown executor runs on the default one. */
  of(name: string | null): Executor {
    const executor = (name === null ? undefined : this.#byName.get(name)) ?? this.all[0];
    if (!executor) throw new Error("a scheduler needs at least one executor");
    return executor;
  }

  /** The executor for attempts of an executor with this name that a former owner of their run has started. */
  adopting(name: string): Executor | undefined {
    const executor = this.#byName.get(name);
    return executor?.remote ? executor : this.#foreign;
  }

  get streamingSlots(): number {
    return this.all.reduce((sum, { streamingSlots = 0 }) => sum + streamingSlots, 0);
  }

  /** How many more attempts the executor accepts, besides those chosen already. */
  free(executor: Executor, chosen: readonly Chosen[]): number {
    const underWay =
      this.#pending.unsubmitted(executor) + chosen.filter((each) => each.executor === executor).length;
    return executor.freeSlots() - underWay;
  }

  /**
   * The number of tasks that could start at once; an executor accepts more, to have the next ones ready. The slot of an
   * attempt is free when its end is stored: the same batch gives it to the next ready task of its run.
   */
  idle(): FreeSlots {
    let slots: number | null = 0;
    let free = 0;
    // Workers serve all schedulers: which scheduler owns a run does not matter to them.
    const own = this.all.filter(({ remote }) => !remote);
    for (const executor of own.length > 0 ? own : this.all) {
      const each = executor.slots();
      slots = slots === null || each.slots === null ? null : slots + each.slots;
      free += Math.max(0, each.free - this.#pending.unsubmitted(executor));
    }
    return { slots, free: Math.max(0, free - this.#pending.unstoredEnds()) };
  }
}
