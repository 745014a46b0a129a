/** Repeats a call to the API while it fails transiently: the server is away, restarting or overloaded. */
import { setTimeout as sleep } from "node:timers/promises";
import { ExecutionError } from "./execution-client.ts";

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1_000;

export interface Repeats {
  /** False: the call fails instead of being repeated. */
  readonly isWanted: () => boolean;
  readonly onRetry: (error: ExecutionError) => void;
}

/** @param call May be made again although the API has received it: the answer was lost. */
export async function repeated<T>(call: () => Promise<T>, repeats: Repeats): Promise<T> {
  const pause = new RetryPause(repeats);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      await pause.after(error);
    }
  }
}

/** The pause before a repetition; each is longer than the one before. */
export class RetryPause {
  readonly #repeats: Repeats;
  #waitMs = FIRST_WAIT_MS;

  constructor(repeats: Repeats) {
    this.#repeats = repeats;
  }

  /** The call made progress: the next pause is short. */
  reset(): void {
    this.#waitMs = FIRST_WAIT_MS;
  }

  /** @throws the error if the call is not to be repeated. */
  async after(error: unknown): Promise<void> {
    const isTransient = error instanceof ExecutionError && error.isTransient;
    if (!isTransient || !this.#repeats.isWanted()) throw error;
    this.#repeats.onRetry(error);
    await sleep(this.#waitMs);
    this.#waitMs = Math.min(2 * this.#waitMs, LONGEST_WAIT_MS);
  }
}
