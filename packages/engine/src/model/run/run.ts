/**
 * The decisions of one run, in memory: given an event, what is next? The owner of a run loads it, applies events, takes
 * ready tasks and changes, and stores the changes in one transaction.
 *
 * No state here has to survive the process: `load` of the stored rows plus `start` gives the same decisions. An event costs
 * its direct downstream, plus the same for every further instance that it ends; never the size of the run. The effects of
 * one event are settled in topological order, so that each task is evaluated once, when all effects on its upstream are
 * known: a failure and a skip that reach it together count as a failure.
 */
import { Branches, type BranchVerdict } from "../graph/branches.ts";
import type { Graph } from "../graph/graph.ts";
import type { GroupChange, GroupRow, Groups } from "../graph/groups.ts";
import type { Counters } from "../graph/trigger-rules.ts";
import type { ExpansionRow, Expansions, ScopePlace } from "../map/expansions.ts";
import { type MapChanges, Mapping } from "../map/mapping.ts";
import type { Drive, ImmediateEffect } from "../signal/drive.ts";
import { type Cancel, Commands } from "./commands.ts";
import { Evaluation } from "./evaluation.ts";
import type { Change, Instance, InstanceRow } from "./instance.ts";
import type { InstanceTable } from "./instance-table.ts";
import { loadTable } from "./loading.ts";
import { Moves } from "./moves.ts";
import type { RunEvent } from "./run-event.ts";
import { failedAndAfter } from "./run-retry.ts";
import { type RunVerdict, runVerdict } from "./run-verdict.ts";
import { isFinished, OCCUPYING, type TaskState } from "./states.ts";
import type { Tally } from "./tally.ts";

type AttemptEvent = Exclude<Extract<RunEvent, { attempt: string }>, { type: "queued" | "startedWaiting" }>;

/** The stored state of a run other than its instances. */
export interface RunJournal {
  readonly skips?: readonly BranchVerdict[];
  /** The lengths of the lists of its maps. */
  readonly expansions?: readonly ExpansionRow[];
  /** Left out: only the order of its tasks drives it. */
  readonly drive?: Drive | null;
  /** Groups with retries, callbacks or notices. */
  readonly groups?: readonly GroupRow[];
}

/** Changes that are stored with the changes of instances. */
interface OtherChanges {
  readonly maps?: MapChanges | null;
  readonly groups?: readonly GroupChange[] | null;
  readonly effects?: readonly ImmediateEffect[];
}

export class RunModel {
  readonly graph: Graph;
  readonly drive: Drive | null;

  readonly #table: InstanceTable;
  readonly #moves: Moves;
  readonly #commands: Commands | null;
  /** null: the DAG has no maps. */
  readonly #mapping: Mapping | null;
  readonly #branches: Branches;
  readonly #evaluation: Evaluation;

  /** Tasks without a row get a new instance (a change from null); rows without a task are ignored. */
  static load(graph: Graph, rows: readonly InstanceRow[], journal: RunJournal = {}): RunModel {
    const table = loadTable(graph, rows, journal.expansions ?? []);
    table.groups?.restore(journal.groups ?? []);
    return new RunModel(graph, table, journal);
  }

