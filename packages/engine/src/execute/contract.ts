/**
 * The contract between the scheduler and whatever runs attempts. An executor is told what to run and reports what
 * happened; it is never polled, and it never touches the database. Every message names the attempt it speaks for:
 * the receiver decides, by that token alone, whether it still matters.
 */

import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
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
  ResumePoint,
  RunEndRequest,
  RunFacts,
  SettledInput,
  SignalToSend,
  TriggeredRunFacts,
  TriggerRunRequest,
} from "@tradewind/sdk/program";
import type { AttemptOutcome, Known, LargePlace } from "../model/index.ts";

/** One attempt, complete: nothing needs to be looked up to run it. */
export interface Workload {
  readonly attempt: string;
  readonly dagRunId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly maxTries: number;
  readonly bundleHash: string;
  /** Where this machine keeps the bundle; imported by the child. */
  readonly bundlePath: string;
  readonly resumePoint: ResumePoint | null;
  /** How long ago this try first started; `timeoutMs` is what is left of its time. */
  readonly elapsedMs: number;
  readonly inputs: Readonly<Record<string, SettledInput>>;
  /** What is large among the inputs, and where in them it belongs: read just before the child gets it. */
  readonly large?: readonly LargePlace[];
  readonly run: RunFacts;
  readonly conf: Json;
  /** The versions of the signals that this try is due to; left out: none. */
  readonly startedBy?: readonly number[];
  /** All of these signals, in this order; left out: they are read when the process asks for them. */
  readonly signals?: readonly ReceivedSignal[];
  /** Of a streaming task, which does not end by itself: how long it may take once it is asked to. Left out: of others. */
  readonly streamGraceMs?: number;
  readonly timeoutMs: number | null;
  readonly memoryMb: number | null;
  readonly isolation: "warm" | "fresh";
  readonly logPath: string;
}

/** A callback to be run by a child: of the run (taskId null), of a group, or of a task whose own process could not run it. */
export interface CallbackWorkload {
  readonly callbackId: string;
  readonly bundleHash: string;
  readonly bundlePath: string;
  readonly taskId: string | null;
  readonly groupId?: string | null;
  /** Of a callback of one item of a mapped group. */
  readonly mapIndex?: number;
  readonly event: CallbackCall["event"];
  readonly deadline?: DeadlineCall | null;
  readonly wait?: CancelledWait | null;
  readonly tryNumber: number;
  readonly error: ErrorFacts | null;
  readonly run: RunFacts;
  readonly dagRunId: number;
  readonly conf: Json;
  readonly logPath: string;
}

/** A signal, to be put to the `onSignal` of one task by a child. */
export interface ReactionWorkload {
  readonly reactionId: string;
  readonly bundleHash: string;
  readonly bundlePath: string;
  readonly taskId: string;
  readonly tryNumber: number;
  readonly run: RunFacts;
  readonly dagRunId: number;
  readonly conf: Json;
  readonly signal: ReactCall["signal"];
  /** When it has not answered by then, it has failed, and its process is ended. */
  readonly timeoutMs: number;
  readonly logPath: string;
}

/** What a signal means to a task. */
export type SignalAction = Extract<ReactOutcome, { ok: true }>["action"];

/** How an attempt is asked to stop. */
export interface CancelTerms {
  /** From asking it to killing it; the executor's own unless told. Asked again, it never gets more time than before. */
  readonly graceMs?: number;
  /**
   * If it then ends by itself, with success, that is its outcome; anything else is `cancelled`. It takes all who cancel
   * an attempt to keep its success: one who does not is done with it, before or after.
   */
  readonly keepsSuccess?: boolean;
  /**
   * It is to be started again elsewhere: `lost`, unless it had ended before it could notice. An attempt that is being
   * stopped for another reason keeps the outcome of that reason.
   */
  readonly isLost?: boolean;
}

/** What an executor reports of an attempt: at most one start, then exactly one end. */
export type AttemptReport =
  | { readonly type: "started"; readonly attempt: string; readonly at: number; readonly pid: number }
  | {
      readonly type: "ended";
      readonly attempt: string;
      readonly at: number;
      readonly outcome: AttemptOutcome;
    };

