import { messageOf } from "./errors.ts";
import type { Logger } from "./logger.ts";

/** Of what is tried every few seconds: a failure is told once, not each time, and so is that it works again. */
export class Outage {
  readonly #logger: Logger;
  readonly #what: string;
  #told: string | null = null;

  /** @param what What cannot be done while it lasts, e.g. "look after deadlines". */
  constructor(logger: Logger, what: string) {
    this.#logger = logger;
    this.#what = what;
  }

  failed(error: unknown): void {
    const message = messageOf(error);
    const level = message === this.#told ? "debug" : "warn";
    this.#logger[level](`cannot ${this.#what}`, { error: message });
    this.#told = message;
  }

  passed(): void {
    if (this.#told !== null) this.#logger.info(`can ${this.#what} again`);
    this.#told = null;
  }
}
