/** Retries of failed groups and of the failed run, and the callbacks of groups. */
import { type RunModel, type RunVerdict, runRetryAt } from "@tradewind/engine/model";
import type { DagManifest } from "@tradewind/sdk/manifest";
import type { Callbacks } from "./callbacks.ts";
import type { Clock } from "./clock.ts";
import type { Journal } from "./journal.ts";

export interface RetriesParts {
  readonly callbacks: Callbacks;
  readonly clock: Clock;
  readonly journal: Journal;
  readonly manifest: DagManifest;
  readonly model: RunModel;
}

export class Retries {
  readonly #parts: RetriesParts;
  /** The try of the run. */
  tryNumber = 1;
  #retryAt: number | null = null;

  constructor(parts: RetriesParts) {
    this.#parts = parts;
  }

  /** Returns whether a run with this verdict is retried. */
  follow(verdict: RunVerdict, isTimedOut: boolean): boolean {
    const { clock, manifest } = this.#parts;
    const run = { tryNumber: this.tryNumber, verdict, isTimedOut };
    const retryAt = runRetryAt(manifest, run, clock.now());
    this.#retryAt = retryAt === null ? null : (this.#retryAt ?? retryAt);
    return this.#retryAt !== null;
  }

  nextAt(): number {
    return this.#retryAt ?? Number.POSITIVE_INFINITY;
  }

  /** Calls the callbacks of groups that have ended or are retried. */
  async callCallbacks(): Promise<void> {
    const { callbacks, model } = this.#parts;
    for (const change of model.groups?.drainChanges() ?? [])
      for (const each of change.events) await callbacks.ofGroup(change, each);
  }

  /** Starts the retries that are due. */
  begin(now: number): void {
    const { journal, manifest, model } = this.#parts;
    const again = model.groups?.begin(now) ?? [];
    if (this.nextAt() <= now) {
      this.#retryAt = null;
      this.tryNumber++;
      again.push(...model.retried(manifest.runRetry?.from ?? "failure"));
    }
    model.repeat(again, now, (instance) => journal.forget(instance));
  }
}
