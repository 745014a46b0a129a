/**
 * The messages between the trigger supervisor and its child, as JSON lines on a socket pair. A trigger is identified by
 * its `serial`, a number that is unique per start: late messages about a trigger that was stopped, or started again
 * elsewhere, carry an unknown serial.
 *
 * Stalls use a separate pipe, written by a thread that still runs when the child's event loop is blocked.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { LogLevel, TriggerAbortKind } from "@tradewind/sdk/program";
import type { TriggerOutcome } from "../../model/index.ts";
import type { IgnoredAbort, TriggerWork } from "../contract.ts";

/** The child's file descriptors of its channel and of its pipe for stalls, after the standard streams. */
export const CHANNEL_FD = 3;
export const STALL_FD = 4;

/** Maximum size of an event, in bytes of JSON. */
export const MAX_EVENT_BYTES = 1024 * 1024;

/** Maximum length of an event's key, in characters. */
export const MAX_KEY_LENGTH = 4_096;

/**
 * Maximum length of a line from the child, in characters: an event, its key, and the envelope. The child truncates or
 * splits everything else. A child that sends a longer line is broken, and is ended.
 */
export const MAX_LINE_LENGTH = 2 * 1024 * 1024;

export interface Assignment extends TriggerWork {
  readonly serial: number;
  /** An earlier start of it had an event: ending without another one is no failure. */
  readonly hasFired: boolean;
}

export type ToRunner =
  | { readonly k: "run"; readonly work: readonly Assignment[] }
  | { readonly k: "ack"; readonly serial: number }
  | { readonly k: "stop"; readonly serials: readonly number[]; readonly why: TriggerAbortKind }
  | { readonly k: "reply"; readonly n: number; readonly value?: Json; readonly error?: string }
  | { readonly k: "ping" }
  | { readonly k: "close" };

/** A request of a trigger. */
export type TriggerQuestion =
  | { readonly what: "variable"; readonly key: string }
  | { readonly what: "connection"; readonly connectionId: string };

export interface LogRecord {
  readonly serial: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields?: Readonly<Record<string, Json>>;
}

export type FromRunner =
  | { readonly k: "ready" }
  | { readonly k: "pong" }
  | { readonly k: "outcome"; readonly serial: number; readonly outcome: TriggerOutcome }
  /** It returned after its last event. */
  | { readonly k: "done"; readonly serial: number }
  /** What its last event told of is so no more. */
  | { readonly k: "ceased"; readonly serial: number }
  /** The members of a wait for all that have fired so far. */
  | { readonly k: "members"; readonly serial: number; readonly fired: readonly string[] }
  /** Its code went on after its abort. By `id`: its serial is not known any more. */
  | ({ readonly k: "ignoredAbort" } & IgnoredAbort)
  | { readonly k: "logs"; readonly records: readonly LogRecord[] }
  | { readonly k: "signs"; readonly polled: readonly number[] }
  | { readonly k: "request"; readonly serial: number; readonly n: number; readonly ask: TriggerQuestion };

/** The owner of the code: a trigger's serial, or the path of a bundle whose top level runs. */
export type Culprit = number | string | null;

export type StallReport =
  /** The loop has been blocked for `ms` so far, and this is where it was observed. */
  | { readonly k: "seen"; readonly who: Culprit; readonly ms: number; readonly stack: string }
  | { readonly k: "over"; readonly ms: number };

/** Validates a message from a process that runs user code. */
export function readFromRunner(raw: unknown): FromRunner | null {
  if (!isRecord(raw)) return null;
  switch (raw["k"]) {
    case "ready":
    case "pong":
      return { k: raw["k"] };
    case "outcome":
      return isSerial(raw["serial"]) && isOutcome(raw["outcome"]) ? (raw as never) : null;
    case "done":
    case "ceased":
      return isSerial(raw["serial"]) ? (raw as never) : null;
    case "members":
      return isSerial(raw["serial"]) && isListOf(raw["fired"], (name) => typeof name === "string")
        ? (raw as never)
        : null;
    case "ignoredAbort":
      return isIgnoredAbort(raw) ? (raw as never) : null;
    case "logs":
      return isListOf(raw["records"], isLogRecord) ? (raw as never) : null;
    case "signs":
      return isListOf(raw["polled"], isSerial) ? (raw as never) : null;
    case "request":
      return isSerial(raw["serial"]) && isSerial(raw["n"]) && isQuestion(raw["ask"]) ? (raw as never) : null;
    default:
      return null;
  }
}

export function readStallReport(raw: unknown): StallReport | null {
  if (!isRecord(raw) || typeof raw["ms"] !== "number") return null;
  if (raw["k"] === "over") return { k: "over", ms: raw["ms"] };
  const { who, stack } = raw;
  if (raw["k"] !== "seen" || typeof stack !== "string") return null;
  return who === null || isSerial(who) || typeof who === "string" ? (raw as never) : null;
}

function isOutcome(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  // A child must not name the webhook calls and signals that an event consists of.
  if (raw["kind"] === "event") {
    const named = raw["calls"] ?? raw["signals"];
    return raw["payload"] !== undefined && isText(raw["key"]) && named === undefined;
  }
  if (raw["kind"] === "failed") return isErrorFacts(raw["error"]);
  return raw["kind"] === "ending" && isEnding(raw["ending"]);
}

/** Also used by the child, on values from a bundle's own copy of the SDK. */
export function isEnding(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (raw["kind"] === "success") return raw["output"] !== undefined;
  if (raw["kind"] === "skipped") return isText(raw["reason"]);
  return raw["kind"] === "failed" && typeof raw["reason"] === "string" && typeof raw["retry"] === "boolean";
}

function isErrorFacts(raw: unknown): boolean {
  if (!isRecord(raw) || typeof raw["name"] !== "string" || typeof raw["message"] !== "string") return false;
  return isText(raw["stack"]) && isText(raw["code"]);
}

function isLogRecord(raw: unknown): boolean {
  if (!isRecord(raw) || !isSerial(raw["serial"]) || typeof raw["message"] !== "string") return false;
  const { level, fields } = raw;
  return LEVELS.has(level) && (fields === undefined || isRecord(fields));
}

const LEVELS = new Set<unknown>(["debug", "info", "warn", "error"] satisfies LogLevel[]);

function isIgnoredAbort({ id, kind, args, ms }: Record<string, unknown>): boolean {
  return isSerial(id) && isSerial(ms) && typeof kind === "string" && typeof args === "string";
}

function isQuestion(raw: unknown): boolean {
  if (!isRecord(raw)) return false;
  if (raw["what"] === "variable") return typeof raw["key"] === "string";
  return raw["what"] === "connection" && typeof raw["connectionId"] === "string";
}

function isListOf(raw: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(raw) && raw.every(isItem);
}

function isSerial(raw: unknown): boolean {
  return Number.isSafeInteger(raw);
}

function isText(raw: unknown): boolean {
  return raw === null || typeof raw === "string";
}

function isRecord(raw: unknown): raw is Record<string, unknown> {
  return typeof raw === "object" && raw !== null;
}
