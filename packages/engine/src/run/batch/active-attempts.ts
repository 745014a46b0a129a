/**
 * The attempts this job gave to its executors and has not settled yet. An attempt leaves when its end is stored or
 * turns out to concern nobody any more. What the journal calls queued or running and is not in here is out there with
 * nobody: its process died with a former owner, or it was never dispatched.
 */

import type { TaskManifest } from "@tradewind/sdk/manifest";
import type { AttemptReport, CancelTerms, Executor } from "../../execute/contract.ts";
import { dependsOnSetup, type Instance, isMappedOver, isStreaming, OCCUPYING } from "../../model/index.ts";
import type { Admitted } from "../admit/admission.ts";
import type { RunActor } from "../loaded/run-actor.ts";

export interface Held {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly executor: Executor;
  readonly isStream: boolean;
}

export class ActiveAttempts {
  readonly #held = new Map<string, Held>();
  /** Cancelled, and not settled yet. */
  readonly #cancelled = new Set<string>();
  /** Their executors have reported their end, which is not settled yet. */
  readonly #gone = new Set<string>();

  get size(): number {
    return this.#held.size;
  }

  has(attempt: string): boolean {
    return this.#held.has(attempt);
  }

  /** Whether it may still be given to its executor. */
  isWanted(attempt: string): boolean {
    return this.#held.has(attempt) && !this.#cancelled.has(attempt);
  }

  get(attempt: string): Held | undefined {
    return this.#held.get(attempt);
  }

  /** Streaming tasks that have or wait for slots of this executor; of any, if none is named. */
  streams(executor?: Executor): number {
    let streams = 0;
    for (const held of this.#held.values())
      if (held.isStream && (executor === undefined || held.executor === executor)) streams++;
    return streams;
  }

  all(): Iterable<[string, Held]> {
    return this.#held;
  }

  /** Those that have attempts here. */
  runs(): Set<number> {
    return new Set(this.#held.values().map(({ runId }) => runId));
  }

  take(admitted: readonly Admitted[]): void {
    for (const { actor, attempt, executor, instance } of admitted) {
      const { mapIndex, node } = instance;
      const isStream = isStreaming(node.manifest);
      this.#held.set(attempt, { runId: actor.id, taskId: node.id, mapIndex, executor, isStream });
    }
  }

  /** The ends among these reports are dealt with. */
  settle(reports: readonly AttemptReport[]): void {
    for (const report of reports) {
      if (report.type !== "ended") continue;
      this.#held.delete(report.attempt);
      this.#cancelled.delete(report.attempt);
      this.#gone.delete(report.attempt);
    }
  }

  /** Nothing is at work for it any more. That stays true when the batch that tells of it is void. */
  noteGone(attempt: string): void {
    if (this.#held.has(attempt)) this.#gone.add(attempt);
  }

  /**
   * Whether a ready teardown has to wait: something of its run has been ended without its process, which may still be at
   * work on what is to be cleared away. Likewise a setup, while what depends on it is being stopped for its sake; and a task
   * whose output a map runs over, while an instance of the map is being stopped: the map reads the new list only if nothing
   * of the old one is left. Only what is in hand counts, and that does end.
   */
  keepsWaiting(instance: Instance, { id, model }: RunActor): boolean {
    const { node } = instance;
    const { role } = node.manifest;
    if (role === "work" && node.feeds.length === 0) return false;
    for (const [attempt, { mapIndex, runId, taskId }] of this.#held) {
      if (runId !== id || this.#gone.has(attempt)) continue;
      const other = model.get(taskId, mapIndex);
      const isCurrent = other?.attempt === attempt && OCCUPYING.has(other.state);
      if (isCurrent && other.state !== "restarting") continue;
      if (role === "teardown" && !isCurrent) return true;
      if (role === "setup" && (!other || dependsOnSetup(other, instance))) return true;
      if (isCurrent && isMappedOver(other.node, node)) return true;
    }
    return false;
  }

  /** An attempt that its executor has not been given yet is answered by the dispatcher instead. */
  cancel(attempt: string, reason: string, terms?: CancelTerms): void {
    const held = this.#held.get(attempt);
    if (!held) return;
    this.#cancelled.add(attempt);
    held.executor.cancel(attempt, reason, terms);
  }

  cancelRun(runId: number, reason: string): void {
    for (const [attempt, held] of this.#held) if (held.runId === runId) this.cancel(attempt, reason);
  }

  cancelAll(reason: string): void {
    for (const attempt of this.#held.keys()) this.cancel(attempt, reason);
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
      else if (state === "restarting")
        this.cancel(attempt, "cleared while it ran", graceOf(instance.node.manifest));
      current.add(attempt);
    }
    for (const [attempt, held] of this.#held)
      if (held.runId === actor.id && !current.has(attempt)) this.cancel(attempt, "no longer wanted");
    return orphans;
  }
}

function graceOf({ graceMs }: TaskManifest): CancelTerms {
  return graceMs === undefined ? {} : { graceMs };
}