  private constructor(graph: Graph, table: InstanceTable, { drive = null, skips = [] }: RunJournal) {
    this.graph = graph;
    this.drive = drive;
    this.#table = table;
    this.#moves = new Moves(table);
    this.#commands = drive && new Commands(table, this.#moves, drive);
    const end = (instance: Instance, state: TaskState, reason: string) => this.#end(instance, state, reason);
    this.#mapping = graph.scopes.length > 0 ? new Mapping(table, end) : null;
    this.#branches = new Branches(table, skips, (instance, reason) => end(instance, "skipped", reason));
    const [moves, branches, mapping, orders] = [this.#moves, this.#branches, this.#mapping, this.#commands];
    this.#evaluation = new Evaluation({ table, moves, branches, mapping, commands: orders, end });
  }

  /** The number of evaluated instances so far: the measure of work. */
  get evaluations(): number {
    return this.#evaluation.evaluations;
  }

  get counts(): Readonly<Tally> {
    return this.#table.counts;
  }

  get(taskId: string, mapIndex = -1): Instance | undefined {
    return this.#table.get(taskId, mapIndex);
  }

  *instances(): Iterable<Instance> {
    for (const slot of this.#table.slots) yield* slot.instances;
  }

  /** The states of the direct upstream of an instance, which its rule is evaluated against. */
  upstreamOf(instance: Instance): Readonly<Counters> {
    return this.#table.countersOf(instance);
  }

  /** Call once after `load`: makes all decisions that the stored states allow. */
  start(now: number): void {
    this.#moves.now = now;
    this.#branches.repeat();
    this.#mapping?.start();
    this.#table.groups?.start();
    for (const slot of this.#table.slots) {
      for (const instance of slot.instances) this.#resume(instance);
      this.#commands?.recordLoaded(slot);
      this.#table.reconsider(slot);
    }
    this.#evaluation.evaluate();
  }

  /** False: ignored, because the instance is unknown, the attempt is not its current one, or its state forbids it. */
  apply(event: RunEvent, now: number): boolean {
    this.#moves.now = now;
    const isApplied = this.#dispatch(event);
    if (isApplied) this.#evaluation.evaluate();
    return isApplied;
  }

  /** Instances that became `scheduled` since the last call. Their try number is already that of the coming try. */
  drainReady(): Instance[] {
    return this.#moves.drainReady();
  }

  /** Instances held for earlier runs of the DAG since the last call; each waits for `gateOpened`. */
  drainGated(): Instance[] {
    return this.#evaluation.drainGated().filter(({ gate }) => gate === "waiting");
  }

  /** Maps that need the length of their list; each waits for `expanded` or `unmappable`. */
  drainExpandable(): ScopePlace[] {
    return this.#mapping?.drainExpandable() ?? [];
  }

  /** The changes of maps, to be stored before the other changes; null: none. */
  drainMapChanges(): MapChanges | null {
    return this.#mapping?.drainChanges() ?? null;
  }

  /** New instances of labelled maps, to be named with `label` before they are stored. */
  drainUnlabelled(): Instance[] {
    return this.#mapping?.drainUnlabelled() ?? [];
  }

  label(instance: Instance, label: string): void {
    this.#mapping?.label(instance, label);
  }

  /** Whether items of a map lack instances: `make` creates them. */
  get isGrowing(): boolean {
    return this.#mapping?.isGrowing === true;
  }

  /** Creates about `most` instances of expanded maps. Returns their number: 0 if none is left or there is no room. */
  make(most: number, now: number): number {
    this.#moves.now = now;
    const made = this.#mapping?.make(most) ?? 0;
    if (made === 0) return 0;
    this.#branches.repeat();
    this.#evaluation.evaluate();
    return made;
  }

  get expansions(): Expansions {
    return this.#table.expansions;
  }

  /** The net changes of instances since the last call. They count as committed from now on. */
  drainChanges(): Change[] {
    return this.#table.drainChanges();
  }

  /** The transaction with these changes failed: the next `takeChanges` returns them again. */
  restoreChanges(changes: readonly Change[], others: OtherChanges = {}): void {
    this.#table.restoreChanges(changes);
    if (others.maps) this.#mapping?.restoreChanges(others.maps);
    if (others.groups) this.#table.groups?.restoreChanges(others.groups);
    this.drive?.restoreChanges(others.effects);
  }

  /** Groups with retries, callbacks or notices; null: none. */
  get groups(): Groups | null {
    return this.#table.groups;
  }

  /** Starts finished instances again: of a group's next try, or of a failed run. `archive` receives each previous state. */
  repeat(instances: readonly Instance[], now: number, archive: (instance: Instance) => void): boolean {
    if (instances.length === 0) return false;
    this.#moves.now = now;
    for (const instance of instances) this.#moves.beginAgain(instance, archive);
    this.#branches.repeat();
    this.#evaluation.evaluate();
    return true;
  }

  verdict(): RunVerdict {
    const isOpen = this.drive?.isOpen === true || this.#commands?.isPending === true;
    return isOpen ? { state: "running" } : runVerdict(this.counts);
  }

  /** The instances that run again in the next try of a failed run. */
  retried(from: "failure" | "start"): Instance[] {
    return from === "start" ? [...this.instances()] : failedAndAfter(this.#table, this.graph);
  }

  /** Finished tasks with a waiting start begin again, unless their end has to be stored first (commands.ts). */
  beginAgain(now: number, archive: (instance: Instance) => void): boolean {
    this.#moves.now = now;
    const hasBegun = this.#commands?.beginAgain(archive) === true;
    if (hasBegun) this.#evaluation.evaluate();
    return hasBegun;
  }

  /** Whether a finished task starts again in the next turn, because its end has to be stored first. */
  get isPending(): boolean {
    return this.#commands?.isPending === true;
  }

  /** Attempts to be stopped, since the last call. The owner stops them once the changes are stored. */
  drainCancels(): Cancel[] {
    return this.#commands?.drainCancels() ?? [];
  }

  /** Waiting instances that released their pool slots since the last call. */
  drainReleased(): Instance[] {
    return this.#commands?.drainReleased() ?? [];
  }

  /** Why the current attempt of a task has to stop; null: it does not. */
  stopping(instance: Instance): string | null {
    return this.drive?.stopping(instance.node.id) ?? null;
  }

  /** When the next retry of a task or group, reschedule or tick is due; null: none. */
  nextRetryAt(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const [tick, group] = [this.drive?.nextTickAt() ?? never, this.#table.groups?.nextAt() ?? never];
    const next = Math.min(this.#moves.moments.nextRetryAt() ?? never, tick, group);
    return next === never ? null : next;
  }

  /** Applies `retryDue` to all due instances and starts tasks whose tick is due. Returns their number. */
  fireRetries(now: number): number {
    let fired = 0;
    const { moments } = this.#moves;
    for (let due = moments.nextRetry(now); due; due = moments.nextRetry(now)) {
      const { node, mapIndex } = due;
      if (this.apply({ type: "retryDue", taskId: node.id, mapIndex }, now)) fired++;
    }
    for (const taskId of this.drive?.consumeTicks(now) ?? []) {
      this.apply({ type: "ordered", taskId, action: "start", reason: "its time", atMost: 1 }, now);
      fired++;
    }
    return fired;
  }

  /** When the next wait times out; null: none does. */
  nextDeadline(): number | null {
    return this.#moves.moments.nextDeadline();
  }

  /** Deferred instances whose wait has timed out. The owner has to decide their result in the same turn. */
  nextOverdue(now: number): Instance[] {
    return this.#moves.moments.nextOverdue(now);
  }

  /** Continues a loaded instance from its stored state. */
  #resume(instance: Instance): void {
    const { state } = instance;
    if (state === "scheduled") this.#moves.isReady(instance);
    if (state === "up_for_retry" || state === "up_for_reschedule") this.#moves.sleep(instance);
    if (state === "deferred") this.#moves.moments.add(instance);
  }

  #dispatch(event: RunEvent): boolean {
    if (event.type === "halted") return this.#halt(event);
    if (event.type === "expanded" || event.type === "unmappable")
      return this.#mapping?.answer(event) === true;
    if (event.type === "heard") return this.#commands?.receive(event.heard) === true;
    if (event.type === "ordered") return this.#commands?.carryOut(event) === true;
    if (event.type === "closed") return this.#commands?.close(event.reason) === true;
    const instance = this.get(event.taskId, event.mapIndex);
    if (!instance) return false;
    switch (event.type) {
      case "queued":
        return instance.state === "scheduled" && this.#moves.queue(instance, event.attempt);
      case "startedWaiting":
        if (instance.state !== "scheduled") return false;
        instance.attempt = event.attempt;
        return this.#moves.defer(instance, event);
      case "gateOpened":
        if (instance.gate !== "waiting") return false;
        this.#table.releaseGate(instance);
        instance.gate = "open";
        // Its upstream may have started again in the meantime.
        this.#table.reconsiderOne(instance);
        return true;
      case "retryDue":
        return this.#wakeUp(instance);
      default:
        return instance.attempt === event.attempt && this.#applyToAttempt(instance, event);
    }
  }

  /** An event of the current attempt, or of the wait that it left behind. */
  #applyToAttempt(instance: Instance, event: AttemptEvent): boolean {
    const { state } = instance;
    const isOut = state === "queued" || state === "running";
    const isStopping = this.stopping(instance) !== null;
    if (event.type === "stopped")
      return isStopping && OCCUPYING.has(state) && this.#commands!.stopped(instance, event.at);
    if (event.type === "restarted")
      return !isStopping && state === "restarting" && this.#moves.restart(instance);
    // Only its success, or `stopped`, ends an attempt that was asked to stop.
    if (isStopping && event.type !== "started" && event.type !== "succeeded") return false;
    switch (event.type) {
      case "started":
        return state === "queued" && this.#moves.run(instance, event.at);
      case "unqueued":
        return state === "queued" && this.#moves.schedule(instance, "sameTry");
      case "deferred":
        return isOut && this.#moves.defer(instance, event);
      case "resumed":
        if (state !== "deferred") return false;
        instance.resumedAttempt = instance.attempt;
        return this.#moves.schedule(instance, "sameTry");
      case "rescheduled":
        return isOut && this.#moves.reschedule(instance, event);
      case "lost":
        if (!isOut) return false;
        this.#moves.lose(instance, event);
        this.#recordEnd(instance);
        return true;
    }
    if (!isOut && state !== "deferred") return false;
    instance.startedAt ??= event.at;
    switch (event.type) {
      case "failed":
        this.#moves.fail(instance, event);
        break;
      case "skipped":
        this.#moves.end(instance, "skipped", event);
        break;
      case "succeeded":
        this.#moves.end(instance, "success", { at: event.at, reason: null });
        this.#branches.spoke(instance, event.skip);
        this.#commands?.recordSuccess(instance);
        break;
    }
    this.#recordEnd(instance);
    return true;
  }

  #recordEnd(instance: Instance): void {
    if (isFinished(instance.state)) this.#commands?.recordFinished(instance);
  }

  #wakeUp(instance: Instance): boolean {
    if (instance.state !== "up_for_retry" && instance.state !== "up_for_reschedule") return false;
    instance.retryAt = null;
    if (instance.state === "up_for_reschedule") return this.#moves.schedule(instance, "sameTry");
    if (this.#table.verdictOn(instance) === "run") return this.#moves.schedule(instance, "newTry");
    // Its upstream was cleared or starts again: it waits like a new task, and consumes a start added for its upstream.
    if (this.drive?.needsStart(instance.node.id) === false) this.drive.consumeStart(instance.node.id);
    return this.#moves.reset(instance);
  }

  #end(instance: Instance, state: TaskState, reason: string): void {
    this.#moves.end(instance, state, { at: this.#moves.now, reason });
    this.#recordEnd(instance);
  }

  #halt(event: Extract<RunEvent, { type: "halted" }>): boolean {
    let hasEnded = this.counts.retrying > 0 || this.isGrowing;
    this.#table.groups?.halt();
    this.drive?.close(event.reason);
    this.#mapping?.stopMaking();
    for (const slot of this.#table.slots) {
      const { node, instances } = slot;
      const isTeardown = node.manifest.role === "teardown";
      // It may run now: it may have waited for instances that will not be created.
      if (isTeardown) this.#table.reconsider(slot);
      for (const instance of instances) {
        if (isTeardown || isFinished(instance.state)) continue;
        if (instance.state === "pending") this.#commands?.endStart(instance);
        this.#moves.halt(instance, event);
        hasEnded = true;
      }
      if (!isTeardown) this.drive?.forgetStarts(node.id);
    }
    return hasEnded;
  }
}
