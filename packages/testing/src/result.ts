import type { NoticeCause, NoticeReport } from "@tradewind/engine/model";
import type { Json } from "@tradewind/sdk";
import type { NoticeAction } from "@tradewind/sdk/manifest";
import type { ErrorFacts, SignalToSend, TriggerRunRequest } from "@tradewind/sdk/program";
import { DagTestError } from "./errors.ts";
import type { LogLine } from "./options.ts";

/**
 * The end of one task of the run.
 * @example const load: TaskResult = (await runDag(sales)).task("load");
 */
export interface TaskResult {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly state: string;
  /** The number of tries; 0 if it never ran. */
  readonly tries: number;
  readonly output: Json | undefined;
  /** The error of the last try, if it failed. */
  readonly error: ErrorFacts | undefined;
  /** The reason of the state, if there is more to say. */
  readonly reason: string | null;
  /** The tries in order; a task with signal rules or times may succeed many times. */
  readonly history: readonly TryResult[];
}

/**
 * One try of a task.
 * @example const durations = (tries: readonly TryResult[]) => tries.map(({ startedMs, endedMs }) => endedMs - startedMs);
 */
export interface TryResult {
  readonly tryNumber: number;
  readonly state: string;
  readonly output: Json | undefined;
  readonly error: ErrorFacts | undefined;
  readonly reason: string | null;
  /** Milliseconds since the start of the run. */
  readonly startedMs: number;
  readonly endedMs: number;
}

/**
 * An action of a rule, a time, an `onSignal` or a user.
 * @example const isRestart = (action: Action) => action.action === "restart" && action.taskId === "serve";
 */
export interface Action {
  readonly atMs: number;
  /** Null: the run itself, which is closed. */
  readonly taskId: string | null;
  readonly action: "start" | "restart" | "stop";
  /** The cause: keys of signals, ids of tasks, "its time", or a user. */
  readonly by: string;
}

/**
 * A signal that an `onSignal` failed to process too often.
 * @example const failed = (letters: readonly DeadLetter[]) => letters.map(({ key, error }) => `${key}: ${error}`);
 */
export interface DeadLetter {
  readonly taskId: string;
  readonly key: string;
  readonly version: number;
  readonly error: string;
}

/**
 * A state change on the timeline, which is deterministic on the virtual clock.
 * @example const times = (timeline: readonly TimelineEntry[]) => timeline.map(({ atMs, taskId, state }) => [atMs, taskId, state]);
 */
export interface TimelineEntry {
  /** Milliseconds since the start of the run; on the virtual clock only waits take time. */
  readonly atMs: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly state: string;
}

/**
 * A signal that a task has sent.
 * @example const keys = (signals: readonly SentSignal[]) => signals.map(({ key }) => key);
 */
export interface SentSignal extends SignalToSend {
  readonly version: number;
}

/**
 * A recorded webhook, mail or signal of `onSuccess`, `onFailure` or `onRetry`.
 * @example const webhooks = (notices: readonly NoticeResult[]) => notices.filter(({ action }) => action.kind === "webhook");
 */
export interface NoticeResult extends NoticeReport {
  readonly action: NoticeAction;
  /** The task that failed first, for a failed group or run. */
  readonly cause: NoticeCause | null;
}

/**
 * A run inside another, and the task that waited for it.
 * @example const states = (runs: readonly SubRun[]) => runs.map(({ taskId, run }) => [taskId, run.state]);
 */
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

/**
 * A finished run.
 *
 * @example
 * ```ts
 * const run: RunResult = await runDag(sales);
 * expect(run.outputs["count"]).toBe(3);
 * ```
 */
export class RunResult {
  readonly state: "success" | "failed";
  /** The reason of a failed run: "task_failure", "all_tasks_deadlocked" or "timed_out". */
  readonly reason: string | null;
  readonly runId: string;
  /** The number of tries of the run: more than 1 with `runRetries`. */
  readonly tries: number;
  readonly tasks: readonly TaskResult[];
  readonly timeline: readonly TimelineEntry[];
  /** The lines that each task wrote with `ctx.log`, by task id. */
  readonly logs: Readonly<Record<string, readonly LogLine[]>>;
  /** Runs of other DAGs that tasks requested; they were recorded, but not run. */
  readonly triggeredRuns: readonly TriggerRunRequest[];
  /** Runs of sub-DAGs and of imported DAGs that tasks waited for, in the order in which they ended. */
  readonly subRuns: readonly SubRun[];
  /** The signals that tasks have sent, in order; with `onSuccess`, after the success. */
  readonly signals: readonly SentSignal[];
  /** The actions of rules, times and users, in order. */
  readonly actions: readonly Action[];
  /**
   * What closed a run with signal rules or times: keys of signals, "the end of its batch tasks", a user, "idle" or
   * "until"; null: nothing.
   */
  readonly closedBy: string | null;
  readonly deadLetters: readonly DeadLetter[];
  /**
   * Webhooks, mails and signals that were due, in order; they were recorded, but not sent (the run receives the
   * signals).
   */
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

  /** End states by task id; for a mapped task by id and index, as in "load[0]". */
  get states(): Record<string, string> {
    return Object.fromEntries(this.tasks.map((task) => [nameOf(task), task.state]));
  }

  /** Outputs by task id; for a mapped task the list of them. */
  get outputs(): Record<string, Json> {
    const outputs: Record<string, Json> = {};
    for (const { taskId, mapIndex, output } of [...this.tasks].sort((a, b) => a.mapIndex - b.mapIndex)) {
      if (output === undefined) continue;
      outputs[taskId] = mapIndex < 0 ? output : [...((outputs[taskId] ?? []) as Json[]), output];
    }
    return outputs;
  }

  /** `mapIndex`: the instance of a mapped task. */
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
