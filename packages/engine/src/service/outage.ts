import { messageOf } from "./errors.ts";
import type { Logger } from "./logger.ts";

/** For an operation that is tried every few seconds: logs a failure once instead of each time, and the recovery. */
export class Outage {
  readonly #logger: Logger;
  readonly #what: string;
  #reported: string | null = null;

  /** @param what The operation that fails, e.g. "look after deadlines". */
  constructor(logger: Logger, what: string) {
    this.#logger = logger;
    this.#what = what;
  }

  /** The current failure; null: there is none. */
  get problem(): string | null {
    return this.#reported === null ? null : `cannot ${this.#what}: ${this.#reported}`;
  }

  failed(error: unknown): void {
    const message = messageOf(error);
    const level = message === this.#reported ? "debug" : "warn";
    this.#logger[level](`cannot ${this.#what}`, { error: message });
    this.#reported = message;
  }

  passed(): void {
    if (this.#reported !== null) this.#logger.info(`can ${this.#what} again`);
    this.#reported = null;
  }
}
