import type { NoticeCause, NoticeReport } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { NoticeAction } from "@tradewind/sdk/manifest";
import type { ErrorFacts, SignalToSend, TriggerRunRequest } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import type { LogLine } from "./options.ts";

/** How one task of the run ended. */
export interface TaskResult {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly state: string;
  /** How many tries it had; 0 when it never ran. */
  readonly tries: number;
  readonly output: Json | undefined;
  /** Of the last try, if it failed. */
  readonly error: ErrorFacts | undefined;
  /** Why it did not run, or why it ended as it did, where there is more to say. */
  readonly reason: string | null;
  /** Its tries, in order: a task that signals or times start may succeed many times. */
  readonly history: readonly TryResult[];
}

/** How one try of a task went. */
export interface TryResult {
  readonly tryNumber: number;
  readonly state: string;
  readonly output: Json | undefined;
  readonly error: ErrorFacts | undefined;
  readonly reason: string | null;
  /** Milliseconds since the run began. */
  readonly startedMs: number;
  readonly endedMs: number;
}

/** Something that a rule, a time, an `onSignal` or a person asked for. */
export interface Action {
  readonly atMs: number;
  /** null: the run itself, which is closed. */
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
  /** The keys of the signals, or the tasks, that its rule heard; "its time"; who asked by hand. */
  readonly by: string;
}

/** A signal that an `onSignal` could not deal with, however often it was asked. */
export interface DeadLetter {
  readonly taskId: string;
  readonly key: string;
  readonly version: number;
  readonly error: string;
}

/** One moment of the run. On the virtual clock it is the same in every execution of the same test. */
export interface TimelineEntry {
  /** Milliseconds since the run began. On the virtual clock only waiting takes time. */
  readonly atMs: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
}

/** A signal that a task has sent. */
export interface SentSignal extends SignalToSend {
  readonly version: number;
}

/** A webhook, mail or signal of `onSuccess`, `onFailure` or `onRetry`: what it says, and how it would be sent. */
export interface NoticeResult extends NoticeReport {
  readonly action: NoticeAction;
  /** Of a failed group or run: the task that failed first. */
  readonly cause: NoticeCause | null;
}

/** A run inside another, and the task that waited for it. */
export interface SubRun {
  readonly dagId: string;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly run: RunResult;
}

type RunResultFacts = Pick<
  RunResult,
  | "state"
  | "reason"
  | "runId"
  | "tries"
  | "tasks"
  | "timeline"
  | "logs"
  | "triggeredRuns"
  | "subRuns"
  | "signals"
  | "actions"
  | "closedBy"
  | "deadLetters"
  | "notices"
>;

/** A finished run. */
export class RunResult {
  readonly state: "success" | "failed";
  /** Why a failed run failed: "task_failure", "all_tasks_deadlocked" or "timed_out". */
  readonly reason: string | null;
  readonly runId: string;
  /** How many tries the run took: more than 1 with `runRetries`. */
  readonly tries: number;
  readonly tasks: readonly TaskResult[];
  readonly timeline: readonly TimelineEntry[];
  /** What each task wrote with `ctx.log`, by task id. */
  readonly logs: Readonly<Record<string, readonly LogLine[]>>;
  /** Runs of other DAGs that tasks wanted to be made. They were only noted. */
  readonly triggeredRuns: readonly TriggerRunRequest[];
  /** Runs of DAGs that are tasks of this one, in the order in which they ended; and of others that were at hand, and waited for. */
  readonly subRuns: readonly SubRun[];
  /** What tasks have sent, in order; with `onSuccess`, when they had succeeded. */
  readonly signals: readonly SentSignal[];
  /** What rules, times and people have asked for, in order. */
  readonly actions: readonly Action[];
  /**
   * What closed a run that signals or times drive: the keys of the signals of the DAG's `stop`, "the end of its batch
   * tasks", who did it by hand; "idle" when nothing was left to happen, "until" when its time was over. Null: nothing.
   */
  readonly closedBy: string | null;
  readonly deadLetters: readonly DeadLetter[];
  /** Webhooks, mails and signals that were due, in order. They were only recorded; signals were heard by the run. */
  readonly notices: readonly NoticeResult[];

  constructor(facts: RunResultFacts) {
    this.state = facts.state;
    this.reason = facts.reason;
    this.runId = facts.runId;
    this.tries = facts.tries;
    this.tasks = facts.tasks;
    this.timeline = facts.timeline;
    this.logs = facts.logs;
    this.triggeredRuns = facts.triggeredRuns;
    this.subRuns = facts.subRuns;
    this.signals = facts.signals;
    this.actions = facts.actions;
    this.closedBy = facts.closedBy;
    this.deadLetters = facts.deadLetters;
    this.notices = facts.notices;
  }

  /** End states by task id; of a mapped task by id and index, as in "load[0]". */
  get states(): Record<string, string> {
    return Object.fromEntries(this.tasks.map((task) => [nameOf(task), task.state]));
  }

  /** Outputs by task id, of the tasks that have one; of a mapped task the list of them. */
  get outputs(): Record<string, Json> {
    const outputs: Record<string, Json> = {};
    for (const { taskId, mapIndex, output } of [...this.tasks].sort((a, b) => a.mapIndex - b.mapIndex)) {
      if (output === undefined) continue;
      outputs[taskId] = mapIndex < 0 ? output : [...((outputs[taskId] ?? []) as Json[]), output];
    }
    return outputs;
  }

  /** `mapIndex`: which instance of a mapped task. */
  task(taskId: string, mapIndex?: number): TaskResult {
    const found = this.tasks.find(
      (task) => task.taskId === taskId && (mapIndex === undefined || task.mapIndex === mapIndex),
    );
    if (found) return found;
    const known = this.tasks.map(nameOf).join(", ");
    const wanted = mapIndex === undefined ? taskId : `${taskId}[${mapIndex}]`;
    throw new DagTestError("TW_TEST_TASK_UNKNOWN", `the run has no task "${wanted}"; its tasks are ${known}`);
  }
}

function nameOf({ mapIndex, taskId }: TaskResult): string {
  return mapIndex < 0 ? taskId : `${taskId}[${mapIndex}]`;
}
