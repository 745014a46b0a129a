/**
 * Chooses the ready instances that may be queued now. The rules are in the model (`ReadyQueue`). This class supplies their
 * inputs: pools as last read from the database, the slots that the current batch frees and takes, run limits, executors.
 *
 * The view of a pool may be outdated if other schedulers use it. It only guides the choice: the database rejects a batch
 * that would oversubscribe a pool, and the choice is repeated.
 */
import type { Executor } from "../../execute/contract.ts";
import {
  byTurn,
  type Candidate,
  type Capacity,
  type Instance,
  isOccupying,
  ReadyQueue,
} from "../../model/index.ts";
import { orderedId } from "../../service/ordered-id.ts";
import type { Call, Database } from "../../store/database/database.ts";
import { limitNames } from "../../store/pool/limit-key.ts";
import type { PoolWaiter } from "../../store/pool/pool-waiters.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import type { RunActor } from "../loaded/run-actor.ts";
import { BlockedTeardowns } from "./blocked-teardowns.ts";
import { ExecutorRoom, type PendingAttempts } from "./executor-room.ts";
import { LimitedTasks } from "./limited-tasks.ts";
import { PeerPoolWaiters } from "./peer-pool-waiters.ts";
import { isCounter, PoolViews } from "./pool-views.ts";
import {
  beginsByWaiting,
  dateOf,
  isLimited,
  type OwnReady,
  type Ready,
  remembered,
  taskLimit,
} from "./ready-task.ts";
import { StreamSlots } from "./stream-slots.ts";

/** Queued in memory; stored next, then dispatched. */
export interface Admitted {
  readonly actor: RunActor;
  readonly instance: Instance;
  readonly attempt: string;
  readonly executor: Executor;
}

/** A ready instance that starts by waiting for its trigger. */
export interface Starter {
  readonly actor: RunActor;
  readonly instance: Instance;
  /** It has a slot, because its pool counts deferred tasks. */
  readonly hasSlot: boolean;
}

export interface AdmissionOptions extends PendingAttempts {
  readonly database: Database;
  readonly activeAttempts: ActiveAttempts;
  readonly foreign?: Executor | undefined;
}

export class Admission {
  readonly blockedTeardowns: BlockedTeardowns;
  readonly executors: ExecutorRoom;
  readonly limitedTasks = new LimitedTasks();
  readonly peerWaiters: PeerPoolWaiters;
  readonly pools: PoolViews;
  readonly #queue = new ReadyQueue<Ready>();
  /** All added and not yet admitted instances, by run; those of a paused DAG are not in the queue. */
  readonly #waiting = new Map<number, { readonly actor: RunActor; readonly ready: Map<Instance, Ready> }>();
  readonly #streamSlots: StreamSlots;
  #starters: Starter[] = [];

