/**
 * The inputs of a run other than the order of its tasks: signal rules, ticks, manual start, restart and stop. One per run
 * with any of these; other runs have none and pay nothing.
 *
 * It stores requests that are not carried out yet: waiting starts, attempts to stop, the next tick of each task. Starts are
 * rows of their own, because a burst creates thousands; the rest is small JSON. All of it is stored together with its
 * effects, in the owner's batch: the next owner finds every counted start, and none twice.
 */
import type { DagManifest, Json, TaskManifest } from "@tradewind/sdk/manifest";
import { nextTick } from "../calendar/timetable.ts";
import type { Fact } from "./signal-condition.ts";
import type { ListeningRun } from "./signal-condition-match.ts";
import { type Firing, RuleBook, type RuleReport, type RuleSet, type StoredRule } from "./signal-rules.ts";
import { type Cause, type StartChanges, type StoredStart, WaitingStarts } from "./waiting-starts.ts";

/** A streaming task that ran this long was healthy: its next failure counts as the first. */
export const HEALTHY_MS = 60_000;

/** A failed `onSignal` call that will be retried; later signals of the task wait for its result. */
export interface FailedOnSignal {
  readonly key: string;
  readonly version: number;
  readonly attempts: number;
  readonly error: string;
  /** In milliseconds. */
  readonly againAt: number;
}

/** The stored state of a task; missing members are 0, false or null. */
interface StoredTask {
  /** The cause of the try that started last. */
  readonly cause?: Cause;
  readonly failedOnSignal?: FailedOnSignal;
  readonly stopping?: string;
  readonly failures?: number;
  readonly tickAt?: number;
}

/** What signals did at once; starts and restarts are the cause of a try instead (`cause`). */
export interface ImmediateEffect {
  /** null: the run was closed. */
  readonly taskId: string | null;
  /** The versions of the signals. */
  readonly by: readonly number[];
}

/** Everything to store except the waiting starts. */
export interface StoredDrive {
  readonly rules?: readonly StoredRule[];
  readonly tasks?: Readonly<Record<string, StoredTask>>;
  /** Why the run is closed: signals no longer count. */
  readonly closed?: string;
}

interface TaskDrive {
  readonly manifest: TaskManifest;
  /** The task does not start by its upstream alone. */
  readonly needsStart: boolean;
  readonly waiting: WaitingStarts;
  /** The cause of the try that started last. */
  cause: Cause | null;
  failedOnSignal: FailedOnSignal | null;
  /** Why its current attempt has to stop. */
  stopping: string | null;
  /** Consecutive failures of a streaming task. */
  failures: number;
  tickAt: number | null;
}

export interface DriveOptions {
  readonly manifest: DagManifest;
  readonly rules: RuleSet;
  readonly run: ListeningRun;
  /** When the run started, in milliseconds: ticks count from here. */
  readonly startedAt: number;
  readonly stored?: StoredDrive;
  /** The waiting starts; of each task in their order. */
  readonly starts?: readonly StoredStart[];
}

/** Whether a DAG is driven by anything but the order of its tasks. */
export function isDriven({ stop, tasks }: Pick<DagManifest, "stop" | "tasks">): boolean {
  return Boolean(stop) || tasks.some((task) => needsStart(task) || isStreaming(task) || task.rules);
}

export function isStreaming({ lifetime }: TaskManifest): boolean {
  return lifetime === "streaming";
}

/** Whether the task does not start by its upstream alone. */
export function needsStart({ every, reacts, rules }: TaskManifest): boolean {
  return Boolean(every ?? reacts) || rules?.some(({ action }) => action === "start") === true;
}

export class Drive {
  readonly endsWithBatch: boolean;
  readonly #tasks: ReadonlyMap<string, TaskDrive>;
  /** Tasks with ticks. */
  readonly #ticking: readonly TaskDrive[];
  readonly #book: RuleBook;
  /** The stored rules, with the changes since. */
  readonly #rules = new Map<string, StoredRule>();
  readonly #startedAt: number;
  readonly #reacts: boolean;
  #closed: string | null;
  #isDirty = false;
  #effects: ImmediateEffect[] = [];

