/**
 * Which ready instances may be queued now. The rules are the model's (`ReadyQueue`); this is what they need to know
 * of the world: pools as last seen in the database, what the batch at hand frees and takes, run limits, executors.
 *
 * The view of a pool may be out of date when other schedulers use it too. It only guides the choice: the batch that
 * stores the choice is refused by the database if it would oversubscribe a pool, and the choice is made again.
 */
import type { Executor } from "../execute/contract.ts";
import { type Candidate, type Capacity, type Instance, isOccupying, ReadyQueue } from "../model/index.ts";
import type { Call, Database } from "../store/database.ts";
import { limitNames } from "../store/limit-key.ts";
import { type PoolView, readPools } from "../store/pool-occupancy.ts";
import { type PoolWaiter, publishWaiters, waitersOfOthers } from "../store/pool-waiters.ts";
import type { RunActor } from "./run-actor.ts";

/** A ready instance, or a stand-in for a task that another scheduler holds back: it takes room and goes nowhere. */
interface Ready extends Candidate {
  readonly own: { readonly actor: RunActor; readonly instance: Instance; readonly executor: Executor } | null;
}

/** Queued in memory; to be stored, then dispatched. */
export interface Admitted {
  readonly actor: RunActor;
  readonly instance: Instance;
  readonly attempt: string;
  readonly executor: Executor;
}

/** A ready instance that begins by waiting for its trigger. */
export interface Starter {
  readonly actor: RunActor;
  readonly instance: Instance;
  /** It was given room, because its pool counted it when it became ready. */
  readonly hasSlot: boolean;
}

export interface AdmissionOptions {
  readonly database: Database;
  /** Attempts on their way to an executor that it does not know of yet. */
  readonly unsubmitted: (executor: Executor) => number;
}

export class Admission {
  readonly #executors: readonly Executor[];
  readonly #byName: ReadonlyMap<string, Executor>;
  readonly #database: Database;
  readonly #unsubmitted: AdmissionOptions["unsubmitted"];
  readonly #queue = new ReadyQueue<Ready>();
  /** Everything added and not yet picked, by run; entries of a paused DAG wait outside the queue. */
  readonly #waiting = new Map<number, { readonly actor: RunActor; readonly ready: Map<Instance, Ready> }>();
  #strangers: Ready[] = [];
  /** How much our own tasks have passed tasks of others that do not fit, as long as those wait. */
  #passed = new Map<string, number>();
  #published = "[]";
  #pools = new Map<string, Capacity>();
  /** Pools that count deferred tasks, too. */
  #counting = new Set<string>();
  #starters: Starter[] = [];
  /** What the batch at hand frees (negative) and takes of each pool. */
  readonly #pending = new Map<string, number>();

  constructor(executors: readonly Executor[], options: AdmissionOptions) {
    this.#executors = executors;
    this.#byName = new Map(executors.map((executor) => [executor.name, executor]));
    this.#database = options.database;
    this.#unsubmitted = options.unsubmitted;
  }

  async refreshPools(): Promise<void> {
    this.#see(await readPools(this.#database), "all");
  }

