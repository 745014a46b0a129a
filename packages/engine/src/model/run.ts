/**
 * The decisions of one run, in memory: given what happened, what is next? The owner of a run loads it, feeds it
 * events, takes what became ready and what changed, and stores the changes in one transaction.
 *
 * Nothing here survives the process, and nothing needs to: `load` of the stored rows plus `start` arrives at the same
 * decisions. An event costs its direct downstream, plus the same for every further instance it makes end; never the
 * size of the run. What one event causes is settled in topological order, so that each task is judged once, when all
 * that the event did to its upstream is known: a failure and a skip that reach it together count as a failure.
 */
import type { Graph, TaskNode } from "./graph.ts";
import type { Change, Expansion, Instance, InstanceRow, Wait } from "./instance.ts";
import { isHeld, newInstance } from "./instance.ts";
import { InstanceTable, type Slot } from "./instance-table.ts";
import { Moments } from "./moments.ts";
import type { RunEvent } from "./run-event.ts";
import { type RunVerdict, runVerdict } from "./run-verdict.ts";
import { isFinished, type TaskState } from "./states.ts";
import type { Tally } from "./tally.ts";
import { type Counters, judge, type Verdict } from "./trigger-rules.ts";

/** What an ended run turns into the state it was ended with; the rest of the unfinished is skipped. */
const UNDER_WAY: ReadonlySet<TaskState> = new Set(["running", "restarting", "deferred", "up_for_reschedule"]);

const NOT_LET_THROUGH: ReadonlySet<TaskState> = new Set(["none"]);
const UNSTARTED: ReadonlySet<TaskState> = new Set(["none", "scheduled"]);

type Report = Exclude<Extract<RunEvent, { attempt: string }>, { type: "queued" | "startedWaiting" }>;

export class RunModel {
  readonly graph: Graph;
  /** How many instances were looked at so far: the measure of work. */
  looks = 0;

  readonly #table: InstanceTable;
  readonly #skips: ReadonlyMap<string, readonly string[]>;
  readonly #moments = new Moments();
  #now = 0;
  readonly #ready = new Set<Instance>();
  readonly #gated: Instance[] = [];
  readonly #expandable: Slot[] = [];
  readonly #expansions: Expansion[] = [];

  /**
   * Tasks without a row get a new instance (a change from null); rows without a task are left alone. `skips`: which
   * tasks each finished branch ruled out, so that such a task is skipped again when it alone was cleared.
   */
  static load(
    graph: Graph,
    rows: readonly InstanceRow[],
    skips: ReadonlyMap<string, readonly string[]> = new Map(),
  ): RunModel {
    return new RunModel(graph, new InstanceTable(graph, rows), skips);
  }

