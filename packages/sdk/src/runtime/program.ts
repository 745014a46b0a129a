/**
 * The narrow door between a DAG's bundle and the engine's child processes. A bundle carries its own copy of this
 * SDK, so the engine talks to it only through this protocol, found under a registered symbol, never by `instanceof`.
 */
import type { DagManifest, Json, TriggerCall } from "../manifest.ts";

/** Where a DAG keeps its program; registered, so that two copies of the SDK agree on it. */
export const PROGRAM = Symbol.for("tradewind.program");

/** What the engine can ask of a DAG. `protocol` grows when a field changes its meaning. */
export interface Program {
  readonly protocol: 1;
  describe(): DagManifest;
  /**
   * Runs one attempt, and no callback: that comes when its outcome is stored. Never rejects: whatever user code does
   * comes back as an outcome.
   */
  run(call: TaskCall): Promise<TaskOutcome>;
  /** Runs a callback of the DAG, of a group or of a task. */
  callback(call: CallbackCall): Promise<CallbackOutcome>;
  /** Asks the `onSignal` of a task what a signal means to it. Never rejects. Left out by SDKs that know no signals. */
  react?(call: ReactCall): Promise<ReactOutcome>;
  /** Asks the DAG's own timetable for its next run. Never rejects. Left out by a DAG without one. */
  due?(call: DueCall): Promise<DueOutcome>;
  /** The tasks whose outputs are the DAG's result. Left out when its build function returned none. */
  readonly result?: ResultTasks;
}

/** One task, whose output is the result; or several, whose outputs are its members. */
export type ResultTasks =
  | { readonly taskId: string }
  | { readonly members: Readonly<Record<string, string>> };

/** Where an operator resumes after a wait: the method that its deferral named, and the arguments of that method. */
export interface ResumePoint {
  readonly method: string;
  readonly kwargs: Json;
  readonly event: Json;
}

/** One attempt of one task instance. */
export interface TaskCall {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  /** Highest try number that is still followed by a retry: a failure of try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly attempt: string;
  /**
   * Null: an operator runs `execute`. A function task always begins at the top and reads its recorded steps with
   * `host.recall`.
   */
  readonly resumePoint: ResumePoint | null;
  /** How long ago this try first started, waits and reschedules included. 0 for its first attempt. */
  readonly elapsedMs: number;
  /** By input name. For a mapped upstream the value is the array of all outputs, in the order of the items. */
  readonly inputs: Readonly<Record<string, SettledInput>>;
  readonly run: RunFacts;
  /** The run's conf, as given; the program validates it against `params`. */
  readonly conf: Json;
  /** The versions of the signals that this try is due to. Left out when there are none. */
  readonly startedBy?: readonly number[];
  /** Outputs longer than this, as UTF-8 JSON, fail the attempt. 256 MB when left out. */
  readonly maxOutputBytes?: number;
  readonly host: TaskHost;
}

/** An upstream's end state and output, as the engine knows it. */
export interface SettledInput {
  readonly state: "success" | "failed" | "skipped" | "upstream_failed" | "removed" | "none";
  readonly value: Json | undefined;
  /** Of a mapped upstream: how each instance stands. Given to tasks whose rule is not `allSuccess`. */
  readonly each?: readonly SettledInput[];
}

/** The run an attempt belongs to. Instants are ISO strings. */
export interface RunFacts {
  readonly dagId: string;
  readonly runId: string;
  readonly runType: string;
  readonly logicalDate: string | null;
  readonly intervalStart: string | null;
  readonly intervalEnd: string | null;
  readonly runAfter: string;
  readonly startedAt: string | null;
  readonly version: number;
}

