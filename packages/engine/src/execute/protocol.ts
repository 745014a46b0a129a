/**
 * The messages between a supervisor and its task-runner child, as JSON lines on a socket pair. Log output does not
 * travel here: it has a pipe of its own (log-frame.ts), so that a flood blocks the writer instead of filling a queue.
 */

import type { Json, TriggerCall } from "@tradewind/sdk/manifest";
import type {
  CallbackCall,
  CallbackOutcome,
  TaskCall,
  TaskOutcome,
  TriggerRunRequest,
} from "@tradewind/sdk/program";

/** The child's file descriptors of its channel and of its log pipe, after the standard streams. */
export const CHANNEL_FD = 3;
export const LOG_FD = 4;

/** Characters of JSON a task may return. */
export const MAX_OUTPUT_LENGTH = 16 * 1024 * 1024;

interface Assignment<K extends string, C> {
  readonly k: K;
  /** The attempt, or the callback's id. */
  readonly id: string;
  readonly bundle: string;
  readonly call: Omit<C, "host">;
  /** Bytes of log after which the child drops output at its source. */
  readonly logLimit: number;
}

export type RunMessage = Assignment<"run", TaskCall>;
export type CallbackMessage = Assignment<"callback", CallbackCall>;

export type ToChild =
  | RunMessage
  | CallbackMessage
  | { readonly k: "abort"; readonly id: string; readonly why: "timeout" | "cancel"; readonly reason: string }
  | { readonly k: "reply"; readonly n: number; readonly value?: Json; readonly error?: string }
  | { readonly k: "exit" };

/** What user code asks for while it runs. */
export type Question =
  | { readonly what: "output"; readonly taskId: string; readonly mapIndex: number | null }
  | { readonly what: "variable"; readonly key: string }
  | { readonly what: "connection"; readonly connectionId: string }
  | { readonly what: "recall" }
  | { readonly what: "remember"; readonly name: string; readonly value: Json }
  | { readonly what: "triggerRun"; readonly request: TriggerRunRequest }
  /** Of a trigger that waits for something in our own database. */
  | { readonly what: "check"; readonly trigger: TriggerCall };

/** What to tell user code when its question could not be answered. */
export function failureText(ask: Question): string {
  return `The engine could not ${TASKS[ask.what](ask as never)}; its log says why.`;
}

const TASKS: { readonly [W in Question["what"]]: (ask: Extract<Question, { what: W }>) => string } = {
  output: (ask) => `read the output of task "${ask.taskId}"`,
  variable: (ask) => `read variable "${ask.key}"`,
  connection: (ask) => `read connection "${ask.connectionId}"`,
  recall: () => "read the steps of this try",
  remember: (ask) => `keep the result of step "${ask.name}"`,
  check: (ask) => `ask the trigger ${ask.trigger.kind}`,
  triggerRun: (ask) => `make a run of DAG "${ask.request.dagId}"`,
};

export interface EndedMessage {
  readonly k: "ended";
  readonly id: string;
  readonly outcome: TaskOutcome | CallbackOutcome;
  /** All bytes this child ever wrote to the log pipe: the log is complete when that many were read. */
  readonly logged: number;
  /** Bytes of this attempt's output that the child dropped because of `logLimit`. */
  readonly dropped: number;
  /** The abort had reached user code before it ended. */
  readonly aborted: boolean;
  /** The program did not end by itself (uncaught error, never settled): its callbacks have not run. */
  readonly crashed: boolean;
  /** Why this process must not run another task; null when it may. */
  readonly unclean: string | null;
}

export type FromChild =
  | { readonly k: "ready" }
  | { readonly k: "request"; readonly id: string; readonly n: number; readonly ask: Question }
  | EndedMessage;

/** A message as it comes from a process that runs user code: trusted only after this. */
export function readFromChild(raw: unknown): FromChild | null {
  if (!isRecord(raw)) return null;
  if (raw.k === "ready") return { k: "ready" };
  if (typeof raw.id !== "string") return null;
  if (raw.k === "request") return isQuestion(raw.ask) && typeof raw.n === "number" ? (raw as never) : null;
  if (raw.k !== "ended" || !isOutcome(raw.outcome)) return null;
  return typeof raw.logged === "number" && typeof raw.dropped === "number" ? (raw as never) : null;
}

function isQuestion(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (raw.what === "variable") return typeof raw.key === "string";
  if (raw.what === "connection") return typeof raw.connectionId === "string";
  if (raw.what === "recall") return true;
  if (raw.what === "remember") return typeof raw.name === "string" && raw.value !== undefined;
  if (raw.what === "triggerRun") return isRunRequest(raw.request);
  if (raw.what === "check") return isRecord(raw.trigger) && isTriggerCall(raw.trigger);
  return raw.what === "output" && typeof raw.taskId === "string" && isMapIndex(raw.mapIndex);
}

function isRunRequest(raw: unknown): boolean {
  if (!isRecord(raw) || typeof raw.dagId !== "string" || typeof raw.runId !== "string") return false;
  return isText(raw.logicalDate) && isRecord(raw.conf);
}

function isMapIndex(raw: unknown): boolean {
  return raw === null || Number.isInteger(raw);
}

function isOutcome(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (typeof raw.ok === "boolean") return raw.ok || isErrorFacts(raw.error);
  if (raw.kind === "success")
    return Array.isArray(raw.skip) && raw.skip.every((id) => typeof id === "string");
  if (raw.kind === "skipped") return raw.reason === null || typeof raw.reason === "string";
  if (raw.kind === "deferred") return isDeferral(raw);
  if (raw.kind === "rescheduled") return isDelay(raw.afterMs);
  return raw.kind === "failed" && typeof raw.retry === "boolean" && isErrorFacts(raw.error);
}

function isTriggerCall(trigger: Record<string, unknown>): boolean {
  if (typeof trigger.kind !== "string" || typeof trigger.queue !== "string") return false;
  const hasWake = trigger.wake === null || (isRecord(trigger.wake) && isWake(trigger.wake));
  const hasTimed = trigger.timed === null || (isRecord(trigger.timed) && trigger.wake !== null);
  if (!hasWake || !hasTimed || trigger.args === undefined) return false;
  if (trigger.source !== "builtin" && trigger.source !== "bundle") return false;
  return trigger.replicas === 1 || trigger.replicas === 2;
}

function isDeferral(raw: Record<string, unknown>): boolean {
  if (!isRecord(raw.trigger) || !isTriggerCall(raw.trigger) || raw.kwargs === undefined) return false;
  if (raw.timeoutMs !== null && !isDelay(raw.timeoutMs)) return false;
  const isKnown = ON_TIMEOUT.has(raw.onTimeout) && (raw.onFailure === "fail" || raw.onFailure === "resume");
  return isKnown && isText(raw.method) && isText(raw.name);
}

const ON_TIMEOUT: ReadonlySet<unknown> = new Set(["fail", "fatal", "skip", "resume"]);

function isWake(wake: Record<string, unknown>): boolean {
  return typeof wake.at === "string" ? !Number.isNaN(Date.parse(wake.at)) : isDelay(wake.afterMs);
}

/** Milliseconds that can be added to a date: at most 10,000 years. */
function isDelay(raw: unknown): boolean {
  return typeof raw === "number" && raw >= 0 && raw <= 3.2e14;
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
