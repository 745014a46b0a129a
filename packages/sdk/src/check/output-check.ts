/** Checks at run time that a value is JSON before it leaves the process, and names the first invalid place. */

import type { Json } from "../manifest.ts";
import { type CodedError, TaskError } from "./errors.ts";

/** The default limit. An installation may raise it, and may store large outputs outside of the database. */
const MAX_OUTPUT_BYTES = 268_435_456;

/** The limit of values that are always stored in the database: events, arguments, signals. */
const MAX_BYTES = 1_048_576;

const MAX_DEPTH = 200;

/**
 * Returns a copy of the value, so that user code cannot change it later; `undefined` means "no output".
 * @throws TaskError that names the place, e.g. "output.rows[3].at is a Date".
 */
export function checkOutput(value: unknown, maxBytes: number = MAX_OUTPUT_BYTES): Json | undefined {
  return value === undefined ? undefined : jsonCopy(value, OUTPUT, maxBytes);
}

/** How a kind of value is called in messages, and the errors it is rejected with. */
export interface JsonKind {
  /** The beginning of the path: "event", "kwargs". */
  readonly root: string;
  notJson(message: string): CodedError;
  tooLarge(message: string): CodedError;
}

const OUTPUT: JsonKind = {
  root: "output",
  notJson: (message) => new TaskError("TW_OUTPUT_NOT_JSON", message),
  tooLarge: (message) =>
    new TaskError(
      "TW_OUTPUT_TOO_LARGE",
      `${message}; raise TRADEWIND_OUTPUT_LIMIT, or store the data elsewhere and return its address`,
    ),
};

/** Like {@link checkOutput}, for other values; `undefined` becomes null. */
export function jsonCopy(value: unknown, kind: JsonKind, maxBytes: number = MAX_BYTES): Json {
  if (value === undefined) return null;
  try {
    walk(value, kind.root, []);
  } catch (problem) {
    if (problem instanceof NotJsonProblem) throw kind.notJson(problem.message);
    throw problem;
  }
  const text = JSON.stringify(value);
  const bytes = utf8Length(text);
  if (bytes > maxBytes) {
    throw kind.tooLarge(`${kind.root} has ${bytes} bytes, at most ${maxBytes} are allowed`);
  }
  return JSON.parse(text) as Json;
}

class NotJsonProblem extends Error {}

function walk(value: unknown, path: string, above: object[]): void {
  switch (typeof value) {
    case "string":
      checkText(value, path);
      return;
    case "boolean":
      return;
    case "number":
      if (Number.isFinite(value)) return;
      throw notJson(path, `is ${value}; JSON has only finite numbers`);
    case "object":
      if (value !== null) walkObject(value, path, above);
      return;
    case "bigint":
      throw notJson(path, "is a bigint; return String(value) instead");
    case "undefined":
      throw notJson(path, "is undefined; return null instead");
    default:
      throw notJson(path, `is a ${typeof value}; return plain data only`);
  }
}

function walkObject(value: object, path: string, above: object[]): void {
  if (above.includes(value)) throw notJson(path, "refers back to an object that contains it");
  if (above.length >= MAX_DEPTH)
    throw notJson(path.slice(0, 60), `is nested deeper than ${MAX_DEPTH} levels`);
  above.push(value);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) walk(value[i], `${path}[${i}]`, above);
  } else {
    checkPlain(value, path);
    for (const [key, member] of Object.entries(value)) {
      checkText(key, path);
      // JSON.stringify omits such a property, which is the meaning of an optional property.
      if (member !== undefined) walk(member, memberPath(path, key), above);
    }
  }
  above.pop();
}

/** Accepts objects of `{}` or `Object.create(null)`, from any realm. */
function checkPlain(value: object, path: string): void {
  const prototype = Object.getPrototypeOf(value);
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const name: string = value.constructor?.name || "class instance";
  const remedy =
    value instanceof Date ? "return date.toISOString() instead" : "return a plain object instead";
  throw notJson(path, `is a ${name}; ${remedy}`);
}

function checkText(text: string, path: string): void {
  if (text.includes("\u0000"))
    throw notJson(path, "contains the character U+0000, which PostgreSQL cannot store");
  if (!text.isWellFormed()) throw notJson(path, "is not well-formed Unicode; use text.toWellFormed()");
}

function memberPath(path: string, key: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

function notJson(path: string, problem: string): NotJsonProblem {
  return new NotJsonProblem(`${path} ${problem}`);
}

function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}