export type ExecutorEvent =
  | AttemptReport
  | { readonly type: "callbackEnded"; readonly callbackId: string; readonly error: ErrorFacts | null }
  /** Either an answer, or an error: then nobody knows what the signal means. */
  | {
      readonly type: "reactionEnded";
      readonly reactionId: string;
      readonly action: SignalAction | null;
      readonly error: ErrorFacts | null;
    }
  /** Capacity grew: `freeSlots` may be read again. */
  | { readonly type: "capacity" };

/** What user code may read while it runs; answered by the process that owns the database connection. */
export interface TaskServices {
  output(dagRunId: number, taskId: string, mapIndex: number | null): Promise<Known | undefined>;
  variable(key: string): Promise<string | undefined>;
  connection(id: string): Promise<ConnectionFacts | undefined>;
  recall(of: AttemptPlace): Promise<Readonly<Record<string, JournalEntry>>>;
  /** Rejects when the attempt is no longer the current one. */
  remember(of: AttemptPlace, step: { readonly name: string; readonly value: Json }): Promise<void>;
  /** @param by The attempt that asks; null: a callback. */
  triggerRun(request: TriggerRunRequest, by: AttemptPlace | null): Promise<TriggeredRunFacts>;
  /** null: there is no such run. */
  runEnd(request: RunEndRequest): Promise<FoundRun | null>;
  /** Of the run itself: whether no later one of its schedule has fallen due. */
  isLatest(dagRunId: number): Promise<boolean>;
  /** Signals by their versions, in this order, without those that are no longer on the log. */
  signals(versions: readonly number[]): Promise<readonly ReceivedSignal[]>;
  /** Stores a signal in the name of this task. */
  send(signal: SignalToSend, from: SenderPlace): Promise<{ readonly version: number }>;
  /**
   * Whether a trigger that waits for something in our own database would fire now, for a wait begun `agoMs` ago in a run
   * begun at `runStartedAt`.
   */
  check(trigger: TriggerCall, agoMs: number, runStartedAt: string | null): Promise<Json | undefined>;
}

/** Which task of which run a signal comes from. */
export interface SenderPlace {
  readonly dagId: string;
  readonly runId: string;
  readonly taskId: string;
}

/** How another run stands, and those of its tasks that were asked for. */
export interface FoundRun {
  readonly state: string;
  readonly tasks: readonly {
    readonly taskId: string;
    readonly state: SettledInput["state"];
    readonly value: Known | undefined;
  }[];
}

/** Which attempt, and of what. */
export interface AttemptPlace {
  readonly runId: number;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly tryNumber: number;
  readonly attempt: string;
}

/** How long attempts may run without another word of their owner, in moments of `performance.now()`. */
export interface LeaseTerm {
  /** Nothing is started from then on. */
  readonly trustedUntil: number;
  /** Another owner may start the same attempts from then on. */
  readonly endsAt: number;
}

export interface Executor {
  readonly name: string;
  start(report: (event: ExecutorEvent) => void): Promise<void>;
  /** Takes responsibility at once: every workload is answered by exactly one `ended`. */
  submit(workloads: readonly Workload[]): void;
  submitCallback(workload: CallbackWorkload): void;
  /** Answered by exactly one `reactionEnded`. */
  submitReaction(workload: ReactionWorkload): void;
  /** Of these attempts, the ones this executor still has in hand; the others are lost. */
  adopt(attempts: readonly string[]): Promise<ReadonlySet<string>>;
  /** Aborts, then kills after the grace period. Unknown attempts are ignored. */
  cancel(attempt: string, reason: string, how?: CancelTerms): void;
  /**
   * The owner's lease was acquired or renewed. When trust ends, what waits is reported as lost at once, and what runs is
   * stopped so that no process of it is left at `endsAt`. An executor that is never told runs without a lease.
   */
  extendLease?(term: LeaseTerm): void;
  /** How many more workloads may be submitted now. */
  freeSlots(): number;
  /** How many it runs at once (null: no limit), and how many more could start now: not those that would wait for a process. */
  slots(): { readonly slots: number | null; readonly free: number };
  /** Slots for streaming tasks only, which take these first; not counted by `freeSlots` and `slots`. Left out: none. */
  readonly streamingSlots?: number;
  /**
   * Starts no further attempt: those that have not begun, and those that are submitted from now on, are reported as lost.
   * Running attempts and callbacks go on. Left out: the executor runs on until it is stopped.
   */
  drain?(): void;
  /** Drains, asks running attempts to stop, and kills after `graceMs` what is left; attempts are reported as lost. */
  stop(graceMs: number): Promise<void>;
}
