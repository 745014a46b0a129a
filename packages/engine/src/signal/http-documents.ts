/** Signals, places and listener records in the REST API: JSON with snake_case names, times in ISO 8601. */
import type { Json } from "@tradewind/sdk/manifest";
import type { DeadLetterDraft, ListenerChange, RetryEntry } from "../store/signal/signals-listener.ts";
import { readPosition, type Signal, type SignalStart, showPosition } from "./signal.ts";
import type { DeadLetter, SignalPlace } from "./signal-service.ts";

export interface SignalDocument {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  readonly version: number;
  readonly sender: string;
  readonly time: string;
  readonly position: string;
}

export interface PlaceDocument {
  readonly position: string;
  readonly after_version: number | null;
  readonly since: string | null;
}

export interface RetryDocument {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
  readonly attempts: number;
  readonly error: string | null;
  readonly in_ms: number;
}

export interface DeadLetterDocument {
  readonly id: number;
  readonly listener: string;
  readonly signal: SignalDocument;
  readonly error: string;
  readonly attempts: number;
  readonly time: string;
  readonly is_retried: boolean;
}

export interface ChangeDocument {
  readonly position?: string | undefined;
  readonly processed?: number | undefined;
  readonly park?: readonly RetryDocument[] | undefined;
  readonly unpark?: readonly { readonly namespace: string; readonly key: string }[] | undefined;
  readonly dead_letters?: readonly DeadLetterDraft[] | undefined;
  readonly redelivered?: { readonly id: number; readonly error: string | null } | undefined;
}

export function showSignal({ time, ...signal }: Signal): SignalDocument {
  return { ...signal, time: time.toISOString() };
}

export function readSignal({ time, ...signal }: SignalDocument): Signal {
  return { ...signal, time: new Date(time) };
}

export function showPlace({ afterVersion = null, position, since = null }: SignalPlace): PlaceDocument {
  return { position, after_version: afterVersion, since: since?.toISOString() ?? null };
}

export function readPlace({ after_version, position, since }: PlaceDocument): SignalPlace {
  return { position, afterVersion: after_version, since: since === null ? null : new Date(since) };
}

export function showRetry({ inMs, ...entry }: RetryEntry): RetryDocument {
  return { ...entry, in_ms: inMs };
}

export function readRetry({ in_ms, ...entry }: RetryDocument): RetryEntry {
  return { ...entry, inMs: in_ms };
}

export function showDeadLetter({ isRetried, signal, time, ...letter }: DeadLetter): DeadLetterDocument {
  return { ...letter, signal: showSignal(signal), time: time.toISOString(), is_retried: isRetried };
}

export function readDeadLetter({ is_retried, signal, time, ...letter }: DeadLetterDocument): DeadLetter {
  return { ...letter, signal: readSignal(signal), time: new Date(time), isRetried: is_retried };
}

/** The start position, as one of `from`, `after_version`, `since` and `position`. */
export function startQuery(start: SignalStart): Record<string, string | number> {
  if (typeof start === "string") return { from: start };
  if ("position" in start) return { position: start.position };
  if ("since" in start) return { since: start.since.toISOString() };
  return { after_version: start.afterVersion };
}

export function changeDocumentOf(change: ListenerChange): ChangeDocument {
  const { deadLetters, park, position, processed, redelivered, unpark } = change;
  return {
    position: position && showPosition(position),
    processed,
    park: park?.map(showRetry),
    unpark,
    dead_letters: deadLetters,
    redelivered,
  };
}

export function readChange(document: ChangeDocument): ListenerChange {
  const { dead_letters, park, position, processed, redelivered, unpark } = document;
  return {
    position: position === undefined ? undefined : readPosition(position),
    processed,
    park: park?.map(readRetry),
    unpark,
    deadLetters: dead_letters,
    redelivered,
  };
}