  constructor({ manifest, rules, run, startedAt, starts = [], stored = {} }: DriveOptions) {
    this.endsWithBatch = manifest.endWhen === "batchDone";
    this.#startedAt = startedAt;
    this.#closed = stored.closed ?? null;
    for (const rule of stored.rules ?? []) this.#rules.set(nameOf(rule), rule);
    this.#book = new RuleBook(rules, run, stored.rules);
    this.#reacts = manifest.tasks.some(({ reacts }) => reacts);
    const startsOf = Map.groupBy(starts, ({ taskId }) => taskId);
    this.#tasks = new Map(
      manifest.tasks.map((task) => {
        const waiting = new WaitingStarts(task.taskId, startsOf.get(task.taskId));
        return [task.taskId, this.#taskDrive(task, waiting, stored.tasks?.[task.taskId])];
      }),
    );
    this.#ticking = [...this.#tasks.values()].filter(({ manifest: { every } }) => every);
  }

  /** Why signals no longer count; null: the run is open. */
  get closed(): string | null {
    return this.#closed;
  }

  /** Whether anything can still start a task: then the run has not ended, in any state of its tasks. */
  get isOpen(): boolean {
    if (this.#closed !== null) return false;
    return this.#reacts || this.#book.mayStart || this.nextTickAt() !== null;
  }

  /** The rules that fire, in the order in which they act. */
  receive(heard: Fact): Firing[] {
    return this.#closed === null ? this.#book.receive(heard) : [];
  }

  needsStart(taskId: string): boolean {
    return this.#task(taskId).needsStart;
  }

  /** The number of waiting starts. */
  starts(taskId: string): number {
    return this.#task(taskId).waiting.count;
  }

  /** @param atMost The maximum number of waiting starts. 1 for ticks: several ticks during a try count as one start. */
  addStart(taskId: string, atMost = Number.POSITIVE_INFINITY, cause: Cause | null = null): void {
    const { waiting } = this.#task(taskId);
    if (waiting.count < atMost) waiting.add(cause);
  }

  /** Consumes the oldest start. Without one, the try that begins now has no signal as its cause. */
  consumeStart(taskId: string): void {
    const task = this.#task(taskId);
    const cause = task.waiting.consume();
    if (cause === null && task.cause === null) return;
    task.cause = cause;
    this.#isDirty = true;
  }

  forgetStarts(taskId: string): void {
    this.#task(taskId).waiting.forget();
  }

  /** Drops the starts by signals and ticks. A task that its upstream starts keeps one: the repetition for new outputs. */
  forgetStartsAtClose(taskId: string): void {
    const { needsStart, waiting } = this.#task(taskId);
    waiting.forget(needsStart ? 0 : 1);
  }

  /** The current try starts again, with these signals as its cause in addition to the original cause. */
  restarted(taskId: string, versions: readonly number[]): void {
    const task = this.#task(taskId);
    task.cause = { ...task.cause, restart: versions };
    this.#isDirty = true;
  }

  /** The signals that caused the current try, those of a restart first; empty: it has another cause. */
  startSignals(taskId: string): readonly number[] {
    const { cause } = this.#task(taskId);
    return [...new Set([...(cause?.restart ?? []), ...(cause?.start ?? [])])];
  }

  /** The cause of the current try; null: no signal. */
  cause(taskId: string): Cause | null {
    return this.#task(taskId).cause;
  }

  /** Signals have stopped a task, or closed the run. */
  recordEffect(effect: ImmediateEffect): void {
    if (effect.by.length > 0) this.#effects.push(effect);
  }

  /** The effects since the last call. */
  drainEffects(): ImmediateEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** The failed `onSignal` call of the task; null: none. */
  failedOnSignal(taskId: string): FailedOnSignal | null {
    return this.#task(taskId).failedOnSignal;
  }

  setFailedOnSignal(taskId: string, asking: FailedOnSignal | null): void {
    const task = this.#task(taskId);
    if (task.failedOnSignal === null && asking === null) return;
    task.failedOnSignal = asking;
    this.#isDirty = true;
  }

  /** Why the current attempt has to stop; null: it does not. */
  stopping(taskId: string): string | null {
    return this.#task(taskId).stopping;
  }

  setStopping(taskId: string, reason: string | null): void {
    const task = this.#task(taskId);
    if (task.stopping === reason) return;
    task.stopping = reason;
    this.#isDirty = true;
  }

  /** Counts a failure of a streaming task. Returns the number of consecutive failures. */
  countFailure(taskId: string, ranMs: number): number {
    const task = this.#task(taskId);
    task.failures = ranMs >= HEALTHY_MS ? 1 : task.failures + 1;
    this.#isDirty = true;
    return task.failures;
  }

  close(reason: string): void {
    this.#closed ??= reason;
    this.#book.disarm();
    for (const task of this.#ticking) task.tickAt = null;
    this.#isDirty = true;
  }

  /** When the next tick of any task is due; null: none. */
  nextTickAt(): number | null {
    let next: number | null = null;
    for (const { tickAt } of this.#ticking)
      if (tickAt !== null && (next === null || tickAt < next)) next = tickAt;
    return next;
  }

  /** When the next tick of the task is due; null: it has no ticks, or the run is closed. */
  tickAt(taskId: string): number | null {
    return this.#task(taskId).tickAt;
  }

  /** The tasks with a due tick; missed ticks count as one. */
  consumeTicks(now: number): string[] {
    const due: string[] = [];
    for (const task of this.#ticking) {
      if (task.tickAt === null || task.tickAt > now) continue;
      due.push(task.manifest.taskId);
      task.tickAt = nextTick(task.manifest.every!, { anchor: this.#startedAt, after: now });
      this.#isDirty = true;
    }
    return due;
  }

  /** The state without the waiting starts, if it has changed since the last call; otherwise null. */
  drainState(): StoredDrive | null {
    for (const rule of this.#book.drainChanges()) {
      this.#rules.set(nameOf(rule), rule);
      this.#isDirty = true;
    }
    if (!this.#isDirty) return null;
    this.#isDirty = false;
    return this.#state();
  }

  /** The changes of the waiting starts since the last call. */
  drainStarts(): StartChanges[] {
    const changes: StartChanges[] = [];
    for (const { waiting } of this.#tasks.values()) {
      const changed = waiting.drainChanges();
      if (changed !== null) changes.push(changed);
    }
    return changes;
  }

  /** The last state was not stored: the next calls of the methods above return it again. */
  restoreChanges(effects: readonly ImmediateEffect[] = []): void {
    this.#isDirty = true;
    this.#effects.unshift(...effects);
    for (const { waiting } of this.#tasks.values()) waiting.restoreChanges();
  }

  report(): RuleReport[] {
    return this.#book.report();
  }

  #state(): StoredDrive {
    const tasks: Record<string, StoredTask> = {};
    for (const [taskId, { failedOnSignal: asking, cause, failures, stopping, tickAt }] of this.#tasks) {
      const stored: StoredTask = {
        ...(cause !== null && { cause }),
        ...(asking !== null && { failedOnSignal: asking }),
        ...(stopping !== null && { stopping }),
        ...(failures > 0 && { failures }),
        ...(tickAt !== null && { tickAt }),
      };
      if (Object.keys(stored).length > 0) tasks[taskId] = stored;
    }
    return {
      rules: [...this.#rules.values()],
      tasks,
      ...(this.#closed !== null && { closed: this.#closed }),
    };
  }

  #taskDrive(manifest: TaskManifest, waiting: WaitingStarts, stored: StoredTask = {}): TaskDrive {
    const { every } = manifest;
    const firstTick = every && nextTick(every, { anchor: this.#startedAt, after: this.#startedAt });
    return {
      manifest,
      needsStart: needsStart(manifest),
      waiting,
      cause: stored.cause ?? null,
      failedOnSignal: stored.failedOnSignal ?? null,
      stopping: stored.stopping ?? null,
      failures: stored.failures ?? 0,
      tickAt: this.#closed !== null ? null : (stored.tickAt ?? firstTick ?? null),
    };
  }

  #task(taskId: string): TaskDrive {
    return this.#tasks.get(taskId)!;
  }
}

function nameOf({ taskId, ruleIndex }: StoredRule): string {
  return JSON.stringify([taskId, ruleIndex]);
}

/** Reads the stored JSON. */
export function storedDrive(json: Json): StoredDrive {
  return (json ?? {}) as unknown as StoredDrive;
}
