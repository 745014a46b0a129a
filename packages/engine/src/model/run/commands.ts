/**
 * Start, restart and stop of tasks on request of a rule, a tick or a user, and closing of the run.
 *
 *                start                        restart                       stop
 *    none        counts; the task starts      as start                      drops its starts
 *                when its upstream allows it
 *    active      counts: the task runs        the attempt is stopped, and   the attempt is stopped,
 *                again after this try         the task starts again         drops its starts
 *    finished    the task and its             as start                      -
 *                downstream start again
 *
 * A finished task starts again when its end is stored, so that its downstream sees the end. A task without downstream starts
 * again in the batch of its end: the owner stores the end with the history of its tries.
 *
 * A start is consumed when a task starts for the first time, and when it starts again after it had finished. Other causes (a
 * restart, a manual clear, a retry, another wait for its upstream) consume none, and the try keeps its cause. A task that
 * starts again because of its upstream has no cause.
 *
 * A task that ends before it starts also consumes a start: its upstream skips or fails it, its run is ended, or a user marks
 * it. If the task needs a start, this one counts as a try: it needs no other when it is cleared.
 */
import { type Drive, isStreaming } from "../signal/drive.ts";
import type { Fact, LeafState } from "../signal/signal-condition.ts";
import type { Cause } from "../signal/waiting-starts.ts";
import type { Instance } from "./instance.ts";
import { isOccupying } from "./instance.ts";
import type { InstanceTable, Slot } from "./instance-table.ts";
import type { Moves } from "./moves.ts";
import { isFinished, OCCUPYING } from "./states.ts";

/** An attempt to stop, once the decision is stored. */
export interface Cancel {
  readonly attempt: string;
  readonly reason: string;
  readonly graceMs: number;
  /** true: no attempt follows, and a success before the stop counts. false: another attempt follows. */
  readonly isFinal: boolean;
}

export interface Command {
  readonly taskId: string;
  readonly action: "start" | "restart" | "stop";
  /** The requester, in words. */
  readonly reason: string;
  /** The maximum number of waiting starts; left out: unlimited. */
  readonly atMost?: number;
  /** The versions of the signals that caused it; left out: none. */
  readonly by?: readonly number[];
}

/** Default grace period of a task that is stopped. */
export const GRACE_MS = 10_000;

/** The beginning of the reason of a stopped task. */
const STOPPED_BY = "stopped by ";

/** Whether an instance ended with this reason because a rule or a user stopped it. */
export function isStopped(reason: string | null): boolean {
  return reason?.startsWith(STOPPED_BY) === true;
}

export class Commands {
  readonly #table: InstanceTable;
  readonly #moves: Moves;
  readonly #drive: Drive;
  readonly #cancels: Cancel[] = [];
  readonly #released: Instance[] = [];
  /** Finished tasks with waiting starts. */
  readonly #again = new Set<Slot>();
  /** Successes within the run that its rules have not received yet. */
  readonly #news: Fact[] = [];
  #hasGivenUp = false;

  constructor(table: InstanceTable, moves: Moves, drive: Drive) {
    this.#table = table;
    this.#moves = moves;
    this.#drive = drive;
  }

