/**
 * The messages between a supervisor and its task-runner child, as JSON lines on a socket pair. Log output has a pipe of
 * its own (log-frame.ts), so that a flood blocks the writer instead of filling a queue.
 */

import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  CallbackCall,
  CallbackOutcome,
  ErrorFacts,
  ReactCall,
  ReactOutcome,
  ReceivedSignal,
  RunEndRequest,
  SignalToSend,
  TaskCall,
  TaskOutcome,
  TriggerRunRequest,
} from "@tradewind/sdk/program";
import type { AttemptOutcome } from "../../model/index.ts";
import { isDelay, isKey, isTriggerCall, isWait } from "../../model/trigger/trigger-call.ts";

import type { SignalAction } from "../contract.ts";

/** The child's file descriptors of its channel and of its log pipe, after the standard streams. */
export const CHANNEL_FD = 3;
export const LOG_FD = 4;

/** Characters of a large value that one message carries. */
export const PIECE_LENGTH = 64 * 1024;

/** The place of a large value in a call or a reply, and the number of its pieces. */
export interface PieceTarget {
  readonly at: readonly (string | number)[];
  readonly slot: number;
}

interface Assignment<K extends string, C> {
  readonly k: K;
  /** The id of the attempt, the callback or the reaction. */
  readonly id: string;
  readonly bundle: string;
  readonly call: Omit<C, "host">;
  /** Bytes of log after which the child drops output. */
  readonly logLimit: number;
  /** The large inputs of the call. */
  readonly large?: readonly PieceTarget[];
}

export interface RunMessage extends Assignment<"run", TaskCall> {
  /** The signals of `startSignals`; left out: the child requests them when they are needed. */
  readonly signals?: readonly ReceivedSignal[];
}
export type CallbackMessage = Assignment<"callback", Omit<CallbackCall, "trigger">>;
export type ReactMessage = Assignment<"react", ReactCall>;

export type JobMessage = RunMessage | CallbackMessage | ReactMessage;

/** What the program returns for a job. */
export type JobOutcome = TaskOutcome | CallbackOutcome | ReactOutcome;

export type ToChild =
  | JobMessage
  | { readonly k: "abort"; readonly id: string; readonly why: "timeout" | "cancel"; readonly reason: string }
  | {
      readonly k: "reply";
      readonly n: number;
      readonly value?: Json;
      readonly error?: string;
      /** The error code for user code; left out if the details are only in the engine's log. */
      readonly code?: string;
      readonly large?: readonly PieceTarget[];
    }
  /** Of a large value that the next run or reply refers to. */
  | { readonly k: "piece"; readonly slot: number; readonly text: string }
  | { readonly k: "exit" };

/** The requests of user code while it runs. */
export type Question =
  | { readonly what: "output"; readonly taskId: string; readonly mapIndex: number | null }
  /** `name`: of the environment variable that it is read for. */
  | { readonly what: "variable"; readonly key: string; readonly name?: string }
  | { readonly what: "connection"; readonly connectionId: string }
  | { readonly what: "recall" }
  | { readonly what: "startSignals" }
  | { readonly what: "remember"; readonly name: string; readonly value: Json }
  | { readonly what: "triggerRun"; readonly request: TriggerRunRequest }
  | { readonly what: "runEnd"; readonly request: RunEndRequest }
  | { readonly what: "isLatest" }
  | { readonly what: "send"; readonly signal: SignalToSend }
  /** Of a trigger that waits for something in our own database. */
  | { readonly what: "check"; readonly trigger: TriggerCall };

/** The error message for user code if its request failed. */
export function failureText(ask: Question): string {
  return `The engine could not ${TASKS[ask.what](ask as never)}; see its log for the reason.`;
}

const TASKS: { readonly [W in Question["what"]]: (ask: Extract<Question, { what: W }>) => string } = {
  output: (ask) => `read the output of task "${ask.taskId}"`,
  variable: (ask) => `read variable "${ask.key}"`,
  connection: (ask) => `read connection "${ask.connectionId}"`,
  recall: () => "read the steps of this try",
  startSignals: () => "read the signals that started this task",
  remember: (ask) => `keep the result of step "${ask.name}"`,
  send: (ask) => `send the signal "${ask.signal.key}"`,
  check: (ask) => `ask the trigger ${ask.trigger.kind}`,
  triggerRun: (ask) => `make a run of DAG "${ask.request.dagId}"`,
  runEnd: (ask) => `read the outputs of run "${ask.request.runId}" of DAG "${ask.request.dagId}"`,
  isLatest: () => "find out whether this run is the latest",
};

