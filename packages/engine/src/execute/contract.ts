/**
 * The contract between the scheduler and its executors. An executor receives assignments and reports events. It is never
 * polled. Every message names its attempt: by that token alone the receiver decides
 * whether the message still counts.
 */

import type { Json, TaskManifest, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  CallbackCall,
  CancelledWait,
  ConnectionFacts,
  DeadlineCall,
  ErrorFacts,
  JournalEntry,
  ReactCall,
  ReactOutcome,
  ReceivedSignal,
  RunEndRequest,
  RunFacts,
  SettledInput,
  SignalToSend,
  TaskCall,
  TriggeredRunFacts,
  TriggerRunRequest,
} from "@tradewind/sdk/program";
import type { AttemptOutcome, Known, LargePlace } from "../model/index.ts";
import type { Question } from "./attempt/protocol.ts";

/**
 * What every assignment needs. It is plain JSON without a path of any machine: the process that runs it resolves the bundle
 * and the log itself.
 */
interface AnyAssignment {
  /** The id of the attempt, of the callback or of the reaction: a UUID. */
  readonly id: string;
  readonly dagRunId: number;
  readonly tryNumber: number;
  readonly bundleHash: string;
  readonly run: RunFacts;
  readonly conf: Json;
  /** Only workers of this queue run it; executors without queues ignore it. */
  readonly queue: string;
  /** The `executorConfig` of its task; left out if there is none, and for callbacks of groups and runs. */
  readonly config?: ExecutorConfig;
  /** The name of its log: a relative path whose parts are ids. */
  readonly logKey: string;
}

/** Settings of one task for its executor, which alone knows their meaning. */
export type ExecutorConfig = NonNullable<TaskManifest["executorConfig"]>;

/** One attempt of a task. */
export interface AttemptAssignment extends AnyAssignment {
  readonly kind: "attempt";
  readonly taskId: string;
  readonly mapIndex: number;
  readonly maxTries: number;
  /** Larger numbers go first. */
  readonly priority: number;
  readonly resumePoint: TaskCall["resumePoint"];
  /** Time since the try started; `timeoutMs` is the remaining time. */
  readonly elapsedMs: number;
  readonly inputs: Readonly<Record<string, SettledInput>>;
  /** The large values among the inputs, and their places: read just before they are sent to the child. */
  readonly large?: readonly LargePlace[];
  /** The versions of the signals that started this try. */
  readonly startSignals?: readonly number[];
  /** All of these signals, in this order; left out: they are read when the child requests them. */
  readonly signals?: readonly ReceivedSignal[];
  /** The grace period of a streaming task, which does not end by itself. Left out for other tasks. */
  readonly streamGraceMs?: number;
  readonly timeoutMs: number | null;
  readonly memoryMb: number | null;
  readonly isolation: "warm" | "fresh";
}

/** A callback of a run (taskId null), a group or a task. */
export interface CallbackAssignment extends AnyAssignment {
  readonly kind: "callback";
  readonly taskId: string | null;
  readonly groupId?: string | null;
  /** Of one item of a mapped group. */
  readonly mapIndex?: number;
  readonly event: CallbackCall["event"];
  readonly deadline?: DeadlineCall | null;
  readonly wait?: CancelledWait | null;
  readonly error: ErrorFacts | null;
}

/** A reaction: a signal for the `onSignal` of one task. */
export interface ReactionAssignment extends AnyAssignment {
  readonly kind: "reaction";
  readonly taskId: string;
  readonly signal: ReactCall["signal"];
  /** Without an answer by then, the reaction fails and its process is ended. */
  readonly timeoutMs: number;
}

export type Assignment = AttemptAssignment | CallbackAssignment | ReactionAssignment;

/** What a signal means to a task. */
export type SignalAction = Extract<ReactOutcome, { ok: true }>["action"];

/** The terms of a cancellation. */
export interface CancelTerms {
  /** Grace period before the process group is killed; default: the executor's. A second cancel cannot extend it. */
  readonly graceMs?: number;
  /**
   * If the attempt then succeeds, it has succeeded; any other end is `cancelled`. With several cancels, the success counts
   * only if all of them keep it.
   */
  readonly keepsSuccess?: boolean;
  /**
   * The attempt is started again elsewhere: it is `lost`, unless it ended before the abort reached it. If it is being
   * ended for another reason already, the outcome of that reason counts.
   */
  readonly isLost?: boolean;
}

/** What an executor reports of an attempt: at most one start, then exactly one end. */
export type AttemptReport = {
  readonly attempt: string;
  readonly at: number;
  /** Of a report that a worker has stored; its time is that of the database. */
  readonly stored?: StoredPlace;
} & (
  | { readonly type: "started"; readonly pid: number }
  | { readonly type: "ended"; readonly outcome: AttemptOutcome }
);

/** The row of a report, and where its attempt runs. */
interface StoredPlace {
  readonly report: number;
  readonly runId: number;
  readonly workerJob: number | null;
  readonly hostname: string | null;
  /** The worker did not report this end: it is gone, or its pod. */
  readonly isHostGone?: boolean;
}

