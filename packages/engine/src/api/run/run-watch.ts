/**
 * Notifies waiters when the state of their run changes. A wake-up only reports that some run ended or, while a waiter waits for a
 * queued run, that some state changed. One query for all awaited runs then finds the changed ones; queries do not overlap and
 * are at least `GAP_MS` apart, so a thousand waiters cost as much as one. Wake-ups may get lost, so it also polls while
 * there are waiters.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { publishesStates, type Topic, type WakeUps } from "../../job/wake-up.ts";
import type { Database } from "../../store/database/database.ts";
import { readRunStates } from "../../store/list/dag-runs.ts";

interface RunWatchOptions {
  readonly database: Database;
  readonly wakeUps: Pick<WakeUps, "listen" | "onLocal" | "wantStates">;
  /** Poll interval without wake-ups. */
  readonly fallbackMs?: number;
}

interface Waiter {
  readonly runId: number;
  readonly state: string;
  readonly wake: () => void;
}

const GAP_MS = 20;
const FALLBACK_MS = 2_000;

export class RunWatch {
  readonly #options: RunWatchOptions;
  readonly #waiters = new Set<Waiter>();
  readonly #offLocal: () => void;
  #listening: Promise<{ close(): Promise<void> } | null> | null = null;
  #fallback: NodeJS.Timeout | null = null;
  #isLooking = false;
  #isCalled = false;
  /** Waiters for queued runs. */
  #queued = 0;

  constructor(options: RunWatchOptions) {
    this.#options = options;
    this.#offLocal = options.wakeUps.onLocal((topic) => this.#wake(topic));
  }

  /** Returns when the run has left this state or was deleted, after `ms`, or when stopped. */
  async change(
    run: { readonly id: number; readonly state: string },
    { ms, stop }: { readonly ms: number; readonly stop: AbortSignal },
  ): Promise<void> {
    if (stop.aborted) return;
    const { promise, resolve: wake } = Promise.withResolvers<void>();
    const waiter: Waiter = { runId: run.id, state: run.state, wake };
    const timer = setTimeout(wake, ms);
    const onStop = () => wake();
    stop.addEventListener("abort", onStop);
    this.#waiters.add(waiter);
    this.#count(run.state, 1);
    this.#attend();
    // The state may have changed since the caller read it.
    void this.#read();
    await promise;
    clearTimeout(timer);
    stop.removeEventListener("abort", onStop);
    this.#waiters.delete(waiter);
    this.#count(run.state, -1);
    if (this.#waiters.size === 0) this.#rest();
  }

  async close(): Promise<void> {
    this.#offLocal();
    this.#rest();
    for (const waiter of this.#waiters) waiter.wake();
    await (await this.#listening)?.close();
  }

  /** Starts with the first waiter: a subscription, kept for later waiters, and the poll timer. */
  #attend(): void {
    this.#listening ??= this.#options.wakeUps
      .listen((topic) => this.#wake(topic))
      .then((listening) => {
        // Catches changes from before the subscription.
        void this.#read();
        return listening;
      })
      .catch(() => {
        this.#listening = null;
        return null;
      });
    this.#fallback ??= setInterval(() => void this.#read(), this.#options.fallbackMs ?? FALLBACK_MS);
  }

  /** Starts of runs are published only on request. */
  #count(state: string, by: 1 | -1): void {
    if (state !== "queued") return;
    this.#queued += by;
    this.#options.wakeUps.wantStates(this, this.#queued > 0);
  }

  #rest(): void {
    if (this.#fallback !== null) clearInterval(this.#fallback);
    this.#fallback = null;
  }

  #wake(topic: Topic | ""): void {
    if (topic === "" || topic === "ended" || topic.startsWith("run:")) void this.#read();
    else if (this.#queued > 0 && publishesStates(topic)) void this.#read();
  }

  async #read(): Promise<void> {
    this.#isCalled = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    while (this.#isCalled && this.#waiters.size > 0) {
      this.#isCalled = false;
      const began = performance.now();
      // After a database error, the next wake-up or the timer polls again.
      await this.#compare().catch(() => {});
      if (this.#isCalled) await sleep(Math.max(0, began + GAP_MS - performance.now()));
    }
    this.#isLooking = false;
  }

  async #compare(): Promise<void> {
    const waiters = [...this.#waiters];
    const states = await readRunStates(
      this.#options.database,
      waiters.map(({ runId }) => runId),
    );
    for (const { runId, state, wake } of waiters) if (states.get(runId) !== state) wake();
  }
}