/** What an attempt may ask of the process that supervises it. */
export interface TaskHost {
  readonly abort: AbortSignal;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  output(taskId: string, mapIndex: number | null): Promise<Json | undefined>;
  /** @param name Of the environment variable that it is read for: a name that sounds secret hides the value in logs. */
  variable(key: string, name?: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  /** Sets environment variables until this call has ended. Left out by engines that know no `env`. */
  environment?(values: Readonly<Record<string, string>>): void;
  /** What this try has done so far, by the name of the step: `ctx.once` and `ctx.until`. */
  recall(): Promise<Readonly<Record<string, JournalEntry>>>;
  /** Keeps the result of a `ctx.once`; it is durable when this resolves. */
  remember(name: string, value: Json): Promise<void>;
  /** Runs `work` as the step of that name, for `currentStep` to know wherever its calls lead. */
  inStep<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** The step whose code is asking; null outside of any. */
  currentStep(): string | null;
  /** Asks a built-in trigger once, here and now, whether it would fire: its event, or undefined. */
  check(trigger: TriggerCall): Promise<Json | undefined>;
  /**
   * Makes a run of a DAG; durable when this resolves. Asked again with the same `runId` it makes no second one and
   * answers `created: false`. Rejects when there is no such DAG.
   * @param program Of that DAG, where it is at hand: a test runs it here.
   */
  triggerRun(request: TriggerRunRequest, program?: Program): Promise<TriggeredRunFacts>;
  /** How some tasks of another run stand, with their outputs; null: there is no such run. */
  runEnd(request: RunEndRequest): Promise<RunEnd | null>;
  /** Whether no later run of the schedule has fallen due since this one. */
  isLatest(): Promise<boolean>;
  /** The signals of the call's `startedBy`, without those that the log has lost. Left out by engines that know none. */
  startedBy?(): Promise<readonly ReceivedSignal[]>;
  /** Sends a signal, in the name of this task; durable when this resolves. */
  send(signal: SignalToSend): Promise<{ readonly version: number }>;
  /**
   * What the code of this call started and has not finished, after a moment in which it could have. Called when the
   * code has ended. Left out by engines that do not track it.
   */
  openWork?(): Promise<readonly OpenWork[]>;
}

/** Something that user code started and that has not ended. */
export interface OpenWork {
  /** "timer", "connection to 10.0.0.7:5432 that waits for an answer". */
  readonly what: string;
  /** Where it was started. */
  readonly stack: string | null;
}

/** A signal that a task sends; its value is checked. */
export interface SignalToSend {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
}

/** A signal as it is on the log. */
export interface ReceivedSignal extends SignalToSend {
  readonly version: number;
}

/** A run that a task wants to be made. */
export interface TriggerRunRequest {
  readonly dagId: string;
  readonly runId: string;
  readonly conf: Json;
  /** ISO instant; null: a run without one. */
  readonly logicalDate: string | null;
  /** It is a part of this task: it takes over the data interval, and is cancelled when this try is over before it. */
  readonly child?: true;
}

export interface TriggeredRunFacts {
  readonly runId: string;
  readonly created: boolean;
  /** Its DAG is paused: it does not begin before that ends. */
  readonly isPaused?: boolean;
}

export interface RunEndRequest {
  readonly dagId: string;
  readonly runId: string;
  /** Task ids. */
  readonly tasks: readonly string[];
}

export interface RunEnd {
  readonly state: string;
  /** By task id. Of a mapped task: failed when one of its instances is, with the list of what there is. */
  readonly tasks: Readonly<Record<string, SettledInput>>;
}

/** A step of a function task that is behind it. */
export type JournalEntry =
  | { readonly kind: "once"; readonly value: Json }
  | { readonly kind: "event"; readonly value: Json }
  | { readonly kind: "timeout"; readonly afterMs: number }
  | { readonly kind: "failed"; readonly error: ErrorFacts };

export type LogLevel = "debug" | "info" | "warn" | "error";

/** A stored connection, as user code sees it. */
export interface ConnectionFacts {
  readonly id: string;
  readonly type: string;
  readonly host: string | null;
  readonly port: number | null;
  readonly login: string | null;
  readonly password: string | null;
  readonly schema: string | null;
  readonly extra: Json;
}

/** How an attempt ended. Control flow is a value here, never an exception. */
export type TaskOutcome =
  | {
      readonly kind: "success";
      readonly output: Json | undefined;
      /** Downstream task ids that a branch or short-circuit rules out, transitive closure already applied. */
      readonly skip: readonly string[];
      /** To be sent with the success, in this order, in the same transaction. Left out when there is none. */
      readonly signals?: readonly SignalToSend[];
    }
  | { readonly kind: "skipped"; readonly reason: string | null }
  /** `retry` false: the author asked to fail without another try, or another try cannot help. */
  | { readonly kind: "failed"; readonly error: ErrorFacts; readonly retry: boolean }
  | ({ readonly kind: "deferred" } & Deferral)
  /** To be called again from the top, in the same try. */
  | { readonly kind: "rescheduled"; readonly afterMs: number };

/** One wait: on what, until when, and where to go on. */
export interface Deferral {
  readonly trigger: TriggerCall;
  /** A method of the operator; null for a function task, which begins at the top and finds the event under `name`. */
  readonly method: string | null;
  /** The name given to `ctx.until`; null for an operator. */
  readonly name: string | null;
  readonly kwargs: Json;
  readonly timeoutMs: number | null;
  /**
   * "fail": the try fails and may be retried; "fatal": it fails without another try; "skip": the task is skipped;
   * "resume": a function task goes on, and its `ctx.until` rejects.
   */
  readonly onTimeout: "fail" | "fatal" | "skip" | "resume";
  /** What a trigger that fails means: as above. */
  readonly onFailure: "fail" | "resume";
  /** There is an `onCancel` to run if the wait ends without its event. Left out otherwise. */
  readonly onCancel?: true;
  /** What the operator of an item is made of, where it has an `onCancel`. Left out otherwise. */
  readonly cancelInputs?: Readonly<Record<string, SettledInput>>;
}

/** An error, flattened for the log and the API. */
export interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  /** A stable code where the error has one (see docs/errors.md). */
  readonly code: string | null;
}

