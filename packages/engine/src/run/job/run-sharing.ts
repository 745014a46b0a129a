/**
 * Shares runs between schedulers, so that no slot of a peer idles while tasks wait here. A scheduler publishes how many
 * tasks it could start now, leaves queued runs to peers with free slots while it has none, and hands over runs without
 * active attempts when its ready tasks have waited for slots for a while. The published number is a hint that may be
 * outdated: a run that was handed to a peer whose slots are taken meanwhile is handed on.
 */
import type { Executor } from "../../execute/contract.ts";
import type { WakeUps } from "../../job/wake-up.ts";
import type { Logger } from "../../service/logger.ts";
import type { Database } from "../../store/database/database.ts";
import type { ServedDags } from "../../store/job/served-dags.ts";
import type { WaitingTasks } from "../../store/run/run-claim.ts";
import {
  handOverRuns,
  livePeers,
  offeredSlots,
  type Peer,
  publishFreeSlots,
  publishSlotFacts,
  type SlotFacts,
} from "../../store/run/run-hand-over.ts";
import type { Admission } from "../admit/admission.ts";
import type { ActiveAttempts } from "../batch/active-attempts.ts";
import type { Callbacks } from "../dispatch/callbacks.ts";
import type { RunActor } from "../loaded/run-actor.ts";

/** Tasks that have waited for a shorter time may get a slot here sooner than at a peer. */
const PATIENCE_MS = 100;
/** Minimum time between two publications, unless the last slot was taken. */
const PUBLISH_MS = 100;
/** How long queued runs are left to peers with fewer waiting tasks. */
const LEAVE_MS = 500;
/** Maximum number of runs handed over in one transaction. */
const HAND_LIMIT = 256;

/** The parts of the job that sharing needs. */
export interface OwnLoad {
  readonly admission: Admission;
  readonly activeAttempts: ActiveAttempts;
  readonly callbacks: Callbacks;
  readonly executors: readonly Executor[];
  /** Runs to load again: their last decision may not be stored. */
  readonly stale: ReadonlySet<number>;
  /** This job no longer owns the run. */
  readonly drop: (actor: RunActor | undefined) => void;
}

export interface RunSharingOptions extends Pick<OwnLoad, "admission" | "drop" | "activeAttempts"> {
  readonly database: Database;
  readonly wakeUps: WakeUps;
  readonly logger: Logger;
  /** False: it offers no slots to peers. */
  readonly isOpen: boolean;
  readonly dags: ServedDags;
  readonly wake: () => void;
  readonly markStale: (runId: number) => void;
}

export class RunSharing {
  readonly #options: RunSharingOptions;
  /** The published number of free slots when last read: peers may have reserved slots since. */
  #published = 0;
  /** The row has to be written even if the number seems unchanged. */
  #isOutdated = true;
  #publishedAt = Number.NEGATIVE_INFINITY;
  #publishedFacts = "";
  /** Since when ready tasks have waited for slots. */
  #shortSince: number | null = null;
  /** A peer may have free slots: it sent a wake-up, or the peers were not read since tasks began to wait. */
  #mayHaveRoom = true;
  #timer: NodeJS.Timeout | undefined;
  #leaving: NodeJS.Timeout | undefined;

  constructor(options: RunSharingOptions) {
    this.#options = options;
  }

  /** The number of tasks that could start now besides those that are ready. */
  get room(): number {
    return this.#options.admission.executors.idle().free;
  }

