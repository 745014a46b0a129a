/**
 * The messages between a supervisor and its task-runner child, as JSON lines on a socket pair. Log output does not
 * travel here: it has a pipe of its own (log-frame.ts), so that a flood blocks the writer instead of filling a queue.
 */

import type { Json } from "@tradewind/sdk/manifest";
import type { CallbackCall, CallbackOutcome, TaskCall, TaskOutcome } from "@tradewind/sdk/program";

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
  | { readonly what: "connection"; readonly connectionId: string };

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
  return raw.what === "output" && typeof raw.taskId === "string" && isMapIndex(raw.mapIndex);
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
  return raw.kind === "failed" && typeof raw.retry === "boolean" && isErrorFacts(raw.error);
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
