/** When to look at a run although nothing happened: one timer for all runs, set to the earliest moment. */
import { Heap } from "../model/heap.ts";

export class Timers {
  readonly #moments = new Heap<{ readonly at: number; readonly runId: number }>((a, b) => a.at < b.at);
  readonly #onDue: () => void;
  #timer: NodeJS.Timeout | null = null;

  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  note(runId: number, at: number): void {
    this.#moments.push({ at, runId });
  }

  /** The runs whose moment has come, each once per moment noted. */
  *takeDue(now: number): Iterable<number> {
    for (let next = this.#moments.peek(); next && next.at <= now; next = this.#moments.peek()) {
      this.#moments.pop();
      yield next.runId;
    }
  }

  arm(now: number): void {
    this.disarm();
    const next = this.#moments.peek();
    if (!next) return;
    this.#timer = setTimeout(this.#onDue, Math.min(Math.max(0, next.at - now), 2 ** 30));
  }

  disarm(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }
}