  /** Whether a task is about to start again. */
  get isPending(): boolean {
    for (const { node } of this.#again) if (this.#drive.starts(node.id) > 0) return true;
    return false;
  }

  drainCancels(): Cancel[] {
    return this.#cancels.splice(0);
  }

  /** Instances that released their pool slots because of a request. */
  drainReleased(): Instance[] {
    return this.#released.splice(0);
  }

  /** Call after loading. An attempt to stop may have been ended manually: then the request no longer applies. */
  recordLoaded({ instances, node }: Slot): void {
    if (!instances.some(({ state }) => OCCUPYING.has(state))) this.#drive.setStopping(node.id, null);
    for (const instance of instances) if (isFinished(instance.state)) this.recordFinished(instance);
  }

  /** Loaded as finished, or just ended: starts again if a start waits. */
  recordFinished(instance: Instance): void {
    if (this.#drive.starts(instance.node.id) > 0) this.#again.add(this.#table.slots[instance.node.index]!);
  }

  recordSuccess({ node }: Instance): void {
    this.#drive.setStopping(node.id, null);
    this.#news.push({ kind: "task", taskId: node.id, version: null });
  }

  /** Whether a task that its upstream and earlier runs allow to run starts. One that has started before needs no start. */
  letBegin(instance: Instance): boolean {
    const { manifest, id } = instance.node;
    const isFirst = instance.tryNumber === 0;
    const lacksStart = isFirst && this.#drive.needsStart(id) && this.#drive.starts(id) === 0;
    const { closed } = this.#drive;
    if (closed !== null && (lacksStart || isStreaming(manifest))) {
      this.#moves.end(instance, "skipped", { at: this.#moves.now, reason: closedBy(closed) });
      return false;
    }
    if (lacksStart) this.#table.hold(instance, "signal");
    else if (isFirst && this.#drive.starts(id) > 0) this.#drive.consumeStart(id);
    return !lacksStart;
  }

  /** The instance ends without having started: consumes the start it waited with. */
  endStart(instance: Instance): void {
    const { id } = instance.node;
    if (instance.tryNumber > 0 || this.#drive.starts(id) === 0) return;
    this.#drive.consumeStart(id);
    if (this.#drive.needsStart(id)) instance.tryNumber = 1;
  }

  /** true: a rule has fired. Firings act in the order of the rules. */
  receive(heard: Fact): boolean {
    const firings = this.#drive.receive(heard);
    for (const { action, by, taskId } of firings) {
      const reason = [...new Set(by.map(({ key }) => key))].join(", ");
      if (taskId === null) this.close(reason, versionsOf(by));
      else this.carryOut({ taskId, action, reason, by: versionsOf(by) });
    }
    return firings.length > 0;
  }

  /** Call when a run is settled: applies the run's own rules. true: the run has to be settled again. */
  followUp(): boolean {
    const heard = this.#news.shift();
    const { closed } = this.#drive;
    if (heard) this.receive(heard);
    else if (closed !== null) this.#skipUnstartable(closedBy(closed));
    else if (this.#drive.endsWithBatch && this.#isBatchDone()) this.close("the end of its batch tasks");
    else if (!this.#drive.isOpen) this.#skipUnstartable("nothing can start it any more");
    return heard !== undefined || this.#table.hasAgenda;
  }

  carryOut({ action, atMost, by = [], reason, taskId }: Command): boolean {
    const slot = this.#table.slotOf(taskId);
    if (!slot || (this.#drive.closed !== null && action !== "stop")) return false;
    switch (action) {
      case "start":
        this.#start(slot, by.length > 0 ? { start: by } : null, atMost);
        return true;
      case "restart":
        for (const instance of slot.instances) this.#restart(slot, instance, { by, reason });
        return true;
      case "stop":
        this.#stop(slot, reason);
        this.#drive.recordEffect({ taskId, by });
        return true;
    }
  }

  /** An attempt that was asked to stop has ended, in any way but success. */
  stopped(instance: Instance, at: number): true {
    const why = this.#drive.stopping(instance.node.id) ?? "";
    this.#drive.setStopping(instance.node.id, null);
    this.#endStopped(instance, why, at);
    return true;
  }

  close(reason: string, by: readonly number[] = []): boolean {
    if (this.#drive.closed !== null) return false;
    this.#drive.close(reason);
    this.#drive.recordEffect({ taskId: null, by });
    for (const slot of this.#table.slots) {
      if (isStreaming(slot.node.manifest)) this.#stop(slot, reason);
      else this.#drive.forgetStartsAtClose(slot.node.id);
    }
    this.#hasGivenUp = false;
    this.#skipUnstartable(closedBy(reason));
    return true;
  }

  /** Starts finished tasks again. `archive` receives each previous state. */
  beginAgain(archive: (instance: Instance) => void): boolean {
    let hasBegun = false;
    // Upstream first, as after a reload: a task that has just started again does not hide an end that is not stored.
    for (const slot of [...this.#again].sort((a, b) => a.node.index - b.node.index)) {
      const isOver = slot.instances.every(({ state }) => isFinished(state));
      if (!isOver || this.#drive.starts(slot.node.id) === 0) {
        this.#again.delete(slot);
        continue;
      }
      const { finished, underWay } = this.#reach(slot);
      const mayPassEnd = this.#isLast(slot);
      const isStored = (each: Instance) => !each.dirty || (mayPassEnd && isJustEnded(each));
      if (!finished.every(({ instances }) => instances.every(isStored))) continue;
      this.#again.delete(slot);
      hasBegun = true;
      for (const { instances, node } of finished) {
        // A task that has never started consumes its start when it does.
        if (instances.some(({ tryNumber }) => tryNumber > 0)) this.#drive.consumeStart(node.id);
        for (const each of instances) this.#moves.beginAgain(each, archive);
        for (const index of node.downstream) this.#reevaluate(this.#table.slots[index]!);
      }
      for (const each of underWay) this.#repeatLater(each);
    }
    return hasBegun;
  }

  /** Skips the tasks that can no longer be started. */
  #skipUnstartable(reason: string): void {
    if (this.#hasGivenUp) return;
    this.#hasGivenUp = true;
    for (const { node, instances } of this.#table.slots) {
      const isOut = this.#drive.closed !== null && isStreaming(node.manifest);
      if (!(isOut || this.#drive.needsStart(node.id)) || this.#drive.starts(node.id) > 0) continue;
      for (const instance of instances) {
        if (instance.state === "pending" && instance.tryNumber === 0)
          this.#moves.end(instance, "skipped", { at: this.#moves.now, reason });
      }
    }
  }

  #isBatchDone(): boolean {
    if (this.isPending || this.#table.counts.retrying > 0) return false;
    const batch = this.#table.slots.filter(({ node }) => !isStreaming(node.manifest));
    return (
      batch.length > 0 && batch.every(({ instances }) => instances.every(({ state }) => isFinished(state)))
    );
  }

  #start(slot: Slot, cause: Cause | null, atMost?: number): void {
    this.#drive.addStart(slot.node.id, atMost, cause);
    if (slot.instances.some(({ state }) => isFinished(state))) this.#again.add(slot);
    this.#reevaluate(slot);
  }

  #restart(
    slot: Slot,
    instance: Instance,
    { by, reason }: { readonly by: readonly number[]; readonly reason: string },
  ): void {
    const { node, state, tryNumber } = instance;
    const isNew = isFinished(state) || (state === "pending" && tryNumber === 0);
    if (isNew) {
      this.#start(slot, by.length > 0 ? { restart: by } : null);
      return;
    }
    // A manual restart keeps the original cause.
    if (by.length > 0) this.#drive.restarted(node.id, by);
    switch (state) {
      case "restarting":
        // Restarting already. A pending stop is replaced by the restart.
        this.#drive.setStopping(node.id, null);
        return;
      case "queued":
      case "running":
        this.#drive.setStopping(node.id, null);
        instance.reason = `restarted by ${reason}`;
        this.#table.move(instance, "restarting");
        this.#cancel(instance, `restarted by ${reason}`, false);
        return;
      case "scheduled":
        // It has not started and will start anyway.
        if (instance.resumedAttempt === null && instance.tryNumber === 1) return;
        this.#beginAgain(instance);
        return;
      case "deferred":
      case "up_for_retry":
      case "up_for_reschedule":
        this.#beginAgain(instance);
    }
  }

  #beginAgain(instance: Instance): void {
    this.#leaveSlots(instance);
    this.#moves.restart(instance);
  }

  #stop(slot: Slot, reason: string): void {
    this.#drive.forgetStarts(slot.node.id);
    this.#hasGivenUp = false;
    for (const instance of slot.instances) {
      const { state, tryNumber } = instance;
      if (isFinished(state) || (state === "pending" && tryNumber === 0)) continue;
      if (state === "queued" || state === "running" || state === "restarting") {
        this.#drive.setStopping(slot.node.id, reason);
        this.#cancel(instance, STOPPED_BY + reason, state !== "restarting");
      } else {
        this.#leaveSlots(instance);
        this.#endStopped(instance, reason, this.#moves.now);
      }
    }
  }

  #endStopped(instance: Instance, reason: string, at: number): void {
    // A task that waits for its upstream with a start may never have started.
    const isWaiting = instance.state === "pending" && this.#drive.needsStart(instance.node.id);
    const state = isStreaming(instance.node.manifest) && !isWaiting ? "success" : "skipped";
    this.#moves.end(instance, state, { at, reason: STOPPED_BY + reason });
    if (state === "success") this.recordSuccess(instance);
    this.recordFinished(instance);
  }

  #cancel({ attempt, node }: Instance, reason: string, isFinal: boolean): void {
    const graceMs = node.manifest.graceMs ?? GRACE_MS;
    if (attempt !== null) this.#cancels.push({ attempt, reason, graceMs, isFinal });
  }

  #leaveSlots(instance: Instance): void {
    if (isOccupying(instance)) this.#released.push(instance);
  }

  /** Whether no task and no group waits for its end. */
  #isLast({ node }: Slot): boolean {
    return node.downstream.length === 0 && this.#table.groups === null;
  }

  /** A task that waits for a start was allowed to run by its upstream, which may have changed since. */
  #reevaluate(slot: Slot): void {
    for (const instance of slot.instances) if (instance.gate === "signal") this.#table.releaseGate(instance);
    this.#table.reconsider(slot);
  }

  /** A finished task and the downstream tasks that start again with it, except tasks that need starts of their own. */
  #reach(from: Slot): { readonly finished: Slot[]; readonly underWay: Slot[] } {
    const finished = [from];
    const underWay: Slot[] = [];
    const seen = new Set([from]);
    for (let next = 0; next < finished.length; next++) {
      for (const index of finished[next]!.node.downstream) {
        const slot = this.#table.slots[index]!;
        if (seen.has(slot) || this.#drive.needsStart(slot.node.id)) continue;
        seen.add(slot);
        if (slot.instances.every(({ state }) => isFinished(state))) finished.push(slot);
        else if (slot.instances.some(({ state }) => state !== "pending")) underWay.push(slot);
      }
    }
    return { finished, underWay };
  }

  /** An active task uses earlier outputs of its upstream: it runs once more afterwards, for the new outputs. */
  #repeatLater(slot: Slot): void {
    for (const instance of slot.instances) {
      if (instance.state === "scheduled" && instance.resumedAttempt === null)
        this.#moves.unschedule(instance);
      else if (instance.state !== "pending" && instance.state !== "restarting")
        this.#drive.addStart(slot.node.id, 1);
    }
  }
}

/** Whether the only change that is not stored is the end of the stored attempt. */
function isJustEnded({ attempt, committed, committedAttempt }: Instance): boolean {
  return (
    attempt !== null && attempt === committedAttempt && (committed === "queued" || committed === "running")
  );
}

function closedBy(reason: string): string {
  return `the run was closed by ${reason}`;
}

/** Tasks have no versions. */
function versionsOf(by: readonly LeafState[]): number[] {
  return [...new Set(by.flatMap(({ version }) => version ?? []))];
}