  constructor(executors: readonly Executor[], options: AdmissionOptions) {
    this.executors = new ExecutorRoom(executors, options, options.foreign);
    this.blockedTeardowns = new BlockedTeardowns(options.activeAttempts);
    this.peerWaiters = new PeerPoolWaiters(options.database, this.#queue);
    this.#streamSlots = new StreamSlots(this.#queue, options.activeAttempts);
    this.pools = new PoolViews(options.database, (name) => this.#queue.release(name));
  }

  /** The current batch was rejected. */
  reset(): void {
    this.pools.reset();
    this.peerWaiters.reset();
  }

  isWaiting(): boolean {
    return this.#queue.size > 0;
  }

  /** The number of ready tasks that wait only for a slot of an executor. */
  get shortOfSlots(): number {
    return this.executors.all
      .filter(({ remote }) => !remote)
      .reduce((sum, { name }) => sum + this.#queue.waitingFor(`executor:${name}`), 0);
  }

  /** Runs with ready tasks and their number, in the order of admission. */
  waitingRuns(): { readonly actor: RunActor; readonly ready: number }[] {
    const runs = [...this.#waiting.values()].filter(({ ready }) => ready.size > 0);
    const first = (ready: Ready[]) => ready.reduce((a, b) => (byTurn(b, a) < 0 ? b : a));
    return runs
      .map(({ actor, ready }) => ({ actor, ready: ready.size, first: first([...ready.values()]) }))
      .sort((a, b) => byTurn(a.first, b.first));
  }

  /** Adds the instances of this run that became ready. */
  addReady(actor: RunActor, now: number): void {
    for (const instance of this.blockedTeardowns.drainReady(actor, now)) {
      if (this.#mayWait(actor, instance)) this.#starters.push({ actor, instance, hasSlot: false });
      else this.#add(actor, instance);
    }
  }

  /** New instances that start by waiting: they need no slot, unless their pool counts deferred tasks. */
  drainStarters(limit: number): Starter[] {
    return this.#starters.splice(0, limit);
  }

  get hasStarters(): boolean {
    return this.#starters.length > 0;
  }

  /** Whether the pool of this instance counts deferred tasks. */
  keepsDeferred(actor: RunActor, instance: Instance): boolean {
    // The tasks of a sub-DAG take slots too, possibly of the same pool: the sub-DAG would wait for itself.
    if (instance.node.manifest.dag !== undefined) return false;
    return this.pools.countsDeferred(actor.placeOf(instance).pool);
  }

  #mayWait(actor: RunActor, instance: Instance): boolean {
    return beginsByWaiting(instance) && !actor.isPaused && !this.keepsDeferred(actor, instance);
  }

  /** Queues all instances that have room, each with a new attempt. Adds their runs to `touched`. */
  admit(now: number, touched: Set<RunActor>): Admitted[] {
    const admitted: Admitted[] = [];
    let hasStale: boolean;
    do {
      hasStale = false;
      for (const ready of this.#removeAdmitted(admitted)) {
        if (!ready.own) continue;
        const { actor, instance } = ready.own;
        if (beginsByWaiting(instance)) {
          this.#count(actor, instance, 1);
          this.#starters.push({ actor, instance, hasSlot: true });
          continue;
        }
        // A branch may have skipped it meanwhile. It was counted against others: choose again.
        const queued = this.#queued(ready.own, now);
        if (queued) admitted.push(queued);
        else {
          hasStale = true;
          for (const limit of ready.limits) this.#queue.release(limit);
        }
      }
    } while (hasStale);
    this.peerWaiters.sendAway();
    for (const { actor } of admitted) touched.add(actor);
    return admitted;
  }

  #queued({ actor, executor, instance }: OwnReady, now: number): Admitted | null {
    // Of equal priority, a queue passes the earlier one first.
    const attempt = orderedId();
    const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
    if (!actor.model.apply({ type: "queued", ...key }, now)) return null;
    this.#count(actor, instance, 1);
    instance.queuedAt = now;
    instance.executorJob = null;
    instance.hostname = null;
    return { actor, instance, attempt, executor };
  }

  /** Publishes the first waiting tasks of this scheduler to the others; null: unchanged. */
  newsOfWaiting(jobId: number): Call | null {
    const heads: PoolWaiter[] = [];
    for (const { task, waiting } of this.#queue.heads()) {
      const { pool, weight, logicalDate, mapIndex, slots } = task;
      const amount = Math.min(waiting, Math.max(1, this.pools.sizeOf(pool) ?? 1));
      heads.push({ pool, weight, logicalDate, mapIndex, slots, amount });
    }
    return this.peerWaiters.news(jobId, heads);
  }

  /** Undoes admissions that the database rejected, so that the next round can choose with current numbers. */
  withdraw(admitted: readonly Admitted[], now: number): void {
    // The published waiting tasks were not stored either.
    this.peerWaiters.reset();
    for (const { actor, instance, attempt } of admitted) {
      const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
      actor.model.apply({ type: "unqueued", ...key }, now);
      this.freed(actor, instance);
      this.addReady(actor, now);
    }
  }

  /** Removes all waiting instances of this run. */
  drop(actor: RunActor): void {
    this.blockedTeardowns.drop(actor);
    this.limitedTasks.drop(actor);
    this.#starters = this.#starters.filter((starter) => starter.actor !== actor);
    for (const ready of this.#waiting.get(actor.id)?.ready.values() ?? []) this.#queue.remove(ready);
    this.#waiting.delete(actor.id);
  }

  setPaused(actor: RunActor, isPaused: boolean): void {
    const waiting = this.#waiting.get(actor.id);
    for (const [instance, ready] of waiting?.ready ?? []) {
      if (isPaused) this.#queue.remove(ready);
      else if (this.#mayWait(actor, instance)) {
        waiting?.ready.delete(instance);
        this.#starters.push({ actor, instance, hasSlot: false });
      } else this.#queue.add(ready);
    }
  }

  /** An instance has freed its slots in memory; the current batch stores that. */
  freed(actor: RunActor, instance: Instance): void {
    if (isOccupying(instance)) return;
    this.#count(actor, instance, -1);
    this.#queue.release(`run:${actor.id}`);
    if (isLimited(instance)) this.#queue.release(taskLimit(actor, instance));
    for (const name of limitNames(actor.placeOf(instance).limitKey)) this.#queue.release(name);
  }

  #removeAdmitted(admitted: readonly Admitted[]): Ready[] {
    const free = this.#streamSlots.assign(this.#waiting, admitted);
    for (const executor of this.executors.all) {
      const slots = this.executors.free(executor, admitted);
      free.set(`executor:${executor.name}`, slots);
      if (slots > 0) this.#queue.release(`executor:${executor.name}`);
    }
    const runs = new Map<string, Capacity>();
    const picks = this.#queue.admit((name, kind) => {
      if (kind === "pool" || isCounter(name)) return this.pools.now(name);
      const slots = free.get(name);
      if (slots !== undefined) return { slots: Math.max(0, slots), occupied: 0 };
      return runs.get(name) ?? remembered(runs, name, this.#capacityIn(name));
    });
    for (const { own } of picks) if (own) this.#waiting.get(own.actor.id)?.ready.delete(own.instance);
    return picks;
  }

  #add(actor: RunActor, instance: Instance): void {
    const executor = this.executors.of(instance.node.manifest.executor);
    const ready: Ready = {
      own: { actor, instance, executor },
      weight: instance.node.weight,
      logicalDate: dateOf(actor),
      mapIndex: instance.mapIndex,
      ...this.#needs(actor, instance),
    };
    let waiting = this.#waiting.get(actor.id);
    if (!waiting) {
      waiting = { actor, ready: new Map() };
      this.#waiting.set(actor.id, waiting);
    }
    // It may have been reset and become ready again while it waited.
    const former = waiting.ready.get(instance);
    if (former) this.#queue.remove(former);
    waiting.ready.set(instance, ready);
    this.#streamSlots.add(ready);
    if (!actor.isPaused) this.#queue.add(ready);
  }

  #needs(actor: RunActor, instance: Instance): Pick<Candidate, "limits" | "pool" | "slots"> {
    const { pool, slots, limitKey } = actor.placeOf(instance);
    const executor = this.executors.of(instance.node.manifest.executor);
    const limits = [`run:${actor.id}`, `executor:${executor.name}`, ...limitNames(limitKey)];
    if (isLimited(instance)) limits.push(taskLimit(actor, instance));
    return { pool, slots, limits };
  }

  /** The capacity of a run, or of one of its tasks. */
  #capacityIn(name: string): Capacity | undefined {
    const [, run, index] = name.split(":");
    const actor = this.#waiting.get(Number(run))?.actor;
    if (!actor || index === undefined) return actor && this.#capacityOf(actor);
    const node = actor.model.graph.nodes[Number(index)];
    return node && this.limitedTasks.capacity(actor, node);
  }

  #capacityOf(actor: RunActor): Capacity {
    const { queued, running, restarting } = actor.model.counts.byState;
    return { slots: actor.version.manifest.maxActiveTasks, occupied: queued + running + restarting };
  }

  #count(actor: RunActor, instance: Instance, by: 1 | -1): void {
    this.pools.count(actor.placeOf(instance), by);
    if (by > 0) this.limitedTasks.add(actor, instance);
    else this.limitedTasks.delete(actor, instance);
  }
}
