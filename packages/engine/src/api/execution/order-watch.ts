/** Wakes held heartbeats when assignments were cancelled or workers are to drain. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Topic, WakeUps } from "../../job/wake-up.ts";

export class OrderWatch {
  readonly #wakeUps: Pick<WakeUps, "listen" | "onLocal">;
  #offLocal: (() => void) | null = null;
  #listening: Promise<{ close(): Promise<void> } | null> | null = null;
  #count = 0;
  #next = Promise.withResolvers<void>();

  constructor(wakeUps: Pick<WakeUps, "listen" | "onLocal">) {
    this.#wakeUps = wakeUps;
  }

  /** To be called before the orders are read. */
  mark(): number {
    this.#attend();
    return this.#count;
  }

  /** Resolves when there may be orders after `mark`, or after `ms`. */
  async after(mark: number, ms: number): Promise<void> {
    if (this.#count !== mark) return;
    const timer = new AbortController();
    await Promise.race([
      this.#next.promise,
      sleep(ms, undefined, { signal: timer.signal, ref: false }).catch(() => {}),
    ]);
    timer.abort();
  }

  async close(): Promise<void> {
    this.#offLocal?.();
    this.#wake("");
    await (await this.#listening)?.close();
  }

  /** Subscribes with the first heartbeat. A lost wake-up costs the time of one heartbeat. */
  #attend(): void {
    this.#offLocal ??= this.#wakeUps.onLocal((topic) => this.#wake(topic));
    this.#listening ??= this.#wakeUps
      .listen((topic) => this.#wake(topic))
      .catch(() => {
        this.#listening = null;
        return null;
      });
  }

  #wake(topic: Topic | ""): void {
    if (topic !== "assignments" && topic !== "") return;
    this.#count++;
    this.#next.resolve();
    this.#next = Promise.withResolvers();
  }
}
