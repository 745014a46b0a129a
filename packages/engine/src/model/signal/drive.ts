/**
 * What drives a run besides the order of its tasks: rules on signals, ticks, orders given by hand. One per run that
 * has any of it; an ordinary run has none and pays nothing.
 *
 * It remembers what has been asked for and not happened yet: starts that wait, attempts that are to stop, when a task
 * is due next. Starts are rows of their own, since a burst makes thousands; the rest is small JSON. All of it is stored
 * with the effect, in the owner's batch: the next owner of the run finds every start that was counted, and none twice.
 */
import type { DagManifest, Json, TaskManifest } from "@tradewind/sdk/manifest";
import { nextTick } from "../calendar/timetable.ts";
import type { Heard } from "./signal-condition.ts";
import type { ListeningRun } from "./signal-condition-match.ts";
import { type Firing, RuleBook, type RuleReport, type RuleSet, type StoredRule } from "./signal-rules.ts";
import { type Cause, type StartChanges, type StoredStart, WaitingStarts } from "./waiting-starts.ts";

/** A streaming task that ran this long was in health: its next failure counts as the first. */
export const HEALTHY_MS = 60_000;

/** An `onSignal` that has failed and is asked again; its later signals wait for its answer. */
export interface Asking {
  readonly key: string;
  readonly version: number;
  readonly attempts: number;
  readonly error: string;
  /** In milliseconds. */
  readonly againAt: number;
}

/** What is stored of a task; what is left out is 0, false or null. */
interface StoredTask {
  /** Of the try that has begun last. */
  readonly cause?: Cause;
  readonly asking?: Asking;
  readonly stopping?: string;
  readonly failures?: number;
  readonly tickAt?: number;
}

/** All that has to survive the process, but for the starts that wait. */
export interface StoredDrive {
  readonly rules?: readonly StoredRule[];
  readonly tasks?: Readonly<Record<string, StoredTask>>;
  /** Why the run is closed: nothing is heard any more. */
  readonly closed?: string;
}

interface TaskDrive {
  readonly manifest: TaskManifest;
  /** It does not start by its upstream alone. */
  readonly needsStart: boolean;
  readonly waiting: WaitingStarts;
  /** What the try that has begun last is due to. */
  cause: Cause | null;
  asking: Asking | null;
  /** Why its current attempt is to stop. */
  stopping: string | null;
  /** Of a streaming task, in a row. */
  failures: number;
  tickAt: number | null;
}

export interface DriveOptions {
  readonly manifest: DagManifest;
  readonly rules: RuleSet;
  readonly run: ListeningRun;
  /** When the run started, in milliseconds: intervals count from here. */
  readonly startedAt: number;
  readonly stored?: StoredDrive;
  /** Those that wait, of each task in their order. */
  readonly starts?: readonly StoredStart[];
}

/** Whether a DAG has anything but the order of its tasks to go by. */
export function isDriven({ stop, tasks }: Pick<DagManifest, "stop" | "tasks">): boolean {
  return Boolean(stop) || tasks.some((task) => needsStart(task) || isStreaming(task) || task.rules);
}

export function isStreaming({ lifetime }: TaskManifest): boolean {
  return lifetime === "streaming";
}

/** It does not start by its upstream alone. */
export function needsStart({ every, reacts, rules }: TaskManifest): boolean {
  return Boolean(every ?? reacts) || rules?.some(({ action }) => action === "start") === true;
}

export class Drive {
  readonly endsWithBatch: boolean;
  readonly #tasks: ReadonlyMap<string, TaskDrive>;
  /** Those with times of their own. */
  readonly #ticking: readonly TaskDrive[];
  readonly #book: RuleBook;
  /** As stored last, and what has changed since. */
  readonly #rules = new Map<string, StoredRule>();
  readonly #startedAt: number;
  readonly #reacts: boolean;
  #closed: string | null;
  #isDirty = false;

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

  /** Nothing that is heard counts any more; null: it is open. */
  get closed(): string | null {
    return this.#closed;
  }

