/**
 * The protocol between a DAG's bundle and the engine's child processes. A bundle contains its own copy of the SDK, so
 * the engine accesses it only through this protocol, under a registered symbol and never by `instanceof`.
 */
import type { DagManifest, Json, TriggerCall } from "../manifest.ts";

export type { AssetSource } from "../asset/asset.ts";

/**
 * The key of a DAG's program; a registered symbol, shared by all copies of the SDK.
 * @example const manifest = dag("hello", (d) => void d.task("greet", () => "Hello!"))[PROGRAM].describe();
 */
export const PROGRAM = Symbol.for("tradewind.program");

/** The functions of a DAG that the engine calls; `protocol` grows when a field changes its meaning. */
export interface Program {
  readonly protocol: 1;
  describe(): DagManifest;
  /** Runs one attempt without its callbacks, which run after the outcome is stored. Never rejects. */
  run(call: TaskCall): Promise<TaskOutcome>;
  /** Runs a callback of the DAG, of a group or of a task. */
  callback(call: CallbackCall): Promise<CallbackOutcome>;
  /** Calls the `onSignal` of a task. Never rejects. Missing in SDKs without signals. */
  react?(call: ReactCall): Promise<ReactOutcome>;
  /** Calls the DAG's timetable for its next run. Never rejects. Missing without a timetable. */
  due?(call: DueCall): Promise<DueOutcome>;
  /** The tasks whose outputs are the DAG's result. Missing if its build function returned none. */
  readonly result?: ResultTasks;
}

/** The task whose output is the result, or several tasks whose outputs are its members. */
export type ResultTasks =
  | { readonly taskId: string }
  | { readonly members: Readonly<Record<string, string>> };

/** One attempt of one task instance. */
export interface TaskCall {
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  /** The highest try number that is followed by a retry: a failed try n is retried while n <= maxTries. */
  readonly maxTries: number;
  readonly attempt: string;
  /**
   * The method that a deferral named, and its arguments; null runs `execute`. A function task always begins at the top
   * and reads its recorded steps with `host.recall`.
   */
  readonly resumePoint: { readonly method: string; readonly kwargs: Json; readonly event: Json } | null;
  /** Time since the first start of this try, including waits and reschedules; 0 for its first attempt. */
  readonly elapsedMs: number;
  /** By input name. For a mapped upstream the value is the array of all outputs, in the order of the items. */
  readonly inputs: Readonly<Record<string, SettledInput>>;
  readonly run: RunFacts;
  /** The run's conf as given; the program validates it against `params`. */
  readonly conf: Json;
  /** The versions of the signals that started this try. Missing if there are none. */
  readonly startSignals?: readonly number[];
  /** The limit of the output as UTF-8 JSON; 256 MB if missing. */
  readonly maxOutputBytes?: number;
  readonly host: TaskHost;
}

/** The end state and the output of an upstream task. */
export interface SettledInput {
  readonly state: "success" | "failed" | "skipped" | "upstream_failed" | "removed" | "pending";
  readonly value: Json | undefined;
  /** For a mapped upstream: the state of each instance, for tasks whose rule is not `allSuccess`. */
  readonly each?: readonly SettledInput[];
}

/** The run of an attempt; instants are ISO strings. */
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

