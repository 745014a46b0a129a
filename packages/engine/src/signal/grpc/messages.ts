/** The messages of signals.proto as the loader represents them, and their conversion. */
import type { Json } from "@tradewind/sdk/manifest";
import { EngineError } from "../../service/errors.ts";
import type { DeadLetterDraft, ListenerChange, RetryEntry } from "../../store/signal/signals-listener.ts";
import {
  readPosition,
  type SentSignal,
  type Signal,
  type SignalFilter,
  type SignalStart,
  showPosition,
} from "../signal.ts";
import type { DeadLetter, SignalPlace } from "../signal-service.ts";

export interface Timestamp {
  readonly seconds: number;
  readonly nanos: number;
}

export interface SignalMessage {
  readonly namespace: string;
  readonly key: string;
  readonly value: string;
  readonly version: number;
  readonly sender: string;
  readonly time: Timestamp | null;
  readonly position: string;
}

export interface SentSignalMessage {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
  readonly position: string;
  readonly time: Timestamp | null;
  readonly isDuplicate: boolean;
}

export interface FilterMessage {
  readonly namespace: string;
  readonly keys: readonly string[];
  readonly sender: string;
}

export interface PlaceMessage {
  readonly position: string;
  readonly afterVersion?: number | null;
  readonly since?: Timestamp | null;
}

export interface StartMessage {
  readonly now?: boolean;
  readonly beginning?: boolean;
  readonly afterVersion?: number;
  readonly since?: Timestamp;
  readonly place?: PlaceMessage;
}

export interface RetryMessage {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
  readonly attempts: number;
  readonly error: string;
  readonly in: Timestamp | null;
}

export interface DeadLetterMessage {
  readonly id: number;
  readonly listener: string;
  readonly signal: SignalMessage | null;
  readonly error: string;
  readonly attempts: number;
  readonly time: Timestamp | null;
  readonly isRetried: boolean;
}

export interface ChangeMessage {
  readonly position: string;
  readonly processed: number;
  readonly park: readonly RetryMessage[];
  readonly unpark: readonly { readonly namespace: string; readonly key: string }[];
  readonly deadLetters: readonly DeadLetterDraft[];
  readonly redeliveredId?: number | null;
  readonly redeliveredError: string;
}

export function toTimestamp(date: Date): Timestamp {
  const ms = date.getTime();
  const seconds = Math.floor(ms / 1000);
  return { seconds, nanos: (ms - seconds * 1000) * 1_000_000 };
}

export function fromTimestamp(time: Timestamp | null | undefined): Date {
  return new Date((time?.seconds ?? 0) * 1000 + Math.floor((time?.nanos ?? 0) / 1_000_000));
}

export function toDuration(ms: number): Timestamp {
  return toTimestamp(new Date(Math.max(0, Math.round(ms))));
}

export function fromDuration(duration: Timestamp | null | undefined): number {
  return fromTimestamp(duration).getTime();
}

export function toSignalMessage(signal: Signal): SignalMessage {
  return { ...signal, value: JSON.stringify(signal.value), time: toTimestamp(signal.time) };
}

export function fromSignalMessage(message: SignalMessage): Signal {
  return { ...message, value: readValue(message.value, message.key), time: fromTimestamp(message.time) };
}

/** JSON; an empty text is null. */
export function readValue(text: string, key: string): Json {
  if (text === "") return null;
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new EngineError("SIGNAL_INVALID", `The value of the signal "${key.slice(0, 80)}" is not JSON.`);
  }
}

export function toSentMessage(sent: SentSignal): SentSignalMessage {
  return { ...sent, time: toTimestamp(sent.time) };
}

export function toFilter(filter: SignalFilter): FilterMessage {
  const { key = [], namespace = "", sender = "" } = filter;
  return { namespace, keys: typeof key === "string" ? [key] : key, sender };
}

export function fromFilter(message: FilterMessage | null): SignalFilter {
  return {
    namespace: message?.namespace || undefined,
    key: message === null || message.keys.length === 0 ? undefined : message.keys,
    sender: message?.sender || undefined,
  };
}

export function toPlace({ afterVersion = null, position, since = null }: SignalPlace): PlaceMessage {
  return { position, afterVersion, since: since === null ? null : toTimestamp(since) };
}

export function fromPlace({ afterVersion = null, position, since = null }: PlaceMessage): SignalPlace {
  readPosition(position);
  return { position, afterVersion, since: since === null ? null : fromTimestamp(since) };
}

export function toStart(start: SignalStart): StartMessage {
  if (start === "now") return { now: true };
  if (start === "start") return { beginning: true };
  if ("afterVersion" in start) return { afterVersion: start.afterVersion };
  if ("since" in start) return { since: toTimestamp(start.since) };
  return { place: { position: start.position } };
}

/** A place carries more than a start: it is passed on unchanged. */
export function fromStart(message: StartMessage | null): SignalStart | SignalPlace {
  if (message?.place) return fromPlace(message.place);
  if (message?.beginning) return "start";
  if (typeof message?.afterVersion === "number") return { afterVersion: message.afterVersion };
  if (message?.since) return { since: fromTimestamp(message.since) };
  return "now";
}

export function toRetry({ error, inMs, ...entry }: RetryEntry): RetryMessage {
  return { ...entry, error: error ?? "", in: toDuration(inMs) };
}

export function fromRetry({ error, in: wait, ...entry }: RetryMessage): RetryEntry {
  return { ...entry, error: error === "" ? null : error, inMs: fromDuration(wait) };
}

export function toDeadLetter({ signal, time, ...letter }: DeadLetter): DeadLetterMessage {
  return { ...letter, signal: toSignalMessage(signal), time: toTimestamp(time) };
}

export function fromDeadLetter({ signal, time, ...letter }: DeadLetterMessage): DeadLetter {
  return { ...letter, signal: fromSignalMessage(signal!), time: fromTimestamp(time) };
}

export function toChange(change: ListenerChange): ChangeMessage {
  const { deadLetters = [], park = [], position, processed = 0, redelivered, unpark = [] } = change;
  return {
    position: position === undefined ? "" : showPosition(position),
    processed,
    park: park.map(toRetry),
    unpark,
    deadLetters,
    redeliveredId: redelivered?.id ?? null,
    redeliveredError: redelivered?.error ?? "",
  };
}

export function fromChange(message: ChangeMessage): ListenerChange {
  const { deadLetters, park, position, processed, redeliveredError, redeliveredId, unpark } = message;
  return {
    position: position === "" ? undefined : readPosition(position),
    processed: processed === 0 ? undefined : processed,
    park: park.length === 0 ? undefined : park.map(fromRetry),
    unpark: unpark.length === 0 ? undefined : unpark,
    deadLetters: deadLetters.length === 0 ? undefined : deadLetters,
    redelivered:
      typeof redeliveredId === "number"
        ? { id: redeliveredId, error: redeliveredError === "" ? null : redeliveredError }
        : undefined,
  };
}
