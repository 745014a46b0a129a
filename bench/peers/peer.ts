/**
 * A peer, as the comparison sees it: the same three shapes, in the peer's own terms. Every adapter uses what the peer's
 * documentation recommends for throughput, and says so in its note. All of them run user code inside their own process,
 * where Tradewind runs it in child processes.
 */

export interface Peer {
  /** Version, configuration, and what the figures leave out in the peer's favour. */
  readonly note: string;
  /** How many independent tasks are enough to see its rate. */
  readonly independentTasks: number;
  /** `tasks` steps, each after the one before. */
  chain(tasks: number): Promise<void>;
  /** One step, `width` after it, one after all of those. */
  fan(width: number): Promise<void>;
  /** Created and run, in whatever order. */
  independent(tasks: number): Promise<void>;
  close(): Promise<void>;
}

/** @param url A PostgreSQL database of its own. */
export type OpenPeer = (url: string) => Promise<Peer>;

/** A package of bench/.peers, whose types this repository does not have. */
export async function load<T>(name: string): Promise<T> {
  const { load } = (await import(new URL("../.peers/load.mjs", import.meta.url).href)) as {
    load(name: string): Promise<T>;
  };
  return load(name);
}

/** Resolves when `done` was called so many times. */
export class Countdown {
  readonly over: Promise<void>;
  #left: number;
  #resolve: () => void = () => {};

  constructor(count: number) {
    this.#left = count;
    this.over = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  done(): boolean {
    if (--this.#left === 0) this.#resolve();
    return this.#left === 0;
  }
}
