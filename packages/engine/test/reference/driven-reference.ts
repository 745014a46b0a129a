/**
 * Reference of a signal-driven run: the slowest and simplest implementation of docs/guides/signals.md, "What a rule does"
 * and "When a run ends". After every event it evaluates every task again. It shares no code with the engine, which must
 * agree with it after every event.
 */
import type { DagManifest, TaskManifest } from "@tradewind/sdk/manifest";
import {
  type Action,
  type DrivenEvent,
  type DrivenState,
  type DrivenTask,
  isEnded,
  NO_CAUSE,
} from "./driven-event.ts";
import { type Fact, fires, type Listening, listeningOf } from "./driven-listening.ts";
import { judgeByRule, type ReferenceState } from "./reference-rules.ts";

type OfTask = Extract<DrivenEvent, { of: string }> & {
  readonly what: Exclude<DrivenEvent["what"], "order" | "tick">;
};
type Moment = "queue" | "start" | "wake" | "resume";
export class DrivenReference {
  readonly #manifest: DagManifest;
  readonly #tasks: readonly TaskManifest[];
  readonly #seen: Map<string, DrivenTask>;
  readonly #rules: Listening[];
  #isClosed = false;
  /** Set when a user ended the run before its tasks had ended. */
  #endedAs: "success" | "failed" | null = null;
  #news: string[] = [];