  /** Something may still start a task by itself: the run is not over, whatever has finished. */
  get isOpen(): boolean {
    if (this.#closed !== null) return false;
    return this.#reacts || this.#book.mayStart || this.nextTickAt() !== null;
  }

  /** What the rules make of it, in the order in which they act. */
  hear(heard: Heard): Firing[] {
    return this.#closed === null ? this.#book.hear(heard) : [];
  }

  needsStart(taskId: string): boolean {
    return this.#task(taskId).needsStart;
  }

  /** Starts that wait. */
  starts(taskId: string): number {
    return this.#task(taskId).waiting.count;
  }

  /** @param atMost A tick while the task is under way is worth one start, however many there were. */
  addStart(taskId: string, atMost = Number.POSITIVE_INFINITY, cause: Cause | null = null): void {
    const { waiting } = this.#task(taskId);
    if (waiting.count < atMost) waiting.add(cause);
  }

  /** One start is carried out, the oldest; where none waits, no signal has to do with what begins now. */
  takeStart(taskId: string): void {
    const task = this.#task(taskId);
    const cause = task.waiting.take();
    if (cause === null && task.cause === null) return;
    task.cause = cause;
    this.#isDirty = true;
  }

  forgetStarts(taskId: string): void {
    this.#task(taskId).waiting.forget();
  }

  /** Forgets the starts by signals and ticks. A task that its upstream starts keeps one: the repetition for its upstream's new result. */
  forgetStartsAtClose(taskId: string): void {
    const { needsStart, waiting } = this.#task(taskId);
    waiting.forget(needsStart ? 0 : 1);
  }

  /** What is under way begins again, because of these signals and of what had started it. */
  restarted(taskId: string, versions: readonly number[]): void {
    const task = this.#task(taskId);
    task.cause = { ...task.cause, restart: versions };
    this.#isDirty = true;
  }

  /** The signals that the current try is due to, those of a restart first; none: something else has started it. */
  startedBy(taskId: string): readonly number[] {
    const { cause } = this.#task(taskId);
    return [...new Set([...(cause?.restart ?? []), ...(cause?.start ?? [])])];
  }

  /** What its `onSignal` has failed to answer; null: nothing. */
  asking(taskId: string): Asking | null {
    return this.#task(taskId).asking;
  }

  setAsking(taskId: string, asking: Asking | null): void {
    const task = this.#task(taskId);
    if (task.asking === null && asking === null) return;
    task.asking = asking;
    this.#isDirty = true;
  }

  /** Why the current attempt is to stop; null: it is not. */
  stopping(taskId: string): string | null {
    return this.#task(taskId).stopping;
  }

  setStopping(taskId: string, reason: string | null): void {
    const task = this.#task(taskId);
    if (task.stopping === reason) return;
    task.stopping = reason;
    this.#isDirty = true;
  }

  /** Of a streaming task: how many failures in a row this one makes. */
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

  /** When a task is due next; null: none has times of its own. */
  nextTickAt(): number | null {
    let next: number | null = null;
    for (const { tickAt } of this.#ticking)
      if (tickAt !== null && (next === null || tickAt < next)) next = tickAt;
    return next;
  }

  /** When this one is due next; null: it has no times of its own, or the run is closed. */
  tickAt(taskId: string): number | null {
    return this.#task(taskId).tickAt;
  }

  /** The tasks that are due; ticks that were missed count as one. */
  takeTicks(now: number): string[] {
    const due: string[] = [];
    for (const task of this.#ticking) {
      if (task.tickAt === null || task.tickAt > now) continue;
      due.push(task.manifest.taskId);
      task.tickAt = nextTick(task.manifest.every!, { anchor: this.#startedAt, after: now });
      this.#isDirty = true;
    }
    return due;
  }

  /** All of it, but for the starts that wait, when it has changed since this was asked last; null otherwise. */
  takeState(): StoredDrive | null {
    for (const rule of this.#book.takeChanges()) {
      this.#rules.set(nameOf(rule), rule);
      this.#isDirty = true;
    }
    if (!this.#isDirty) return null;
    this.#isDirty = false;
    return this.#state();
  }

  /** What has changed about the starts that wait since this was asked last. */
  takeStarts(): StartChanges[] {
    const changes: StartChanges[] = [];
    for (const { waiting } of this.#tasks.values()) {
      const changed = waiting.takeChanges();
      if (changed !== null) changes.push(changed);
    }
    return changes;
  }

  /** What was taken last could not be stored: the next `takeState` and `takeStarts` have it again. */
  giveBack(): void {
    this.#isDirty = true;
    for (const { waiting } of this.#tasks.values()) waiting.giveBack();
  }

  report(): RuleReport[] {
    return this.#book.report();
  }

  #state(): StoredDrive {
    const tasks: Record<string, StoredTask> = {};
    for (const [taskId, { asking, cause, failures, stopping, tickAt }] of this.#tasks) {
      const stored: StoredTask = {
        ...(cause !== null && { cause }),
        ...(asking !== null && { asking }),
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
      asking: stored.asking ?? null,
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

/** As it comes from the database. */
export function storedDrive(json: Json): StoredDrive {
  return (json ?? {}) as unknown as StoredDrive;
}