  /** The batch at hand came to nothing. */
  reset(): void {
    this.#pending.clear();
    this.#published = "";
    // Some may have been set aside because of what has now come to nothing.
    for (const name of this.#pools.keys()) if (isCounter(name)) this.#queue.release(name);
  }

  isWaiting(): boolean {
    return this.#queue.size > 0;
  }

  /** Takes what became ready in this run. */
  note(actor: RunActor, now: number): void {
    for (const instance of actor.model.takeReady()) {
      instance.scheduledAt = now;
      instance.queuedAt = null;
      instance.pid = null;
      if (this.#mayWait(actor, instance)) this.#starters.push({ actor, instance, hasSlot: false });
      else this.#add(actor, instance);
    }
  }

  /** Instances that begin by waiting since the last call: they need no room, unless their pool counts them. */
  takeStarters(limit: number): Starter[] {
    return this.#starters.splice(0, limit);
  }

  get hasStarters(): boolean {
    return this.#starters.length > 0;
  }

  /** Whether the pool of this instance counts it while it is deferred. */
  keepsDeferred(actor: RunActor, instance: Instance): boolean {
    return this.#counting.has(actor.placeOf(instance).pool);
  }

  #mayWait(actor: RunActor, instance: Instance): boolean {
    return beginsByWaiting(instance) && !actor.isPaused && !this.keepsDeferred(actor, instance);
  }

  /** Queues all that has room, each with a new attempt. */
  admit(now: number): Admitted[] {
    const admitted: Admitted[] = [];
    let hasStale: boolean;
    do {
      hasStale = false;
      for (const { own } of this.#take(admitted)) {
        if (!own) continue;
        const { actor, instance, executor } = own;
        if (beginsByWaiting(instance)) {
          this.#count(actor, instance, 1);
          this.#starters.push({ actor, instance, hasSlot: true });
          continue;
        }
        const attempt = crypto.randomUUID();
        const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
        // A branch may have ruled it out meanwhile. It took room from others: choose once more.
        if (!actor.model.apply({ type: "queued", ...key }, now)) {
          hasStale = true;
          continue;
        }
        this.#count(actor, instance, 1);
        instance.queuedAt = now;
        admitted.push({ actor, instance, attempt, executor });
      }
    } while (hasStale);
    this.#sendStrangersAway();
    return admitted;
  }

  /**
   * Lets tasks of other schedulers stand in line for the next `admit`, so that the slots of those that outrank ours
   * stay free for them. True when there are any: whoever frees slots then should say so.
   */
  async seeOthers(jobId: number): Promise<boolean> {
    this.#sendStrangersAway();
    if (this.#queue.size === 0) return false;
    const waiters = await waitersOfOthers(this.#database, jobId);
    const passed = new Map(waiters.map((waiter) => [nameOf(waiter), this.#passed.get(nameOf(waiter)) ?? 0]));
    this.#passed = passed;
    this.#strangers = waiters.map((waiter) => {
      const overtaken = passed.get(nameOf(waiter)) ?? 0;
      return { ...waiter, own: null, standsFor: waiter.amount, limits: [], overtaken };
    });
    for (const stranger of this.#strangers) this.#queue.add(stranger);
    return this.#strangers.length > 0;
  }

  /** What to tell the other schedulers of our own best waiting tasks; null when that has not changed. */
  newsOfWaiting(jobId: number): Call | null {
    const heads: PoolWaiter[] = [];
    for (const { task, waiting } of this.#queue.heads()) {
      const { pool, weight, logicalDate, mapIndex, slots } = task;
      const amount = Math.min(waiting, Math.max(1, this.#pools.get(pool)?.slots ?? 1));
      heads.push({ pool, weight, logicalDate, mapIndex, slots, amount });
    }
    const news = JSON.stringify(heads);
    if (news === this.#published) return null;
    this.#published = news;
    return publishWaiters(jobId, heads);
  }

  /** Admitted too much: back to where they were, so that the next round can choose with better numbers. */
  withdraw(admitted: readonly Admitted[], now: number): void {
    for (const { actor, instance, attempt } of admitted) {
      const key = { taskId: instance.node.id, mapIndex: instance.mapIndex, attempt };
      actor.model.apply({ type: "unqueued", ...key }, now);
      this.freed(actor, instance);
      this.note(actor, now);
    }
  }

  /** Forgets everything that waits for this run. */
  drop(actor: RunActor): void {
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

  /** An instance left its slots, in memory; the batch at hand will say so to the database. */
  freed(actor: RunActor, instance: Instance): void {
    if (isOccupying(instance.state, instance.wait)) return;
    this.#count(actor, instance, -1);
    this.#queue.release(`run:${actor.id}`);
    for (const name of limitNames(actor.placeOf(instance).limitKey)) this.#queue.release(name);
  }

  /** The batch is stored: what was pending is now so, and the database's own numbers come last. */
  settle(settled: readonly PoolView[]): void {
    for (const [name, delta] of this.#pending) {
      const view = this.#pools.get(name);
      if (view) this.#pools.set(name, { slots: view.slots, occupied: view.occupied + delta });
    }
    this.#pending.clear();
    this.#see(settled, "some");
  }

  #take(admitted: readonly Admitted[]): Ready[] {
    const free = new Map<string, number>();
    for (const executor of this.#executors) {
      const underWay = this.#unsubmitted(executor) + admitted.filter((a) => a.executor === executor).length;
      const slots = executor.freeSlots() - underWay;
      free.set(`executor:${executor.name}`, slots);
      if (slots > 0) this.#queue.release(`executor:${executor.name}`);
    }
    const runs = new Map<string, Capacity>();
    const picks = this.#queue.take((name, kind) => {
      if (kind === "pool" || isCounter(name)) return this.#poolNow(name);
      const slots = free.get(name);
      if (slots !== undefined) return { slots: Math.max(0, slots), occupied: 0 };
      return runs.get(name) ?? remembered(runs, name, this.#runCapacity(name));
    });
    for (const { own } of picks) if (own) this.#waiting.get(own.actor.id)?.ready.delete(own.instance);
    return picks;
  }

  #add(actor: RunActor, instance: Instance): void {
    const { manifest, weight } = instance.node;
    const { pool, slots, limitKey } = actor.placeOf(instance);
    const executor = this.#executorOf(manifest.executor);
    const limits = [`run:${actor.id}`, `executor:${executor.name}`, ...limitNames(limitKey)];
    const ready: Ready = {
      own: { actor, instance, executor },
      weight,
      logicalDate: (actor.run.logical_date ?? actor.run.run_after).getTime(),
      mapIndex: instance.mapIndex,
      pool,
      slots,
      limits,
    };
    let waiting = this.#waiting.get(actor.id);
    if (!waiting) {
      waiting = { actor, ready: new Map() };
      this.#waiting.set(actor.id, waiting);
    }
    // It may have been put back and become ready again while it waited.
    const former = waiting.ready.get(instance);
    if (former) this.#queue.remove(former);
    waiting.ready.set(instance, ready);
    if (!actor.isPaused) this.#queue.add(ready);
  }

  #poolNow(name: string): Capacity | undefined {
    const view = this.#pools.get(name);
    return view && { slots: view.slots, occupied: view.occupied + (this.#pending.get(name) ?? 0) };
  }

  #runCapacity(name: string): Capacity | undefined {
    const waiting = this.#waiting.get(Number(name.slice("run:".length)));
    if (!waiting) return undefined;
    const { model, version } = waiting.actor;
    const { queued, running, restarting } = model.counts.byState;
    return { slots: version.manifest.maxActiveTasks, occupied: queued + running + restarting };
  }

  #count(actor: RunActor, instance: Instance, by: 1 | -1): void {
    const { pool, slots, limitKey } = actor.placeOf(instance);
    this.#pending.set(pool, (this.#pending.get(pool) ?? 0) + by * slots);
    for (const name of limitNames(limitKey)) this.#pending.set(name, (this.#pending.get(name) ?? 0) + by);
  }

  #sendStrangersAway(): void {
    for (const stranger of this.#strangers) {
      this.#queue.remove(stranger);
      this.#passed.set(nameOf(stranger), stranger.overtaken ?? 0);
    }
    this.#strangers = [];
  }

  #see(pools: readonly PoolView[], which: "all" | "some"): void {
    const before = this.#pools;
    if (which === "all") {
      this.#pools = new Map();
      this.#counting.clear();
    }
    for (const { name, slots, occupied, include_deferred } of pools) {
      if (include_deferred) this.#counting.add(name);
      else this.#counting.delete(name);
      const old = before.get(name);
      this.#pools.set(name, { slots, occupied });
      if (isCounter(name) && old && (old.slots !== slots || old.occupied > occupied))
        this.#queue.release(name);
    }
  }

  /** A task that names an executor this scheduler does not have waits for none: it runs on the default one. */
  #executorOf(name: string | null): Executor {
    const executor = (name === null ? undefined : this.#byName.get(name)) ?? this.#executors[0];
    if (!executor) throw new Error("a scheduler needs at least one executor");
    return executor;
  }
}

function beginsByWaiting({ node, step }: Instance): boolean {
  return step === null && Boolean(node.manifest.startTrigger);
}

function remembered<V>(map: Map<string, V>, name: string, value: V | undefined): V | undefined {
  if (value !== undefined) map.set(name, value);
  return value;
}

/** By what is told of it; two that look the same count as one. */
function nameOf({ pool, weight, logicalDate, mapIndex, slots }: Omit<PoolWaiter, "amount">): string {
  return JSON.stringify([pool, weight, logicalDate, mapIndex, slots]);
}

/** The engine's own pools: how many instances of a task, or of a DAG, are active across all its runs. */
function isCounter(name: string): boolean {
  return name.startsWith("@");
}