  constructor(manifest: DagManifest, from?: DrivenReference) {
    this.#manifest = manifest;
    this.#tasks = upstreamFirst(manifest.tasks);
    const fresh = (task: TaskManifest): DrivenTask => ({
      id: task.taskId,
      state: "pending",
      tries: 0,
      limit: task.retries,
      losses: 0,
      isHalfway: false,
      starts: [],
      cause: NO_CAUSE,
      isStopping: false,
      isImplied: false,
      isStored: false,
      isAttemptStored: false,
    });
    this.#seen = new Map(
      this.#tasks.map((task) => [task.taskId, { ...(from?.task(task.taskId) ?? fresh(task)) }]),
    );
    this.#rules = from
      ? from.#rules.map((each) => ({ ...each, received: [...each.received] }))
      : listeningOf(manifest);
    this.#isClosed = from ? from.#isClosed : false;
    this.#endedAs = from ? from.#endedAs : null;
    if (!from) this.#evaluateAll();
  }

  copy(): DrivenReference {
    return new DrivenReference(this.#manifest, this);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  tasks(): DrivenTask[] {
    return [...this.#seen.values()];
  }

  task(id: string): DrivenTask {
    return this.#seen.get(id)!;
  }

  /** A finished task will begin again. */
  get isPending(): boolean {
    return this.tasks().some(({ starts, state }) => starts.length > 0 && isEnded(state));
  }

  happen(event: DrivenEvent): void {
    this.#apply(event);
    if (this.#endedAs === null) this.#evaluateAll();
  }

  end(): "running" | "success" | "failed" {
    if (this.#endedAs !== null) return this.#endedAs;
    if (this.#isOpen() || this.isPending) return "running";
    if (this.tasks().some(({ state }) => !isEnded(state))) return "running";
    const failed = this.tasks().some(({ id, state }) => this.#isLast(id) && isBad(state));
    return failed ? "failed" : "success";
  }

  /** Whether the task must run as soon as its trigger rule allows, without a start. */
  isDemanded(id: string): boolean {
    return !this.#needsStart(id) && !(this.#isClosed && this.#isStreaming(id));
  }

  /** A rule or a time may still start a task. */
  #isOpen(): boolean {
    if (this.#isClosed) return false;
    return (
      this.#rules.some(({ isArmed, rule }) => isArmed && rule.action !== "stop") ||
      this.#tasks.some(({ every }) => every)
    );
  }

  #apply(event: DrivenEvent): void {
    switch (event.what) {
      case "signal":
        this.#receive({ signal: event.key, version: event.version });
        return;
      case "order":
        this.#carryOut(event.of, event.action);
        return;
      case "close":
        this.#close();
        return;
      case "tick":
        if (this.task(event.of).starts.length === 0) this.#carryOut(event.of, "start");
        return;
      case "store":
        for (const task of this.tasks()) {
          task.isStored = true;
          task.isAttemptStored = isOut(task.state);
        }
        return;
      case "again":
        for (const { taskId } of this.#tasks) this.#again(taskId);
        return;
      case "edit":
        this.#editTasks(event);
        return;
      case "cancel":
        this.#cancel(event.as);
        return;
      default:
        this.#applyTo(this.task(event.of), event);
    }
  }

  #editTasks({ as, clear, mark }: Extract<DrivenEvent, { what: "edit" }>): void {
    if (this.end() !== "running") this.#reopen();
    for (const id of mark) {
      const task = this.task(id);
      if (task.state === "pending") this.#endStart(task);
      this.#edit(task, as);
    }
    for (const id of clear) this.#clear(this.task(id));
    while (this.#undo()) {}
  }

  /** Starts and rule states were removed at the end of the run; only new signals count. */
  #reopen(): void {
    this.#endedAs = null;
    this.#isClosed = false;
    this.#rules.splice(0, this.#rules.length, ...listeningOf(this.#manifest));
    for (const task of this.tasks()) Object.assign(task, { starts: [], cause: NO_CAUSE, isStopping: false });
  }

  /** true: an end or a scheduled state no longer followed from the rest of the run, and was undone. */
  #undo(): boolean {
    const judged = this.#tasks
      .map(({ taskId }) => this.task(taskId))
      .filter((task) => this.#follows(task))
      .map((task) => ({ task, verdict: this.judge(task.id) }));
    const open = judged.filter(({ task, verdict }) => {
      return task.isImplied && (verdict === "run" || verdict === "wait");
    });
    for (const { task } of open) this.#clear(task);
    if (open.length > 0) return true;
    const other = judged.find(({ task, verdict }) => verdict !== "run" && verdict !== task.state);
    if (!other) return false;
    this.#clear(other.task);
    if (other.verdict !== "wait") this.#imply(other.task, other.verdict as DrivenState);
    return true;
  }

  /** The state follows from the rest of the run. A task that needs a start and never had one is not demanded. */
  #follows({ id, isHalfway, isImplied, state, tries }: DrivenTask): boolean {
    if (tries === 0 && this.#needsStart(id)) return false;
    return isImplied || (state === "scheduled" && !isHalfway);
  }

  #cancel(as: "success" | "failed"): void {
    for (const task of this.tasks().filter(({ state }) => !isEnded(state))) {
      const { state } = task;
      const isUnderWay = ["running", "restarting", "deferred", "up_for_reschedule"].includes(state);
      const hasFailed = state === "up_for_retry" && as === "failed";
      if (state === "pending") this.#endStart(task);
      this.#edit(task, isUnderWay || hasFailed ? as : "skipped");
      // If the user ends the run as success, that also covers the tasks that have not begun.
      task.isImplied = task.state === "skipped" && as === "failed";
    }
    this.#endedAs = as;
  }

  /** The task ends before it has begun: its pending start counts as a try. */
  #endStart(task: DrivenTask): void {
    if (task.tries > 0 || task.starts.length === 0) return;
    this.#consumeStart(task);
    if (this.#needsStart(task.id)) task.tries = 1;
  }

  #clear(task: DrivenTask): void {
    task.limit = task.tries + this.#manifestOf(task.id).retries;
    task.losses = 0;
    this.#edit(task, ["queued", "running", "restarting"].includes(task.state) ? "restarting" : "pending");
  }

  /** An edit replaces a stop in progress. */
  #edit(task: DrivenTask, state: DrivenState): void {
    task.isStopping = false;
    task.isHalfway = false;
    task.isImplied = false;
    task.state = state;
    task.isAttemptStored = isOut(state);
  }

  #applyTo(task: DrivenTask, event: OfTask): void {
    const isMoment =
      event.what === "queue" || event.what === "start" || event.what === "wake" || event.what === "resume";
    if (isMoment) this.#proceed(task, event.what);
    // All other events end the attempt.
    else if (task.isStopping && (event.what !== "succeed" || task.state === "restarting"))
      this.#stopped(task);
    else if (task.state === "restarting") this.#beginAgain(task);
    else this.#end(task, event as Exclude<OfTask, { what: Moment }>);
  }

  #proceed(task: DrivenTask, what: Moment): void {
    if (what === "wake") this.#wake(task);
    else if (what === "queue") this.#move(task, "queued");
    else if (what === "start" && task.state === "queued") this.#move(task, "running");
    else if (what === "resume") {
      task.isHalfway = true;
      this.#move(task, "scheduled");
    }
  }

  #end(task: DrivenTask, event: Exclude<OfTask, { what: Moment }>): void {
    switch (event.what) {
      case "succeed":
        task.isStopping = false;
        this.#news.push(task.id);
        this.#move(task, "success");
        return;
      case "skip":
        this.#move(task, "skipped");
        return;
      case "fail":
        this.#fail(task, event.retry);
        return;
      case "lose":
        if (event.budget !== null && ++task.losses > event.budget) this.#fail(task, true);
        else this.#move(task, "scheduled");
        return;
      case "defer":
        this.#move(task, "deferred");
        return;
      case "reschedule":
        task.isHalfway = false;
        this.#move(task, "up_for_reschedule");
    }
  }

  #fail(task: DrivenTask, retry: boolean): void {
    this.#move(task, retry && task.tries <= task.limit ? "up_for_retry" : "failed");
  }

  #wake(task: DrivenTask): void {
    if (task.state === "up_for_reschedule") this.#move(task, "scheduled");
    else if (this.judge(task.id) === "run") this.#newTry(task);
    else {
      // The task waits for its upstream; its pending repetition was for the same upstream.
      if (!this.#needsStart(task.id)) this.#consumeStart(task);
      task.isHalfway = false;
      this.#move(task, "pending");
    }
  }

  #receive(fact: Fact): void {
    if (this.#isClosed) return;
    const firing = this.#rules.map((each) => ({ ...each, by: fires(each, fact) }));
    for (const { by, rule, taskId } of firing) {
      if (by === null) continue;
      if (taskId === null) this.#close();
      else this.#carryOut(taskId, rule.action, by);
    }
  }

  #carryOut(id: string, action: Action, by: readonly number[] = []): void {
    if (this.#isClosed && action !== "stop") return;
    const task = this.task(id);
    if (action === "stop") this.#stop(task);
    else if (action === "start") task.starts = [...task.starts, { started: by, restarted: [] }];
    else if (!this.#restart(task)) task.starts = [...task.starts, { started: [], restarted: by }];
    else if (by.length > 0) task.cause = { ...task.cause, restarted: by };
  }

  /** Removes the oldest pending start. */
  #consumeStart(task: DrivenTask): void {
    const [cause = NO_CAUSE, ...others] = task.starts;
    task.cause = cause;
    task.starts = others;
  }

  /** true: the restart is done, without another start. */
  #restart(task: DrivenTask): boolean {
    switch (task.state) {
      case "queued":
      case "running":
      case "restarting":
        task.isStopping = false;
        if (task.state !== "restarting") this.#move(task, "restarting");
        return true;
      case "scheduled":
        // A task that has not begun begins anyway.
        if (task.tries > 1 || task.isHalfway) this.#beginAgain(task);
        return true;
      case "deferred":
      case "up_for_retry":
      case "up_for_reschedule":
        this.#beginAgain(task);
        return true;
      case "pending":
        return task.tries > 0;
      default:
        return false;
    }
  }

  #beginAgain(task: DrivenTask): void {
    task.limit = task.tries + this.#manifestOf(task.id).retries;
    task.isHalfway = false;
    this.#move(task, "pending");
  }

  #stop(task: DrivenTask): void {
    task.starts = [];
    if (isEnded(task.state) || (task.state === "pending" && task.tries === 0)) return;
    if (["queued", "running", "restarting"].includes(task.state)) task.isStopping = true;
    else this.#stopped(task);
  }

  #stopped(task: DrivenTask): void {
    task.isStopping = false;
    const isWaiting = task.state === "pending" && this.#needsStart(task.id);
    const isStreaming = this.#isStreaming(task.id) && !isWaiting;
    this.#move(task, isStreaming ? "success" : "skipped");
    if (isStreaming) this.#news.push(task.id);
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const rule of this.#rules) rule.isArmed = false;
    for (const task of this.tasks()) {
      if (this.#isStreaming(task.id)) this.#stop(task);
      // A task that begins after its upstream is still repeated for the upstream's new result.
      task.starts = this.#needsStart(task.id) || this.#isStreaming(task.id) ? [] : task.starts.slice(-1);
    }
    this.#skipUnstartable();
  }

  #again(id: string): void {
    const task = this.task(id);
    if (task.starts.length === 0 || !isEnded(task.state)) return;
    const finished = [task];
    const underWay = new Set<DrivenTask>();
    for (const each of finished) {
      for (const next of this.#tasks.filter(({ upstream }) => upstream.includes(each.id))) {
        const other = this.task(next.taskId);
        if (this.#needsStart(other.id) || finished.includes(other)) continue;
        if (isEnded(other.state)) finished.push(other);
        else underWay.add(other);
      }
    }
    const mayPassEnd = this.#isLast(id);
    if (!finished.every((each) => each.isStored || (mayPassEnd && each.isAttemptStored))) return;
    for (const each of finished) {
      if (each.tries > 0) this.#consumeStart(each);
      this.#beginAgain(each);
    }
    for (const each of underWay) {
      if (each.state === "scheduled" && !each.isHalfway) {
        each.tries--;
        this.#move(each, "pending");
      } else if (each.state !== "pending" && each.state !== "restarting" && each.starts.length === 0)
        each.starts = [NO_CAUSE];
    }
  }

  /** Evaluates upstream before downstream; then the rules of the run. */
  #evaluateAll(): void {
    for (let isSettled = false; !isSettled; ) {
      for (const { taskId } of this.#tasks) this.#evaluate(this.task(taskId));
      const news = this.#news.shift();
      const before = JSON.stringify(this.tasks());
      if (news !== undefined) this.#receive({ task: news });
      else if (!this.#isClosed && this.#manifest.endWhen === "batchDone" && this.#isBatchDone())
        this.#close();
      else if (!this.#isOpen()) this.#skipUnstartable();
      isSettled = news === undefined && JSON.stringify(this.tasks()) === before;
    }
  }

  #evaluate(task: DrivenTask): void {
    if (task.state !== "pending") return;
    const verdict = this.judge(task.id);
    if (verdict === "wait") return;
    const isFirst = task.tries === 0;
    const lacksStart = this.#needsStart(task.id) && isFirst && task.starts.length === 0;
    const isOut = this.#isClosed && (lacksStart || this.#isStreaming(task.id));
    if (verdict === "run" && lacksStart && !isOut) return;
    if (verdict !== "run") {
      this.#endStart(task);
      this.#imply(task, verdict);
    } else if (isOut) this.#imply(task, "skipped");
    else {
      if (isFirst && task.starts.length > 0) this.#consumeStart(task);
      this.#newTry(task);
    }
  }

  #newTry(task: DrivenTask): void {
    task.tries++;
    task.losses = 0;
    task.isHalfway = false;
    this.#move(task, "scheduled");
  }

  /** Skips the tasks that nothing can start any more. */
  #skipUnstartable(): void {
    for (const task of this.tasks()) {
      const isWaiting = this.#needsStart(task.id) || (this.#isClosed && this.#isStreaming(task.id));
      if (isWaiting && task.state === "pending" && task.tries === 0 && task.starts.length === 0)
        this.#imply(task, "skipped");
    }
  }

  #imply(task: DrivenTask, state: DrivenState): void {
    this.#move(task, state);
    task.isImplied = true;
  }

  #isBatchDone(): boolean {
    const batch = this.tasks().filter(({ id }) => !this.#isStreaming(id));
    return batch.length > 0 && !this.isPending && batch.every(({ state }) => isEnded(state));
  }

  #move(task: DrivenTask, state: DrivenState): void {
    task.state = state;
    task.isImplied = false;
    task.isStored = false;
    if (state === "pending" || state === "scheduled") task.isAttemptStored = false;
  }

  #isLast(id: string): boolean {
    return !this.#tasks.some(({ upstream }) => upstream.includes(id));
  }

  /** The verdict of its trigger rule on the states of its upstream. */
  judge(id: string) {
    const { rule, upstream } = this.#manifestOf(id);
    const states = upstream.map((each) => this.task(each).state as ReferenceState);
    return judgeByRule(rule, { states, setups: [] });
  }

  #needsStart(id: string): boolean {
    const { every, rules } = this.#manifestOf(id);
    return every !== undefined || (rules ?? []).some(({ action }) => action === "start");
  }

  #isStreaming(id: string): boolean {
    return this.#manifestOf(id).lifetime === "streaming";
  }

  #manifestOf(id: string): TaskManifest {
    return this.#tasks.find(({ taskId }) => taskId === id)!;
  }
}

function isOut(state: DrivenState): boolean {
  return state === "queued" || state === "running";
}

function isBad(state: DrivenState): boolean {
  return state === "failed" || state === "upstream_failed";
}

function upstreamFirst(tasks: readonly TaskManifest[]): TaskManifest[] {
  const taken: TaskManifest[] = [];
  while (taken.length < tasks.length) {
    const ids = new Set(taken.map(({ taskId }) => taskId));
    taken.push(
      ...tasks.filter(({ taskId, upstream }) => !ids.has(taskId) && upstream.every((id) => ids.has(id))),
    );
  }
  return taken;
}