/** The child's report of the end of a job. */
export interface EndedMessage {
  readonly k: "ended";
  readonly id: string;
  readonly outcome: JobOutcome;
  /** All bytes that this child has written to the log pipe: the log is complete when that many are read. */
  readonly logged: number;
  /** Bytes of this attempt's output that the child dropped because of `logLimit`. */
  readonly dropped: number;
  /** The abort reached user code before the job ended. */
  readonly aborted: boolean;
  /** Why this process must not run another task; null: it may. */
  readonly unclean: string | null;
  /** The output was sent in pieces. */
  readonly large?: true;
  /** Names of environment variables that were set for the job. */
  readonly env?: readonly string[];
}

export type FromChild =
  | { readonly k: "ready" }
  | { readonly k: "request"; readonly id: string; readonly n: number; readonly ask: Question }
  /** Of a large output, ahead of the end. */
  | { readonly k: "piece"; readonly id: string; readonly text: string }
  | EndedMessage;

/** For an invalid message: the request that waits for a reply, or "end" if it was to report the end of the job. */
export function misunderstood(raw: unknown, id: string | undefined): { question: number } | "end" | null {
  if (!isRecord(raw) || raw.id !== id) return null;
  if (raw.k === "ended") return "end";
  return raw.k === "request" && typeof raw.n === "number" ? { question: raw.n } : null;
}

/** Validates a message of the child, which runs user code. null: invalid. */
export function readFromChild(raw: unknown): FromChild | null {
  if (!isRecord(raw)) return null;
  if (raw.k === "ready") return { k: "ready" };
  if (typeof raw.id !== "string") return null;
  if (raw.k === "request") return isQuestion(raw.ask) && typeof raw.n === "number" ? (raw as never) : null;
  if (raw.k === "piece") return typeof raw.text === "string" ? (raw as never) : null;
  if (raw.k !== "ended" || !isOutcome(raw.outcome)) return null;
  if (raw.env !== undefined && !isTexts(raw.env)) return null;
  return typeof raw.logged === "number" && typeof raw.dropped === "number" ? (raw as never) : null;
}

/** Validates a request of user code that a worker passes on. null: invalid. */
export function readQuestion(raw: unknown): Question | null {
  return isQuestion(raw) ? (raw as Question) : null;
}

/** Validates the end of an attempt as a worker reports it. null: invalid. */
export function readAttemptOutcome(raw: unknown): AttemptOutcome | null {
  if (!isRecord(raw)) return null;
  if (raw.kind === "cancelled") return { kind: "cancelled" };
  if (raw.kind === "lost")
    return typeof raw.reason === "string" ? { kind: "lost", reason: raw.reason } : null;
  // The end of a callback has no kind.
  if (raw.ok !== undefined || !isOutcome(raw)) return null;
  return raw.stored === undefined || isReference(raw.stored) ? (raw as unknown as AttemptOutcome) : null;
}

/** Validates the end of a callback or of a reaction as a worker reports it. null: invalid. */
export function readCallEnd(raw: unknown): { error: ErrorFacts | null; action?: SignalAction | null } | null {
  if (!isRecord(raw) || !(raw.error === null || isErrorFacts(raw.error))) return null;
  const { action = null, error } = raw;
  return action === null || ACTIONS.has(action) ? ({ action, error } as never) : null;
}

function isReference(raw: unknown): boolean {
  if (!isRecord(raw) || typeof raw.store !== "string" || typeof raw.key !== "string") return false;
  const isCounted = Number.isSafeInteger(raw.id) && Number.isSafeInteger(raw.bytes);
  return isCounted && typeof raw.sha256 === "string" && (raw.items === null || Number.isInteger(raw.items));
}