/** The functions of the supervising process that an attempt can call. */
export interface TaskHost {
  readonly abort: AbortSignal;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  output(taskId: string, mapIndex: number | null): Promise<Json | undefined>;
  /** @param name The environment variable for which it is read: a name that sounds secret masks the value in logs. */
  variable(key: string, name?: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  /** Sets environment variables until this call has ended. Missing in engines without `env`. */
  environment?(values: Readonly<Record<string, string>>): void;
  /** The recorded steps of this try by name: `ctx.step` and `ctx.until`. */
  recall(): Promise<Readonly<Record<string, JournalEntry>>>;
  /** Records the result of a `ctx.step`; it is durable when the promise resolves. */
  remember(name: string, value: Json): Promise<void>;
  /** Runs `work` as the step of that name; `currentStep` returns the name in all code that it calls. */
  inStep<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** The step of the calling code; null outside of a step. */
  currentStep(): string | null;
  /** Checks a built-in trigger once: its event, or undefined. */
  check(trigger: TriggerCall): Promise<Json | undefined>;
  /**
   * Creates a run of a DAG; it is durable when the promise resolves. A second call with the same `runId` creates no run
   * and returns `created: false`. Rejects if the DAG does not exist.
   * @param program The program of that DAG, if it is loaded: a test runs it in this process.
   */
  triggerRun(request: TriggerRunRequest, program?: Program): Promise<TriggeredRunFacts>;
  /** States and outputs of some tasks of another run; null if the run does not exist. */
  runEnd(request: RunEndRequest): Promise<RunEnd | null>;
  /** Returns whether this is the newest scheduled run of its DAG. */
  isLatest(): Promise<boolean>;
  /** The signals of the call's `startSignals` that are still in the log. Missing in engines without signals. */
  startSignals?(): Promise<readonly ReceivedSignal[]>;
  /** Sends a signal on behalf of this task; it is durable when the promise resolves. */
  send(signal: SignalToSend): Promise<{ readonly version: number }>;
  /** The unfinished work of this call, after its code has ended. Missing in engines that do not track it. */
  openWork?(): Promise<readonly OpenWork[]>;
}

/** Work that user code started and that has not ended. */
export interface OpenWork {
  /** "timer", "connection to 10.0.0.7:5432 that waits for an answer". */
  readonly what: string;
  /** The stack that started it. */
  readonly stack: string | null;
}

/** A signal that a task sends, with a checked value. */
export interface SignalToSend {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
}

/** A signal in the log. */
export interface ReceivedSignal extends SignalToSend {
  readonly version: number;
}

/** A run that a task asks to create. */
export interface TriggerRunRequest {
  readonly dagId: string;
  readonly runId: string;
  readonly conf: Json;
  /** An ISO instant; null for a run without a logical date. */
  readonly logicalDate: string | null;
  /** The run is part of this task: it inherits the data interval and is cancelled if this try ends first. */
  readonly child?: true;
}

/** The run that `triggerRun` created or found. */
export interface TriggeredRunFacts {
  readonly runId: string;
  readonly created: boolean;
  /** The DAG is paused: the run does not start until it is unpaused. */
  readonly isPaused?: boolean;
}

/** The tasks of another run whose states and outputs are requested. */
export interface RunEndRequest {
  readonly dagId: string;
  readonly runId: string;
  /** Task ids. */
  readonly tasks: readonly string[];
}

/** States and outputs of the requested tasks of a run. */
export interface RunEnd {
  readonly state: string;
  /** By task id. A mapped task is failed if one of its instances is; its output is the list of existing outputs. */
  readonly tasks: Readonly<Record<string, SettledInput>>;
}

/** A completed step of a function task. */
export type JournalEntry =
  | { readonly kind: "step"; readonly value: Json }
  | { readonly kind: "event"; readonly value: Json }
  | { readonly kind: "timeout"; readonly afterMs: number }
  | { readonly kind: "failed"; readonly error: ErrorFacts };

/**
 * The levels of log lines.
 * @example const levels: LogLevel[] = ["debug", "info", "warn", "error"];
 */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** A stored connection, as user code receives it. */
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

/** The end of an attempt; control flow is a value here, never an exception. */
export type TaskOutcome =
  | {
      readonly kind: "success";
      readonly output: Json | undefined;
      /** Ids of all downstream tasks, direct and indirect, that a branch or a short-circuit skips. */
      readonly skip: readonly string[];
      /** Signals to send in this order in the same transaction as the success. Missing if there are none. */
      readonly signals?: readonly SignalToSend[];
    }
  | { readonly kind: "skipped"; readonly reason: string | null }
  /** `retry` false: the author asked to fail without another try, or another try cannot help. */
  | { readonly kind: "failed"; readonly error: ErrorFacts; readonly retry: boolean }
  | ({ readonly kind: "deferred" } & Deferral)
  /** To be called again from the top, in the same try. */
  | { readonly kind: "rescheduled"; readonly afterMs: number };

/** One wait: its trigger, its timeout and the point to resume at. */
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
   * "resume": a function task resumes, and its `ctx.until` rejects.
   */
  readonly onTimeout: "fail" | "fatal" | "skip" | "resume";
  /** The effect of a failed trigger, as above. */
  readonly onFailure: "fail" | "resume";
  /** Present if there is an `onCancel` to run when the wait ends without its event. */
  readonly onCancel?: true;
  /** The inputs of an item's operator that has an `onCancel`. Missing otherwise. */
  readonly cancelInputs?: Readonly<Record<string, SettledInput>>;
}

/**
 * An error, flattened for the log and the API.
 * @example const onFailure = (ctx: CallbackContext) => ((error: ErrorFacts | null) => notify(error?.message ?? "failed"))(ctx.error);
 */
export interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  /** A stable code if the error has one (see docs/errors.md). */
  readonly code: string | null;
}

/** One call of a callback. */
export interface CallbackCall {
  /** Null for a callback of the run or of a group. */
  readonly taskId: string | null;
  /** Set for a callback of a group. */
  readonly groupId?: string | null;
  /** Set for a callback of one item of a mapped group. */
  readonly mapIndex?: number;
  readonly event: "success" | "failure" | "retry" | "deadline" | "cancel";
  /** Set with the event "deadline". */
  readonly deadline?: DeadlineCall | null;
  /** Set with the event "cancel". */
  readonly wait?: CancelledWait | null;
  /** With the event "cancel": the trigger classes of the DAG's bundle by kind. */
  readonly trigger?: (kind: string) => TriggerProgram | undefined;
  readonly run: RunFacts;
  readonly tryNumber: number;
  readonly error: ErrorFacts | null;
  readonly conf: Json;
  readonly host: TaskHost;
}