export type ExecutorEvent =
  | AttemptReport
  | { readonly type: "callbackEnded"; readonly callbackId: string; readonly error: ErrorFacts | null }
  /** The action, or the error of the handler. */
  | {
      readonly type: "reactionEnded";
      readonly reactionId: string;
      readonly action: SignalAction | null;
      readonly error: ErrorFacts | null;
    }
  /** Capacity grew: `freeSlots` may be read again. */
  | { readonly type: "capacity" };

/** The requests of user code, answered by the process that owns the database connection. */
export interface TaskServices {
  output(dagRunId: number, taskId: string, mapIndex: number | null): Promise<Known | undefined>;
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  recall(of: AttemptPlace): Promise<Readonly<Record<string, JournalEntry>>>;
  /** Rejects if the attempt is no longer current. */
  remember(of: AttemptPlace, step: { readonly name: string; readonly value: Json }): Promise<void>;
  /** @param by The requesting attempt; null: a callback. */
  triggerRun(request: TriggerRunRequest, by: AttemptPlace | null): Promise<TriggeredRunFacts>;
  /** null: there is no such run. */
  runEnd(request: RunEndRequest): Promise<FoundRun | null>;
  /** true if this is the newest scheduled run of its DAG. */
  isLatest(dagRunId: number): Promise<boolean>;
  /** Signals by version, in this order, without those that were deleted from the log. */
  signals(versions: readonly number[]): Promise<readonly ReceivedSignal[]>;
  /** Stores a signal with this task as its sender. */
  send(signal: SignalToSend, from: SenderPlace): Promise<{ readonly version: number }>;
  /**
   * Evaluates a trigger that waits for something in the engine's database, for a wait that started `agoMs` ago in a run that
   * started at `runStartedAt`. undefined: it would not fire now.
   */
  check(trigger: TriggerCall, agoMs: number, runStartedAt: string | null): Promise<Json | undefined>;
}

/** Answers a request of user code. @param agoMs Time since the try started. */
export type AnswerRequest = (of: Assignment, ask: Question, agoMs: number) => Promise<Known | undefined>;

/** The sender of a signal. */
interface SenderPlace {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}

/** The state of another run and of the requested tasks. */
export interface FoundRun {
  readonly state: string;
  readonly tasks: readonly {
    readonly taskId: string;
    readonly state: SettledInput["state"];
    readonly value: Known | undefined;
  }[];
}

/** An attempt and its task instance. */
export interface AttemptPlace {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly attempt: string;
}

/** How long attempts may run without a renewal of their owner's lease, by `performance.now()`. */
export interface LeaseTerm {
  /** No attempt is started after this moment. */
  readonly trustedUntil: number;
  /** Another owner may start the same attempts after this moment. */
  readonly endsAt: number;
}

/** What a job does with attempts that outlive it. */
export interface RemoteAttempts {
  /** Attempts of runs that this job has taken over. Those that no worker has claimed are launched again. */
  adopt(attempts: readonly AdoptedAttempt[]): void;
  /** The runs may have other owners: attempts that are still current continue, the others are stopped. */
  abandon(attempts: readonly string[]): void;
  /** The ends of these attempts are stored. */
  forget(attempts: readonly string[]): void;
  /** Another owner of its run would find the attempt: its assignment is stored. */
  isStored(attempt: string): boolean;
}

export interface AdoptedAttempt {
  readonly id: string;
  readonly queue: string;
  readonly priority: number;
  readonly config: ExecutorConfig | null;
  /** A worker has it. */
  readonly isClaimed: boolean;
}

export interface Executor {
  readonly name: string;
  /** "local"; "queue": its attempts wait in queues that workers serve; or another word for how it starts attempts. */
  readonly type: string;
  /**
   * Its attempts outlive the scheduler: they run on other machines, their ends are stored reports, and the next owner of a
   * run adopts them. Left out: attempts end with the process of the executor.
   */
  readonly remote?: RemoteAttempts;
  start(report: (event: ExecutorEvent) => void): Promise<void>;
  /** Accepts all assignments. Each gets exactly one `ended`, `callbackEnded` or `reactionEnded`, by its kind. */
  submit(assignments: readonly Assignment[]): void;
  /** Aborts, then kills after the grace period. Unknown attempts are ignored. */
  cancel(attempt: string, reason: string, how?: CancelTerms): void;
  /**
   * The owner's lease was acquired or renewed. When trust ends, waiting attempts are reported as lost at once, and running
   * ones are stopped, so that no process is left at `endsAt`. Never called: the executor runs without a lease.
   */
  extendLease?(term: LeaseTerm): void;
  /** The number of attempts that may be submitted now. */
  freeSlots(): number;
  /** The number of parallel attempts (null: no limit), and how many more could start now without waiting for a process. */
  slots(): { readonly slots: number | null; readonly free: number };
  /** What keeps it from starting attempts now; null: nothing. Left out: it cannot tell. */
  problem?(): string | null;
  /** Slots for streaming tasks only, which take these first; not counted by `freeSlots` and `slots`. Left out: none. */
  readonly streamingSlots?: number;
  /**
   * Starts no further attempt: waiting attempts, and attempts submitted from now on, are reported as lost. Running attempts
   * and callbacks continue. Left out: the executor continues until it is stopped.
   */
  drain?(): void;
  /** Drains, aborts running attempts, and kills the rest after `graceMs`; these attempts are reported as lost. */
  stop(graceMs: number): Promise<void>;
}