  /** A peer has published free slots. */
  peerHasRoom(): void {
    this.#mayHaveRoom = true;
    if (this.#shortSince !== null) this.#options.wake();
  }

  /** Called before the job reads its owned runs, so that it knows the runs for which peers have reserved slots. */
  async readOffer(jobId: number): Promise<void> {
    const offered = await offeredSlots(this.#options.database, jobId);
    if (offered !== this.#published) this.#isOutdated = true;
    this.#published = offered;
  }

  /**
   * The tasks that wait for slots at this job and at peers that serve the same DAGs; null: a peer has free slots, and queued
   * runs are left to it. Publishes first, so that of two full schedulers at least one sees that the other is full.
   */
  async waiting(jobId: number): Promise<WaitingTasks | null> {
    await this.#publish(jobId);
    const live = await livePeers(this.#options.database, jobId);
    const peers = live.filter(({ dags }) => servesAll(dags, this.#options.dags));
    if (peers.some(({ free_slots: free }) => free > 0)) return null;
    const own = this.#options.admission.shortOfSlots;
    return {
      own,
      all: peers.reduce((sum, { free_slots: free }) => sum - free, own),
      schedulers: peers.length + 1,
    };
  }

  /** Whether queued runs are left to peers with fewer waiting tasks. */
  isLeft({ all, own, schedulers }: WaitingTasks): boolean {
    return this.#leaving !== undefined && own * schedulers > all;
  }

  /** Leaves the remaining queued runs to peers for a limited time: they may have found the DAG locked. */
  leaveRest(onTimeout: () => void): void {
    this.#options.wakeUps.sendToOthers("runs");
    this.#leaving ??= setTimeout(() => {
      this.#leaving = undefined;
      onTimeout();
    }, LEAVE_MS).unref();
  }

  /** At each heartbeat, because peers may have reserved slots; and at the start, so that the slots are visible. */
  async beat(jobId: number): Promise<void> {
    this.#isOutdated = true;
    this.#mayHaveRoom = true;
    await this.#publish(jobId);
  }

  /** At each heartbeat: publishes the state of the executors, if it has changed. */
  async publishFacts(jobId: number): Promise<void> {
    const { admission, database, activeAttempts } = this.#options;
    const { slots } = admission.executors.idle();
    const { all, streamingSlots } = admission.executors;
    const active = activeAttempts.sizes();
    const facts: SlotFacts = {
      executors: all.map((executor) => ({
        name: executor.name,
        type: executor.type,
        slots: executor.slots().slots,
        active: active.get(executor) ?? 0,
        problem: executor.problem?.() ?? null,
      })),
      slots,
      streaming_slots: streamingSlots,
      streaming_tasks: all
        .filter(({ remote }) => !remote)
        .reduce((sum, executor) => sum + activeAttempts.streams(executor), 0),
    };
    const text = JSON.stringify([jobId, facts]);
    if (text === this.#publishedFacts) return;
    await publishSlotFacts(database, jobId, facts);
    this.#publishedFacts = text;
  }

  /** After each turn while there are peers. */
  async rebalance(jobId: number): Promise<void> {
    const { room } = this;
    const isNews = this.#isOutdated || room > 0 !== this.#published > 0;
    const wait = this.#publishedAt + PUBLISH_MS - performance.now();
    if (isNews && (room === 0 || wait <= 0)) await this.#publish(jobId);
    else if (isNews) this.#wakeIn(wait);
    await this.#handOver(jobId);
  }

  async stop(jobId: number): Promise<void> {
    clearTimeout(this.#timer);
    clearTimeout(this.#leaving);
    const { slots } = this.#options.admission.executors.idle();
    await publishFreeSlots(this.#options.database, jobId, { slots, free: 0 });
  }

  async #publish(jobId: number): Promise<void> {
    const { admission, database, isOpen, wakeUps } = this.#options;
    const { slots, free: idle } = admission.executors.idle();
    const offered = isOpen ? idle : 0;
    const free = idle > 0 ? offered : -admission.shortOfSlots;
    if (this.#published === free && !this.#isOutdated) return;
    this.#publishedAt = performance.now();
    this.#isOutdated = !(await publishFreeSlots(database, jobId, { slots, free }, this.#published));
    if (this.#isOutdated) return;
    if (free > 0 && this.#published <= 0) wakeUps.sendToOthers("slots");
    this.#published = free;
  }

  async #handOver(jobId: number): Promise<void> {
    const { admission, database } = this.#options;
    if (admission.shortOfSlots === 0) {
      this.#shortSince = null;
      return;
    }
    if (this.#shortSince === null) this.#mayHaveRoom = true;
    this.#shortSince ??= performance.now();
    const wait = this.#shortSince + PATIENCE_MS - performance.now();
    if (wait > 0) return this.#wakeIn(wait);
    if (!this.#mayHaveRoom) return;
    const movable = this.#movable();
    if (movable.length === 0) return;
    const peers = (await livePeers(database, jobId)).filter(({ dags }) =>
      movable.some(({ actor }) => servesAll(dags, [actor.run.dag_id])),
    );
    const withRoom = peers.filter(({ free_slots: free }) => free > 0);
    this.#mayHaveRoom = withRoom.length > 0;
    // Beyond its free slots, a peer gets as many runs as balance the waiting tasks: that lasts longer than filling its slots.
    const waiting = peers.reduce((sum, { free_slots: free }) => sum - free, admission.shortOfSlots);
    const share = Math.max(0, Math.floor(waiting / (peers.length + 1)));
    for (const peer of withRoom) await this.#release(jobId, { ...peer, share }, movable);
  }

  /** Runs with ready tasks and without active attempts or calls of `onSignal`. */
  #movable(): { readonly actor: RunActor; readonly ready: number }[] {
    const { admission, activeAttempts } = this.#options;
    const busy = activeAttempts.runs();
    return admission.waitingRuns().filter(({ actor }) => {
      const { queued, running, restarting } = actor.model.counts.byState;
      const isSettled = actor.subscriptions === null && actor.ending === null && actor.unmeasured === 0;
      return isSettled && !actor.isPaused && queued + running + restarting === 0 && !busy.has(actor.id);
    });
  }

  /** Removes the given runs from `movable`; runs of DAGs that the peer does not serve stay. */
  async #release(
    jobId: number,
    peer: Peer & { readonly share: number },
    movable: { readonly actor: RunActor; readonly ready: number }[],
  ): Promise<void> {
    const { database, drop, logger, markStale, wakeUps } = this.#options;
    const given: RunActor[] = [];
    let slots = 0;
    while (slots < peer.free_slots + peer.share && given.length < HAND_LIMIT) {
      const at = movable.findIndex(({ actor }) => servesAll(peer.dags, [actor.run.dag_id]));
      const [next] = at < 0 ? [] : movable.splice(at, 1);
      if (next === undefined) break;
      given.push(next.actor);
      slots += next.ready;
    }
    if (given.length === 0) return;
    const runs = given.map(({ id, run: { generation } }) => ({ id, generation }));
    try {
      const moved = await handOverRuns(database, { from: jobId, to: peer.id, runs, slots });
      for (const actor of given) {
        if (moved.has(actor.id)) drop(actor);
      }
      logger.debug("handed over runs", { runs: moved.size, to: peer.id });
    } catch (error) {
      // Their owner is unknown: load them again.
      for (const { id } of given) markStale(id);
      throw error;
    } finally {
      wakeUps.sendToOthers("handed");
    }
  }

  #wakeIn(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#options.wake, Math.ceil(ms)).unref();
  }
}

function servesAll(served: ServedDags, wanted: ServedDags): boolean {
  return served === null || wanted?.every((dagId) => served.includes(dagId)) === true;
}
