/**
 * The interface of a peer: the same three shapes, in the peer's own terms. Every adapter uses the settings that the peer's
 * documentation recommends for throughput, and lists them in its note. All peers run user code inside their own process,
 * while Tradewind runs it in child processes.
 */

export interface Peer {
  /** Version, configuration, and what the figures exclude in the peer's favour. */
  readonly note: string;
  /** Number of independent tasks that is enough to measure its rate. */
  readonly independentTasks: number;
  /** `tasks` steps, each after the one before. */
  chain(tasks: number): Promise<void>;
  /** One step, `width` steps after it, one step after all of those. */
  fan(width: number): Promise<void>;
  /** Created and run, in any order. */
  independent(tasks: number): Promise<void>;
  close(): Promise<void>;
}

/** @param url A separate PostgreSQL database. */
export type OpenPeer = (url: string) => Promise<Peer>;

/** A package of bench/.peers, whose types this repository does not have. */
export async function load<T>(name: string): Promise<T> {
  const { load } = (await import(new URL("../.peers/load.mjs", import.meta.url).href)) as {
    load(name: string): Promise<T>;
  };
  return load(name);
}

/** Resolves when `done` was called this many times. */
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
