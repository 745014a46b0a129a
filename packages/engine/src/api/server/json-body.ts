/**
 * Parses a request's JSON. Malformed text, keys that modify an object's prototype, extreme nesting, NUL characters (which
 * PostgreSQL cannot store) and lone surrogates (which other JSON parsers reject) are client errors, reported before any schema
 * sees the value.
 */
import { invalid } from "./problem.ts";

const MAX_DEPTH = 64;

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** @throws If the bytes are not UTF-8: replacement characters would store other data than was sent. */
export function textOfBody(bytes: Buffer): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalid(["body"], "The body is not valid UTF-8", "utf8_invalid");
  }
}

/**
 * Returns undefined for an empty body: a DELETE with a JSON content type and no body is common.
 * @param forbidden Keys rejected at any depth.
 */
export function parseJsonBody(text: string, forbidden: ReadonlySet<string> = FORBIDDEN): unknown {
  if (text.trim() === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(["body"], `JSON decode error: ${(error as Error).message}`, "json_invalid");
  }
  refuseHostile(value, forbidden);
  return value;
}

interface Visit {
  readonly value: unknown;
  readonly loc: readonly (string | number)[];
}

/** Iterative, because the client chooses the depth and the stack is limited. */
function refuseHostile(root: unknown, forbidden: ReadonlySet<string>): void {
  let level: Visit[] = [{ value: root, loc: ["body"] }];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH)
      throw invalid(["body"], `JSON is nested deeper than ${MAX_DEPTH} levels`, "json_too_deep");
    level = level.flatMap((visit) => childrenOf(visit, forbidden));
  }
}

function childrenOf({ value, loc }: Visit, forbidden: ReadonlySet<string>): Visit[] {
  if (typeof value === "string") {
    refuseUnstorable(value, "Text", loc);
    return [];
  }
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.map((item, index) => ({ value: item, loc: [...loc, index] }));
  return Object.entries(value).map(([key, item]) => {
    if (forbidden.has(key)) throw invalid([...loc, key], `The key "${key}" is not allowed`, "key_forbidden");
    refuseUnstorable(key, "Keys", loc);
    return { value: item, loc: [...loc, key] };
  });
}

/** The same restrictions as for a task's output (checkText of the SDK). */
function refuseUnstorable(text: string, what: "Text" | "Keys", loc: Visit["loc"]): void {
  if (text.includes("\0")) throw invalid(loc, `${what} must not contain NUL characters`, "string_nul");
  if (!text.isWellFormed())
    throw invalid(loc, `${what} must be valid Unicode, without lone surrogates`, "string_surrogate");
}

const FORBIDDEN = new Set(["__proto__", "constructor", "prototype"]);