  private constructor(graph: Graph, table: InstanceTable, skips: ReadonlyMap<string, readonly string[]>) {
    this.graph = graph;
    this.#table = table;
    this.#skips = skips;
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

  /** How the direct upstream of an instance stands: what its rule is judged by. */
  upstreamOf(instance: Instance): Readonly<Counters> {
    return this.#table.countersOf(instance);
  }

  /** Once after `load`: decides everything that the stored states already allow. */
  start(now: number): void {
    this.#now = now;
    for (const [branch, ruledOut] of this.#skips) {
      const hasSucceeded = this.#table.slotOf(branch)?.instances.some(({ state }) => state === "success");
      // Only what has not been let through: a task that was under way when the branch spoke goes on after a lost attempt.
      if (hasSucceeded) this.#ruleOut(branch, ruledOut, NOT_LET_THROUGH);
    }
    for (const slot of this.#table.slots) {
      for (const instance of slot.instances) {
        if (instance.state === "scheduled") this.#ready.add(instance);
        if (instance.state === "up_for_retry" || instance.state === "up_for_reschedule")
          this.#sleep(instance);
        if (instance.state === "deferred") this.#moments.note(instance);
      }
      this.#table.reconsider(slot);
    }
    this.#settle();
  }

  /** False: ignored, because the instance is unknown, the attempt is not its current one, or its state forbids it. */
  apply(event: RunEvent, now: number): boolean {
    this.#now = now;
    const isApplied = this.#dispatch(event);
    if (isApplied) this.#settle();
    return isApplied;
  }

  /** Became `scheduled` since the last call; the try number already is that of the coming try. */
  takeReady(): Instance[] {
    const ready = [...this.#ready].filter(({ state }) => state === "scheduled");
    this.#ready.clear();
    return ready;
  }

  /** Held for the past of the DAG since the last call; each waits for `gateOpened`. */
  takeGated(): Instance[] {
    return this.#gated.splice(0).filter(({ gate }) => gate === "waiting");
  }

  /** Mapped tasks that may run once it is known over how many items; each waits for `expanded`. */
  takeExpandable(): TaskNode[] {
    const slots = this.#expandable.splice(0).filter(({ instances }) => instances[0]?.gate === "expanding");
    return slots.map(({ node }) => node);
  }

  /** Expansions since the last call; to be stored before the changes. */
  takeExpansions(): Expansion[] {
    return this.#expansions.splice(0);
  }

  /** The net change of each instance since the last call, which counts as committed from now on. */
  takeChanges(): Change[] {
    return this.#table.takeChanges();
  }

  /** The transaction with these changes did not happen: the next `takeChanges` has them again. */
  giveBack(changes: readonly Change[]): void {
    this.#table.giveBack(changes);
  }

  verdict(): RunVerdict {
    return runVerdict(this.counts);
  }

  /** When the next retry or reschedule is due; null: none waits. */
  nextRetryAt(): number | null {
    return this.#moments.nextRetryAt();
  }

  /** Applies `retryDue` to all that are due; returns to how many. */
  fireRetries(now: number): number {
    let fired = 0;
    for (let due = this.#moments.takeRetry(now); due; due = this.#moments.takeRetry(now)) {
      const { node, mapIndex } = due;
      if (this.apply({ type: "retryDue", taskId: node.id, mapIndex }, now)) fired++;
    }
    return fired;
  }

  /** When the next wait runs out of time; null: none does. */
  nextDeadline(): number | null {
    return this.#moments.nextDeadline();
  }

  /** Deferred instances that are out of time. What becomes of them is for the owner to say, in this very turn. */
  takeOverdue(now: number): Instance[] {
    return this.#moments.takeOverdue(now);
  }

  #dispatch(event: RunEvent): boolean {
    if (event.type === "halted") return this.#halt(event);
    if (event.type === "expanded") return this.#expand(event.taskId, event.length);
    const instance = this.get(event.taskId, event.mapIndex);
    if (!instance) return false;
    switch (event.type) {
      case "queued":
        if (instance.state !== "scheduled") return false;
        instance.attempt = event.attempt;
        instance.attemptStartedAt = null;
        this.#table.move(instance, "queued");
        return true;
      case "startedWaiting":
        if (instance.state !== "scheduled") return false;
        instance.attempt = event.attempt;
        return this.#defer(instance, event);
      case "gateOpened":
        if (instance.gate !== "waiting") return false;
        this.#table.letGo(instance);
        instance.gate = "open";
        return this.#schedule(instance, "newTry");
      case "retryDue":
        return this.#wakeUp(instance);
      default:
        return instance.attempt === event.attempt && this.#hear(instance, event);
    }
  }

  /** What the current attempt, or the trigger it left behind, reports. */
  #hear(instance: Instance, event: Report): boolean {
    const { state } = instance;
    const isOut = state === "queued" || state === "running";
    if (state === "restarting") return event.type !== "started" && this.#beginAgain(instance);
    switch (event.type) {
      case "started":
        if (state !== "queued") return false;
        instance.startedAt ??= event.at;
        instance.attemptStartedAt = event.at;
        this.#table.move(instance, "running");
        return true;
      case "unqueued":
        return state === "queued" && this.#schedule(instance, "sameTry");
      case "deferred":
        return isOut && this.#defer(instance, event);
      case "resumed":
        if (state !== "deferred") return false;
        instance.step = instance.attempt;
        return this.#schedule(instance, "sameTry");
      case "rescheduled":
        if (!isOut) return false;
        instance.startedAt ??= event.at;
        instance.step = null;
        instance.retryAt = event.retryAt;
        this.#table.move(instance, "up_for_reschedule");
        this.#sleep(instance);
        return true;
      case "lost":
        if (!isOut) return false;
        this.#lose(instance, event);
        return true;
    }
    if (!isOut && state !== "deferred") return false;
    instance.startedAt ??= event.at;
    switch (event.type) {
      case "failed":
        this.#fail(instance, event);
        return true;
      case "skipped":
        this.#end(instance, "skipped", event);
        return true;
      case "succeeded":
        this.#end(instance, "success", { at: event.at, reason: null });
        this.#ruleOut(instance.node.id, event.skip, UNSTARTED);
        return true;
    }
  }