function isQuestion(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (raw.what === "variable") return typeof raw.key === "string" && isText(raw.name ?? null);
  if (raw.what === "connection") return typeof raw.connectionId === "string";
  if (raw.what === "recall" || raw.what === "startSignals" || raw.what === "isLatest") return true;
  if (raw.what === "remember") return typeof raw.name === "string" && raw.value !== undefined;
  if (raw.what === "triggerRun") return isRunRequest(raw.request);
  if (raw.what === "runEnd") return isRunEndRequest(raw.request);
  if (raw.what === "send") return isSignal(raw.signal) && !isOfAsset(raw.signal);
  if (raw.what === "check") return isTriggerCall(raw.trigger);
  return raw.what === "output" && typeof raw.taskId === "string" && isMapIndex(raw.mapIndex);
}

function isRunRequest(raw: unknown): boolean {
  if (!isRecord(raw) || typeof raw.dagId !== "string" || typeof raw.runId !== "string") return false;
  return isText(raw.logicalDate) && isRecord(raw.conf);
}

function isRunEndRequest(raw: unknown): boolean {
  return (
    isRecord(raw) && typeof raw.dagId === "string" && typeof raw.runId === "string" && isTexts(raw.tasks)
  );
}

function isSignal(raw: unknown): boolean {
  if (!isRecord(raw) || raw.value === undefined) return false;
  return isName(raw.namespace) && isName(raw.key) && !OWN_NAMESPACES.has(raw.namespace as string);
}

/** Asset signals are sent with a success only. */
function isOfAsset(raw: unknown): boolean {
  return isRecord(raw) && raw.namespace === "asset";
}

/** Only the engine sends signals in these namespaces. */
const OWN_NAMESPACES: ReadonlySet<string> = new Set(["task", "run", "action", "webhook", "deadline"]);

/** PostgreSQL does not store NUL in text. */
function isName(raw: unknown): boolean {
  return typeof raw === "string" && raw.length > 0 && raw.length <= 1_000 && !raw.includes("\0");
}

function isMapIndex(raw: unknown): boolean {
  return raw === null || Number.isInteger(raw);
}

function isOutcome(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (raw.ok === true) return raw.action === undefined || ACTIONS.has(raw.action);
  if (raw.ok === false) return isErrorFacts(raw.error);
  if (raw.kind === "success")
    return isTexts(raw.skip) && (raw.signals === undefined || isSignals(raw.signals));
  if (raw.kind === "skipped") return raw.reason === null || typeof raw.reason === "string";
  if (raw.kind === "deferred") return isDeferral(raw);
  if (raw.kind === "rescheduled") return isDelay(raw.afterMs);
  return raw.kind === "failed" && typeof raw.retry === "boolean" && isErrorFacts(raw.error);
}

function isDeferral(raw: Record<string, unknown>): boolean {
  if (!isWait(raw.trigger, raw.kwargs)) return false;
  if (raw.timeoutMs !== null && !isDelay(raw.timeoutMs)) return false;
  if (raw.onCancel !== undefined && raw.onCancel !== true) return false;
  if (raw.cancelInputs !== undefined && !isRecord(raw.cancelInputs)) return false;
  const isKnown = ON_TIMEOUT.has(raw.onTimeout) && (raw.onFailure === "fail" || raw.onFailure === "resume");
  return isKnown && (raw.method === null || isKey(raw.method)) && (raw.name === null || isKey(raw.name));
}

const ACTIONS: ReadonlySet<unknown> = new Set(["NONE", "START", "RESTART", "STOP"]);

const ON_TIMEOUT: ReadonlySet<unknown> = new Set(["fail", "fatal", "skip", "resume"]);

function isTexts(raw: unknown): boolean {
  return Array.isArray(raw) && raw.every((text) => typeof text === "string");
}

function isSignals(raw: unknown): boolean {
  return Array.isArray(raw) && raw.every(isSignal);
}

function isErrorFacts(raw: unknown): boolean {
  if (!isRecord(raw) || typeof raw.name !== "string" || typeof raw.message !== "string") return false;
  return isText(raw.stack) && isText(raw.code);
}

function isText(raw: unknown): boolean {
  return raw === null || typeof raw === "string";
}

function isRecord(raw: unknown): raw is Record<string, unknown> {
  return typeof raw === "object" && raw !== null;
}
