/** Flattens any thrown value into facts for the log and the API. */

import { CAUSE_MARK } from "../check/wording.ts";
import type { ErrorFacts } from "./program.ts";
import { authorsPart, withoutOurs } from "./user-code.ts";

const MAX_CAUSES = 5;
/** The limit of errors within an error. */
const MAX_INNER = 10;
const MAX_TEXT = 32_768;
/** The limit of characters of a cause within a message; the stack has the whole text. */
const MAX_CAUSE_TEXT = 500;

/**
 * Flattens a thrown value; never throws.
 * @example errorFacts(new Error("load failed", { cause: "no disk" })).message; // "load failed (cause: no disk)"
 */
export function errorFacts(thrown: unknown): ErrorFacts {
  try {
    if (thrown instanceof Error || isErrorLike(thrown)) {
      const code = (thrown as { code?: unknown }).code;
      return {
        name: String(thrown.name || "Error"),
        message: clip(messageOf(thrown, 0)),
        stack: clip(stackOf(thrown, 0)) || null,
        code: typeof code === "string" ? code : null,
      };
    }
    return { name: "NonError", message: clip(`thrown value: ${display(thrown)}`), stack: null, code: null };
  } catch {
    return { name: "NonError", message: "a value was thrown that cannot be shown", stack: null, code: null };
  }
}

/**
 * Removes the stack of an error of a built-in operator, which contains no line of the author's code.
 * @example throw withoutFrames(new Error("run r of dag sales failed"));
 */
export function withoutFrames<E>(error: E): E {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  error.stack = `${typeof code === "string" ? code : error.name}: ${error.message}`;
  return error;
}

/**
 * Appends the messages of the cause and, for an AggregateError, of its errors: the message alone is often generic
 * ("fetch failed") or empty.
 */
function messageOf(error: Error, depth: number): string {
  const own = String(error.message);
  if (depth >= MAX_CAUSES) return own;
  const textOf = (each: unknown) => (isErrorLike(each) ? messageOf(each, depth + 1) : display(each));
  const inner = innerOf(error);
  const more = inner.length > MAX_INNER ? [`and ${inner.length - MAX_INNER} more`] : [];
  const texts = [...inner.slice(0, MAX_INNER).map(textOf), ...more].join("; ");
  const message = inner.length === 0 ? own : `${own || String(error.name)}: ${texts}`;
  if (error.cause === undefined || error.cause === null) return message;
  const cause = clipWords(textOf(error.cause), MAX_CAUSE_TEXT);
  // Some errors repeat the message of their cause.
  return message.includes(cause) ? message : `${message || String(error.name)}${CAUSE_MARK}${cause})`;
}

/** The stack from the author's code upwards, followed by the stacks of its causes and inner errors. */
function stackOf(error: Error, depth: number): string {
  const own =
    typeof error.stack === "string" ? framesOf(error, error.stack) : `${error.name}: ${error.message}`;
  if (depth >= MAX_CAUSES) return own;
  const stackOfAny = (value: unknown) => (isErrorLike(value) ? stackOf(value, depth + 1) : display(value));
  const cause = error.cause === undefined ? [] : [`Caused by: ${stackOfAny(error.cause)}`];
  const inner = innerOf(error);
  const stacks = inner
    .slice(0, MAX_INNER)
    .map((each, at) => `Error ${at + 1} of ${inner.length}: ${stackOfAny(each)}`);
  return [own, ...cause, ...stacks].join("\n");
}

/** The errors of an AggregateError. */
function innerOf(error: Error): readonly unknown[] {
  const { errors } = error as { readonly errors?: unknown };
  return error.name === "AggregateError" && Array.isArray(errors) ? errors : [];
}

function framesOf(error: Error, stack: string): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("TW_") ? withoutOurs(stack) : authorsPart(stack);
}

/** Accepts errors of another realm or of another copy of a class. */
function isErrorLike(value: unknown): value is Error {
  return typeof value === "object" && value !== null && "message" in value && "name" in value;
}

function display(value: unknown): string {
  if (typeof value === "string") return value;
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}

function clip(text: string): string {
  return text.length > MAX_TEXT ? cut(text, MAX_TEXT) : text;
}

/** Cuts before the word at the limit: a part of a secret would not be masked. */
function clipWords(text: string, max: number): string {
  return text.length > max ? cut(text, text.slice(0, max).search(/\S*$/)) : text;
}

function cut(text: string, at: number): string {
  return `${text.slice(0, at).trimEnd()} ... (${text.length - at} more characters)`;
}