  #lose(instance: Instance, event: Extract<RunEvent, { type: "lost" }>): void {
    if (event.budget !== null && ++instance.infraLosses > event.budget) {
      this.#fail(instance, { ...event, retry: true });
      return;
    }
    // A try that has waited goes on from its last wait, and its time goes on, too.
    if (instance.step === null) instance.startedAt = null;
    instance.reason = event.reason;
    this.#schedule(instance, "sameTry");
  }

  #fail(
    instance: Instance,
    event: Pick<Extract<RunEvent, { type: "failed" }>, "at" | "retry" | "retryAt" | "reason">,
  ): void {
    const isRetried = event.retry && instance.tryNumber <= instance.maxTries;
    this.#end(instance, isRetried ? "up_for_retry" : "failed", event);
    if (!isRetried) return;
    instance.retryAt = event.retryAt ?? event.at;
    this.#sleep(instance);
  }

  /** A cleared instance whose old attempt has gone starts over, if its rule still lets it. */
  #beginAgain(instance: Instance): boolean {
    instance.attempt = null;
    instance.step = null;
    this.#table.move(instance, "none");
    this.#table.reconsider(this.#table.slots[instance.node.index]!);
    return true;
  }

  #wakeUp(instance: Instance): boolean {
    if (instance.state !== "up_for_retry" && instance.state !== "up_for_reschedule") return false;
    instance.retryAt = null;
    if (instance.state === "up_for_reschedule") this.#schedule(instance, "sameTry");
    else if (this.#verdictOn(instance) === "run") this.#schedule(instance, "newTry");
    // Its upstream was cleared while it waited: it waits for them, like any task that has not started.
    else this.#beginAgain(instance);
    return true;
  }

  #ruleOut(branch: string, taskIds: readonly string[], from: ReadonlySet<TaskState>): void {
    for (const taskId of taskIds) {
      for (const instance of this.#table.slotOf(taskId)?.instances ?? []) {
        if (!from.has(instance.state)) continue;
        this.#end(instance, "skipped", { at: this.#now, reason: `ruled out by ${branch}` });
      }
    }
  }

  #halt(event: Extract<RunEvent, { type: "halted" }>): boolean {
    let hasEnded = false;
    for (const { node, instances } of this.#table.slots) {
      if (node.manifest.role === "teardown") continue;
      for (const instance of instances) {
        if (isFinished(instance.state)) continue;
        this.#end(instance, UNDER_WAY.has(instance.state) ? event.active : "skipped", event);
        hasEnded = true;
      }
    }
    return hasEnded;
  }

  /** Index -1 becomes 0 to length - 1; nothing to run over: skipped. */
  #expand(taskId: string, length: number): boolean {
    const slot = this.#table.slotOf(taskId);
    const unexpanded = slot?.instances[0];
    if (!slot || unexpanded?.gate !== "expanding") return false;
    if (length === 0) {
      this.#end(unexpanded, "skipped", { at: this.#now, reason: "mapped over nothing" });
      return true;
    }
    this.#table.dropUnexpanded(slot);
    this.#table.add(
      slot,
      Array.from({ length }, (_, index) => newInstance(slot.node, index)),
    );
    this.#expansions.push({ node: slot.node, length });
    this.#table.reconsider(slot);
    return true;
  }

  /** Judges what is on the agenda in topological order: whatever ends by it adds only later ones. */
  #settle(): void {
    for (let slot = this.#table.nextOnAgenda(); slot; slot = this.#table.nextOnAgenda()) {
      for (const instance of slot.instances) {
        if (slot.idle === 0) break;
        this.looks++;
        if (instance.state === "none" && !isHeld(instance)) this.#decide(instance, slot);
      }
    }
  }

  #decide(instance: Instance, slot: Slot): void {
    const verdict = this.#verdictOn(instance);
    const { manifest, gated } = instance.node;
    if (verdict === "wait") return;
    if (verdict !== "run") {
      this.#end(instance, verdict, { at: this.#now, reason: `trigger rule ${manifest.rule}` });
    } else if (manifest.map && instance.mapIndex < 0) {
      this.#table.hold(instance, "expanding");
      this.#expandable.push(slot);
    } else if (gated && instance.gate !== "open") {
      this.#table.hold(instance, "waiting");
      this.#gated.push(instance);
    } else {
      this.#schedule(instance, "newTry");
    }
  }

  #verdictOn(instance: Instance): Verdict {
    return judge(instance.node.manifest.rule, this.#table.countersOf(instance), instance.mapIndex);
  }

  #schedule(instance: Instance, as: "newTry" | "sameTry"): true {
    instance.attempt = null;
    instance.wait = null;
    if (as === "newTry") {
      instance.tryNumber++;
      instance.step = null;
      instance.infraLosses = 0;
      instance.startedAt = null;
      instance.endedAt = null;
      instance.reason = null;
    }
    this.#table.move(instance, "scheduled");
    this.#ready.add(instance);
    return true;
  }

  #end(
    instance: Instance,
    state: TaskState,
    by: { readonly at: number; readonly reason: string | null },
  ): void {
    instance.retryAt = null;
    instance.wait = null;
    instance.endedAt = by.at;
    instance.reason = by.reason;
    this.#table.move(instance, state);
  }

  #defer(instance: Instance, event: { readonly at: number; readonly wait: Wait }): true {
    instance.startedAt ??= event.at;
    instance.wait = event.wait;
    instance.reason = null;
    this.#table.move(instance, "deferred");
    this.#moments.note(instance);
    return true;
  }

  #sleep(instance: Instance): void {
    instance.retryAt ??= this.#now;
    this.#moments.note(instance);
  }
}
