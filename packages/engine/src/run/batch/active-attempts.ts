/**
 * The attempts that this job gave to its executors and whose end is not stored. An attempt is removed when its end is
 * stored or was superseded. An instance that the database has as queued or running, and whose attempt is not here, has no
 * process: it died with a former owner, or the attempt was never dispatched.
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
  /** Cancelled attempts whose end is not stored. */
  readonly #cancelled = new Set<string>();
  /** Attempts whose end is reported and not stored. */
  readonly #gone = new Set<string>();

  get size(): number {
    return this.#held.size;
  }

  has(attempt: string): boolean {
    return this.#held.has(attempt);
  }

  /** Whether the attempt may still be submitted to its executor. */
  isWanted(attempt: string): boolean {
    return this.#held.has(attempt) && !this.#cancelled.has(attempt);
  }

  get(attempt: string): Held | undefined {
    return this.#held.get(attempt);
  }

  /** The number of streaming tasks that have or wait for slots of this executor. */
  streams(executor: Executor): number {
    let streams = 0;
    for (const held of this.#held.values()) if (held.isStream && held.executor === executor) streams++;
    return streams;
  }

  /** The number of attempts by executor. */
  sizes(): ReadonlyMap<Executor, number> {
    const sizes = new Map<Executor, number>();
    for (const { executor } of this.#held.values()) sizes.set(executor, (sizes.get(executor) ?? 0) + 1);
    return sizes;
  }

  all(): Iterable<[string, Held]> {
    return this.#held;
  }

  /** The runs of these attempts. */
  runs(): Set<number> {
    return new Set(this.#held.values().map(({ runId }) => runId));
  }

  /** The number of attempts that end with this process. */
  get localSize(): number {
    return this.#held.values().reduce((sum, { executor }) => sum + (executor.remote ? 0 : 1), 0);
  }

  /** The runs with attempts that end with this process. */
  localRuns(): Set<number> {
    const local = this.#held.values().filter(({ executor }) => !executor.remote);
    return new Set(local.map(({ runId }) => runId));
  }

  /** The number of attempts of a run that its next owner would adopt. */
  adoptableOf(runId: number): number {
    const isAdoptable = ([attempt, held]: [string, Held]) =>
      held.runId === runId && held.executor.remote?.isStored(attempt) === true;
    return this.#held.entries().filter(isAdoptable).toArray().length;
  }

  add(admitted: readonly Admitted[]): void {
    for (const { actor, attempt, executor, instance } of admitted) {
      const { mapIndex, node } = instance;
      const isStream = isStreaming(node.manifest);
      this.#held.set(attempt, { runId: actor.id, taskId: node.id, mapIndex, executor, isStream });
    }
  }

  /** An attempt that runs on another machine, for a former owner of its run. */
  adopt(attempt: string, held: Held): void {
    this.#held.set(attempt, held);
  }

  /** The ends among these reports are stored, or superseded. */
  removeEnded(reports: readonly AttemptReport[]): void {
    for (const report of reports) {
      if (report.type !== "ended") continue;
      this.#held.get(report.attempt)?.executor.remote?.forget([report.attempt]);
      this.#held.delete(report.attempt);
      this.#cancelled.delete(report.attempt);
      this.#gone.delete(report.attempt);
    }
  }

  /** The attempt has no process any more, even if the batch that stores its end is rejected. */
  recordGone(attempt: string): void {
    if (this.#held.has(attempt)) this.#gone.add(attempt);
  }

  /**
   * Whether a ready teardown has to wait: an instance of its run was ended while its process may still use what the
   * teardown removes. Likewise a setup, while its dependents are being stopped for its restart; and a task whose output is
   * mapped over, while an instance of that map is being stopped: the map reads the new list only when no instance of the old
   * one is left. Only active attempts count, and those do end.
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

  /** The dispatcher reports the end of an attempt that is not submitted to its executor yet. */
  cancel(attempt: string, reason: string, terms?: CancelTerms): void {
    const held = this.#held.get(attempt);
    if (!held) return;
    this.#cancelled.add(attempt);
    held.executor.cancel(attempt, reason, terms);
  }

  /** The run has ended, or another job owns it. Its remote attempts may belong to that job. */
  leaveRun(runId: number, reason: string): void {
    const remote = this.#removeRemote((held) => held.runId === runId);
    for (const [executor, attempts] of remote) executor.remote?.abandon(attempts);
    for (const [attempt, held] of this.#held) if (held.runId === runId) this.cancel(attempt, reason);
  }

  /** The end of the run is stored: no job reads the ends of its remote attempts, which are stopped. */
  endRun(runId: number): void {
    const remote = this.#removeRemote((held) => held.runId === runId);
    for (const [executor, attempts] of remote) executor.remote?.abandon(attempts);
  }

  /** Other jobs may own all runs. Remote attempts continue for them. */
  leaveAll(reason: string): void {
    for (const [executor, attempts] of this.#removeRemote(() => true)) executor.remote?.forget(attempts);
    for (const attempt of this.#held.keys()) this.cancel(attempt, reason);
  }

  /** The run was released: its remote attempts continue for its next owner. */
  release(runId: number): void {
    const remote = this.#removeRemote((held) => held.runId === runId);
    for (const [executor, attempts] of remote) executor.remote?.forget(attempts);
  }

  #removeRemote(isWanted: (held: Held) => boolean): Map<Executor, string[]> {
    const found = new Map<Executor, string[]>();
    for (const [attempt, held] of this.#held) {
      if (!held.executor.remote || !isWanted(held)) continue;
      found.set(held.executor, [...(found.get(held.executor) ?? []), attempt]);
      this.#held.delete(attempt);
      this.#cancelled.delete(attempt);
      this.#gone.delete(attempt);
    }
    return found;
  }

  /**
   * Compares a run that was just loaded with the active attempts: cancels superseded attempts, and returns the instances
   * whose attempt has no process.
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