/** A wait that ended without its event. */
export interface CancelledWait {
  /**
   * "timeout": the wait timed out; "cancelled": the task was cancelled, cleared, marked or restarted, or its run ended.
   */
  readonly cause: "timeout" | "cancelled";
  readonly mapIndex: number;
  readonly name: string | null;
  readonly kwargs: Json;
  readonly trigger: TriggerCall;
  readonly inputs?: Readonly<Record<string, SettledInput>> | null;
}

/** A missed deadline of the run or the task: its index, the index of the action, and its time (ISO). */
export interface DeadlineCall {
  readonly ordinal: number;
  readonly action: number;
  readonly dueAt: string;
}

/** The result of a callback. */
export type CallbackOutcome = { readonly ok: true } | { readonly ok: false; readonly error: ErrorFacts };

/** One signal for the `onSignal` of one task. */
export interface ReactCall {
  readonly taskId: string;
  readonly run: RunFacts;
  readonly tryNumber: number;
  readonly conf: Json;
  readonly signal: ReceivedSignal;
  readonly host: TaskHost;
}

/** The action that `onSignal` returned, or its error. */
export type ReactOutcome =
  | { readonly ok: true; readonly action: "NONE" | "START" | "RESTART" | "STOP" }
  | { readonly ok: false; readonly error: ErrorFacts };

/** A run that a timetable returned; instants in milliseconds. */
export interface DueFacts {
  readonly logicalDate: number;
  readonly intervalStart: number;
  readonly intervalEnd: number;
  /** The run does not start before this instant. */
  readonly runAfter: number;
}

/** The arguments of one call of a timetable. */
export interface DueCall {
  /** The last run that it returned; null: none so far. */
  readonly last: Omit<DueFacts, "runAfter"> | null;
  readonly now: number;
  readonly start: number | null;
  readonly end: number | null;
  readonly catchup: boolean;
  /** Without `catchup`: a run that is late by up to this time counts as not missed. */
  readonly slackMs: number;
}

/** The next run of a timetable, null for none, or its error. */
export type DueOutcome =
  | { readonly ok: true; readonly due: DueFacts | null }
  | { readonly ok: false; readonly error: ErrorFacts };

/**
 * The key of a trigger class's program; a registered symbol, shared by all copies of the SDK.
 * @example const program = (kind: { [TRIGGER]?: TriggerProgram }) => kind[TRIGGER];
 */
export const TRIGGER = Symbol.for("tradewind.trigger");

/**
 * The export of every bundle that lists its top-level classes, including the triggers it defines.
 * @example const classes = (bundle: Record<string, unknown>) => bundle[CLASSES_EXPORT];
 */
export const CLASSES_EXPORT = "tradewind$classes";

/** The functions of a trigger class that a trigger runner calls, found under {@link TRIGGER}. */
export interface TriggerProgram {
  readonly protocol: 1;
  readonly id: string;
  /** Rejects if the arguments do not satisfy the trigger's schema. */
  start(args: Json, host: TriggerHost): Promise<RunningTrigger>;
  /** Runs its `onCancel` for one wait, with a context of the SDK. Missing in SDKs without it. */
  cancel?(args: Json, ctx: unknown): Promise<void>;
}

/**
 * Why a trigger is aborted: no task waits ("cancelled"), its event is stored ("fired"), another triggerer runs it
 * ("moved"), or its process stops or its schedule is paused ("stopped").
 * @example const isFinal = (kind: TriggerAbortKind) => kind === "cancelled" || kind === "fired";
 */
export type TriggerAbortKind = "cancelled" | "fired" | "moved" | "stopped";

/** One running trigger. */
export interface RunningTrigger {
  /** The next value that it yields; the call confirms that the last event is stored. Rejects if user code throws. */
  next(): Promise<TriggerYield>;
  /** Runs after the last event or the abort; errors are logged and have no other effect. */
  cleanup(): Promise<void>;
}

/** A value that a trigger yields: an event, an ending, or the end of its events. */
export type TriggerYield =
  /** `key` distinguishes two events if two triggerers run the same trigger; null: by payload. */
  | { readonly kind: "event"; readonly payload: Json; readonly key: string | null }
  /** Ends the waiting task without a worker. */
  | { readonly kind: "ending"; readonly ending: TriggerEnding }
  /** It returned: there will be no more events. */
  | { readonly kind: "done" };

/** How a trigger ends the waiting task. */
export type TriggerEnding =
  | { readonly kind: "success"; readonly output: Json }
  | { readonly kind: "failed"; readonly reason: string; readonly retry: boolean }
  | { readonly kind: "skipped"; readonly reason: string | null };

/** The functions of the process that runs a trigger. */
export interface TriggerHost {
  readonly abort: AbortSignal;
  log(level: LogLevel, message: string, fields?: Readonly<Record<string, Json>>): void;
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  /** Records that the trigger has polled its source, for status displays. */
  polled(): void;
  /** Runs `work` once fewer than `limit` others are running for the same key, e.g. a host name. */
  limited<T>(key: string, limit: number, work: () => Promise<T>): Promise<T>;
}
