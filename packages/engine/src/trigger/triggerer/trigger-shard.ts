/**
 * The triggers that this triggerer owns: claimed in the database, and run by the runner or observed by the engine. The
 * database decides: triggers that it assigns to this job and that are missing here are added, all others are stopped.
 */
import type { ErrorFacts, TriggerAbortKind } from "@tradewind/sdk/program";
import type { BundleCache } from "../../code/bundle-cache.ts";
import { PackageError } from "../../code/required-packages.ts";
import { EngineError, messageOf } from "../../service/errors.ts";
import { type Database, isTransient } from "../../store/database/database.ts";
import {
  type ClaimedTrigger,
  type ClaimRequest,
  claimTriggers,
  ownedTriggers,
  releaseTriggers,
} from "../../store/trigger/trigger-claim.ts";
import { deleteUnwaited, deleteUnwaitedCold, unwaitedTriggers } from "../../store/trigger/triggers.ts";
import type { TriggerWork } from "../contract.ts";
import type { EngineTriggers } from "../engine/engine-triggers.ts";
import type { TriggerRunner } from "../process/trigger-runner.ts";
import type { TriggerLog } from "./trigger-log.ts";

export interface ShardParts {
  readonly database: Database;
  readonly runner: TriggerRunner;
  readonly bundles: BundleCache;
  readonly engine: EngineTriggers;
  readonly log: TriggerLog;
  /** Called for a trigger that cannot be run. */
  readonly onFailed: (id: number, error: ErrorFacts) => void;
}

/** Unowned triggers per sweep: with a million of them a sweep must cost no more than with a few. */
const COLD_AT_ONCE = 1_000;

export class TriggerShard {
  readonly #parts: ShardParts;
  readonly #held = new Map<number, ClaimedTrigger>();
  /** Position of the last sweep among the unowned triggers. */
  #sweptTo = 0;

  constructor(parts: ShardParts) {
    this.#parts = parts;
  }

  get size(): number {
    return this.#held.size;
  }

  get(id: number): ClaimedTrigger | undefined {
    return this.#held.get(id);
  }

  /** Returns how many were claimed; `limit` of them means that there may be more. */
  async claim(request: ClaimRequest): Promise<number> {
    const claimed = await claimTriggers(this.#parts.database, request);
    await this.#add(claimed);
    return claimed.length;
  }

  /**
   * Compares with the database: after a pause, a lost answer, a takeover, and periodically. Triggers of paused DAGs are
   * released.
   */
  async compare(jobId: number): Promise<void> {
    const owned = await ownedTriggers(this.#parts.database, jobId);
    const asleep = owned.filter((trigger) => !trigger.is_awake).map(({ id }) => id);
    const ours = new Set(owned.filter((trigger) => trigger.is_awake).map(({ id }) => id));
    const sleeping = new Set(asleep);
    const gone = [...this.#held.keys()].filter((id) => !ours.has(id));
    this.drop(
      gone.filter((id) => sleeping.has(id)),
      "stopped",
    );
    // Taken by another triggerer, or deleted with its DAG: the row no longer shows which.
    this.drop(
      gone.filter((id) => !sleeping.has(id)),
      "moved",
    );
    if (asleep.length > 0) await releaseTriggers(this.#parts.database, jobId, asleep);
    await this.#add(owned.filter(({ id }) => ours.has(id) && !this.#held.has(id)));
  }

  /** Deletes triggers without waiters; returns how many of them ran here. */
  async sweep(jobId: number): Promise<number> {
    const { database } = this.#parts;
    const unwaited = await unwaitedTriggers(database, jobId);
    const deleted = await deleteUnwaited(database, jobId, unwaited);
    this.drop(deleted, "cancelled");
    this.#sweptTo = await deleteUnwaitedCold(database, this.#sweptTo, COLD_AT_ONCE);
    return deleted.length;
  }

  /**
   * Releases this many triggers to others; returns how many it released. The newest are released first: they lose the
   * least. Suspects of a crash stay: elsewhere the search for the guilty trigger would begin again.
   */
  async release(jobId: number, count: number): Promise<number> {
    const ids = [...this.#held.keys()].filter((id) => !this.#parts.runner.isSuspect(id)).slice(-count);
    this.drop(ids, "moved");
    await releaseTriggers(this.#parts.database, jobId, ids);
    return ids.length;
  }

  /** Stops triggers that have ended or have another owner, without a write to the database. */
  drop(ids: readonly number[], why: TriggerAbortKind): void {
    this.#parts.runner.stop(ids, why);
    for (const id of ids) this.forget(id);
  }

  /** As `drop`, but the trigger keeps running: its acknowledgement is still to come. */
  forget(id: number): void {
    this.#held.delete(id);
    this.#parts.engine.remove(id);
    this.#parts.log.forget(id);
  }

  dropAll(): void {
    this.drop([...this.#held.keys()], "moved");
  }

  /**
   * A bundle that cannot be loaded fails the triggers that need it, and invalid arguments fail only their own trigger. A
   * database that is unavailable fails none.
   */
  async #add(triggers: readonly ClaimedTrigger[]): Promise<void> {
    const { runner, engine, log, onFailed } = this.#parts;
    for (const [hash, group] of Map.groupBy(triggers, (trigger) => trigger.bundle_hash)) {
      const path = await this.#bundlePath(hash);
      const work: TriggerWork[] = [];
      for (const trigger of group) {
        this.#held.set(trigger.id, trigger);
        if (trigger.dag_id === null) log.watch(trigger);
        try {
          if (path instanceof Error) throw path;
          const args = engine.add(trigger);
          if (args !== undefined) work.push({ ...workOf(trigger), args, bundlePath: path });
        } catch (error) {
          onFailed(trigger.id, factsOf(error));
        }
      }
      if (work.length > 0) runner.run(work);
    }
  }

  async #bundlePath(hash: string | null): Promise<string | null | Error> {
    if (hash === null) return null;
    try {
      return await this.#parts.bundles.path(hash);
    } catch (error) {
      if (isTransient(error)) throw error;
      if (error instanceof PackageError) return error;
      const message = `The trigger's bundle cannot be loaded: ${messageOf(error)}`;
      return new EngineError("TRIGGER_NOT_LOADED", message, { cause: error });
    }
  }
}

function workOf({ id, kind, last_event }: ClaimedTrigger): Pick<TriggerWork, "id" | "kind" | "lastEvent"> {
  return { id, kind, ...(last_event != null && { lastEvent: last_event }) };
}

function factsOf(error: unknown): ErrorFacts {
  const code = error instanceof EngineError ? error.code : null;
  const name = error instanceof Error ? error.name : "Error";
  return { name, message: messageOf(error), stack: null, code };
}
