/**
 * The attempts this job gave to its executors and has not settled yet. An attempt leaves when its end is stored or
 * turns out to concern nobody any more. What the journal calls queued or running and is not in here is out there with
 * nobody: its process died with a former owner, or it was never dispatched.
 */
import type { Executor, ExecutorEvent } from "../execute/contract.ts";
import type { Instance } from "../model/index.ts";
import { OCCUPYING } from "../model/index.ts";
import type { RunActor } from "./run-actor.ts";

export type Report = Extract<ExecutorEvent, { attempt: string }>;

export interface Held {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly executor: Executor;
}

export class InHand {
  readonly #held = new Map<string, Held>();

  get size(): number {
    return this.#held.size;
  }

  has(attempt: string): boolean {
    return this.#held.has(attempt);
  }

  get(attempt: string): Held | undefined {
    return this.#held.get(attempt);
  }

  add(attempt: string, held: Held): void {
    this.#held.set(attempt, held);
  }

  /** The ends among these reports are dealt with. */
  settle(reports: readonly Report[]): void {
    for (const report of reports) if (report.type === "ended") this.#held.delete(report.attempt);
  }

  cancel(attempt: string, reason: string): void {
    this.#held.get(attempt)?.executor.cancel(attempt, reason);
  }

  cancelRun(runId: number, reason: string): void {
    for (const [attempt, held] of this.#held) if (held.runId === runId) held.executor.cancel(attempt, reason);
  }

  cancelAll(reason: string): void {
    for (const [attempt, held] of this.#held) held.executor.cancel(attempt, reason);
  }

  /**
   * A run that was just loaded, against what is in hand: kills attempts that are no longer wanted and answers the
   * instances whose attempt nobody has.
   */
  reconcile(actor: RunActor): Instance[] {
    const current = new Set<string>();
    const orphans: Instance[] = [];
    for (const instance of actor.model.instances()) {
      const { attempt, state } = instance;
      if (attempt === null || !OCCUPYING.has(state)) continue;
      if (!this.#held.has(attempt)) orphans.push(instance);
      else if (state === "restarting") this.cancel(attempt, "cleared while it ran");
      current.add(attempt);
    }
    for (const [attempt, held] of this.#held)
      if (held.runId === actor.id && !current.has(attempt)) held.executor.cancel(attempt, "no longer wanted");
    return orphans;
  }
}