export interface CallbackCall {
  /** null: a callback of the run itself, or of a group. */
  readonly taskId: string | null;
  /** Of a callback of a group. */
  readonly groupId?: string | null;
  /** Of a callback of one item of a mapped group. */
  readonly mapIndex?: number;
  readonly event: "success" | "failure" | "retry" | "deadline" | "cancel";
  /** With the event "deadline". */
  readonly deadline?: DeadlineCall | null;
  /** With the event "cancel". */
  readonly wait?: CancelledWait | null;
  /** With the event "cancel": the kinds of triggers that the DAG's bundle defines. */
  readonly trigger?: (kind: string) => TriggerProgram | undefined;
  readonly run: RunFacts;
  readonly tryNumber: number;
  readonly error: ErrorFacts | null;
  readonly conf: Json;
  readonly host: TaskHost;
}

/** A wait that ended without its event, as it was begun. */
export interface CancelledWait {
  /** "timeout": it was out of time; "cancelled": the task was cancelled, cleared, marked or restarted, or its run ended. */
  readonly cause: "timeout" | "cancelled";
  readonly mapIndex: number;
  readonly name: string | null;
  readonly kwargs: Json;
  readonly trigger: TriggerCall;
  readonly inputs?: Readonly<Record<string, SettledInput>> | null;
}

/** A missed deadline of the run or the task: which one, which of its actions, and when it was due (ISO). */
export interface DeadlineCall {
  readonly ordinal: number;
  readonly action: number;
  readonly dueAt: string;
}

export type CallbackOutcome = { readonly ok: true } | { readonly ok: false; readonly error: ErrorFacts };

/** One signal, for the `onSignal` of one task. */
export interface ReactCall {
  readonly taskId: string;
  readonly run: RunFacts;
  readonly tryNumber: number;
  readonly conf: Json;
  readonly signal: ReceivedSignal;
  readonly host: TaskHost;
}

export type ReactOutcome =
  | { readonly ok: true; readonly action: "NONE" | "START" | "RESTART" | "STOP" }
  | { readonly ok: false; readonly error: ErrorFacts };

/** A run that a timetable asks for; instants in milliseconds. */
export interface DueFacts {
  readonly logicalDate: number;
  readonly intervalStart: number;
  readonly intervalEnd: number;
  /** Not before this instant. */
  readonly runAfter: number;
}

/** What a timetable is asked. */
export interface DueCall {
  /** The run that it asked for last; null: none so far. */
  readonly last: Omit<DueFacts, "runAfter"> | null;
  readonly now: number;
  readonly start: number | null;
  readonly end: number | null;
  readonly catchup: boolean;
  /** Without `catchup`: a run that was due no longer ago than this has not been missed. */
  readonly slackMs: number;
}

export type DueOutcome =
  | { readonly ok: true; readonly due: DueFacts | null }
  | { readonly ok: false; readonly error: ErrorFacts };

/** Where a trigger class keeps its program; registered, so that two copies of the SDK agree on it. */
export const TRIGGER = Symbol.for("tradewind.trigger");

/** The export of every bundle that lists the classes of its top level, among them the triggers it defines. */
export const CLASSES_EXPORT = "tradewind$classes";

/** What a trigger runner can ask of a kind of trigger. Found under {@link TRIGGER} on its class. */
export interface TriggerProgram {
  readonly protocol: 1;
  readonly id: string;
  /** Rejects when the arguments do not satisfy the trigger's schema. */
  start(args: Json, host: TriggerHost): Promise<RunningTrigger>;
  /** Runs its `onCancel` for one wait, with a context of the SDK. Left out by SDKs that know none. */
  cancel?(args: Json, ctx: unknown): Promise<void>;
}

/**
 * Why a trigger is aborted. "cancelled": no task waits for it any more; "fired": its event is stored; "moved": another
 * triggerer runs it; "stopped": its process ends or its schedule is paused, and it is started again elsewhere or later.
 */
export type TriggerAbortKind = "cancelled" | "fired" | "moved" | "stopped";

/** One trigger under way. */
export interface RunningTrigger {
  /**
   * What it yields next. To ask for the next one is to say that the last one is stored: code after a `yield` can
   * acknowledge the event to where it came from. Rejects when user code throws.
   */
  next(): Promise<TriggerYield>;
  /** After its last event or its abort; errors are logged and change nothing. */
  cleanup(): Promise<void>;
}

export type TriggerYield =
  /** `key`: tells two events apart when two triggerers run the same trigger; null: by its payload. */
  | { readonly kind: "event"; readonly payload: Json; readonly key: string | null }
  /** Ends the waiting task without a worker. */
  | { readonly kind: "ending"; readonly ending: TriggerEnding }
  /** It returned: there will be no more events. */
  | { readonly kind: "done" };

export type TriggerEnding =
  | { readonly kind: "success"; readonly output: Json }
  | { readonly kind: "failed"; readonly reason: string; readonly retry: boolean }
  | { readonly kind: "skipped"; readonly reason: string | null };

/** What a trigger may ask of the process that runs it. */
export interface TriggerHost {
  readonly abort: AbortSignal;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  /** It has looked at the outside world just now: shown to whoever asks when it last did. */
  polled(): void;
  /** Runs `work` when fewer than `limit` others are under way for the same key, e.g. a host name. */
  limited<T>(key: string, limit: number, work: () => Promise<T>): Promise<T>;
}
