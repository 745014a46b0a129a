/** A signal, and the filters for signals. */
import type { Json } from "@tradewind/sdk/manifest";
import { RESERVED_NAMESPACES } from "@tradewind/sdk/signal-names";
import { likePattern } from "../model/signal/signal-names.ts";
import { EngineError } from "../service/errors.ts";
import type { LogPosition } from "../store/signal/signals-position.ts";
import { type LogFilter, type SignalRow, sentAt } from "../store/signal/signals-read.ts";

export interface Signal {
  readonly namespace: string;
  readonly key: string;
  readonly value: Json;
  /** Strictly increasing for each key. */
  readonly version: number;
  readonly sender: string;
  readonly time: Date;
  /** Its position among all signals. */
  readonly position: string;
}

export interface SignalToSend {
  /** Default: "default". */
  readonly namespace?: string | undefined;
  readonly key: string;
  /** JSON. Default: null. */
  readonly value?: Json | undefined;
  readonly sender?: string | undefined;
  /** With `sequence`: stored once, even if it is sent again. */
  readonly client?: string | undefined;
  /** The sequence number of this signal among those of the client. */
  readonly sequence?: number | undefined;
}

export interface SentSignal {
  readonly namespace: string;
  readonly key: string;
  readonly version: number;
  readonly position: string;
  readonly time: Date;
  /** The client has sent it before: this is the stored signal. */
  readonly isDuplicate: boolean;
}

/** `*` stands for any number of any characters. */
export interface SignalFilter {
  /** Default: "default". */
  readonly namespace?: string | undefined;
  /** One or several. Default: all. */
  readonly key?: string | readonly string[] | undefined;
  readonly sender?: string | undefined;
}

/** The start position of a listener. */
export type SignalStart =
  | "now"
  | "start"
  | { readonly afterVersion: number }
  | { readonly since: Date }
  /** As found in a signal or a batch. */
  | { readonly position: string };

export const DEFAULT_NAMESPACE = "default";

export function signalOf(row: SignalRow): Signal {
  return {
    namespace: row.namespace,
    key: row.key,
    value: row.value,
    version: row.id,
    sender: row.sender,
    time: sentAt(row),
    position: `${row.tx}-${row.id}`,
  };
}

export function showPosition({ id, tx }: LogPosition): string {
  return `${tx}-${id}`;
}

export function readPosition(text: string): LogPosition {
  const [, tx, id] = /^(0|[1-9]\d{0,18})-(\d{1,15})$/.exec(text) ?? [];
  if (tx === undefined || id === undefined) {
    throw new EngineError(
      "SIGNAL_POSITION_INVALID",
      `Invalid signal log position "${text.slice(0, 60)}": use the position of a signal, such as "7312-881".`,
    );
  }
  return { tx, id: Number(id) };
}

const MAX_NAME = 250;
const MAX_VALUE_BYTES = 1024 * 1024;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
const NAME = /^[^\u0000-\u001f\u007f*]+$/;
/** In JSON from `JSON.stringify`, which escapes only lone surrogates: after an odd number of backslashes. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

/** Throws SIGNAL_INVALID unless the argument is a list of signals. */
export function requireList(signals: readonly SignalToSend[]): readonly SignalToSend[] {
  if (Array.isArray(signals)) return signals;
  throw refused('send takes a list of them: send([{ key: "order.paid", value: 7 }]).');
}

/** Throws SIGNAL_INVALID with the reason. */
export function requireSendable(signal: SignalToSend): void {
  if (typeof signal !== "object" || signal === null)
    throw refused(
      `${String(JSON.stringify(signal)).slice(0, 80)} is not a signal: write it like { key: "order.paid" }.`,
    );
  requireName("namespace", signal.namespace ?? DEFAULT_NAMESPACE);
  requireName("key", signal.key);
  if (signal.sender !== undefined) requireName("sender", signal.sender);
  const { client, sequence } = signal;
  if ((client === undefined) !== (sequence === undefined))
    throw refused(`the signal "${signal.key}" has a client or a sequence without the other.`);
  if (client !== undefined) requireName("client", client);
  if (sequence !== undefined && (!Number.isSafeInteger(sequence) || sequence < 0))
    throw refused(`the sequence of the signal "${signal.key}" must be a whole number from 0 on.`);
  const { value = null } = signal;
  if (value === null || typeof value === "number" || typeof value === "boolean") return;
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) throw refused(`the value of the signal "${signal.key}" is not JSON.`);
  if (text.length > MAX_VALUE_BYTES)
    throw refused(`the value of the signal "${signal.key}" is larger than 1 MB: send its address instead.`);
  if (UNSTORABLE.test(text))
    throw refused(`the value of the signal "${signal.key}" contains U+0000 or a lone surrogate.`);
}

function requireName(what: string, name: string): void {
  if (typeof name === "string" && name.length <= MAX_NAME && name.isWellFormed() && NAME.test(name)) return;
  throw refused(
    `the ${what} ${JSON.stringify(name)?.slice(0, 80)} must have 1 to ${MAX_NAME} characters, no "*" and no control characters.`,
  );
}

function refused(why: string): EngineError {
  return new EngineError("SIGNAL_INVALID", `A signal cannot be sent: ${why}`);
}

/** The same filter for SQL. */
export function logFilter(
  filter: SignalFilter,
  bounds: { readonly afterVersion?: number | null; readonly since?: Date | null } = {},
): LogFilter {
  return {
    namespace: likePattern(filter.namespace ?? DEFAULT_NAMESPACE),
    keys: keysOf(filter).map(likePattern),
    sender: filter.sender ?? null,
    afterVersion: bounds.afterVersion ?? null,
    since: bounds.since ?? null,
  };
}

export function keysOf({ key }: SignalFilter): readonly string[] {
  return key === undefined ? ["*"] : typeof key === "string" ? [key] : key;
}

/** For signals from outside. @throws SIGNAL_INVALID also for names that only the engine may use. */
export function requireForeign(signal: SignalToSend): SignalToSend {
  requireSendable(signal);
  if (signal.namespace !== undefined && RESERVED_NAMESPACES.has(signal.namespace)) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the namespace "${signal.namespace}" is reserved for the engine. Choose another.`,
    );
  }
  // Reserved sender names: conditions on the signals of a run rely on them.
  if (/^(?:task|scheduler):/.test(signal.sender ?? "")) {
    throw new EngineError(
      "SIGNAL_INVALID",
      `A signal cannot be sent: the sender "${signal.sender?.slice(0, 80)}" has a prefix that is reserved for the engine. Choose another.`,
    );
  }
  return signal;
}
