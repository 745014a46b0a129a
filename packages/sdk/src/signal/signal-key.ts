/** Names of signals, and their wildcard. */
import { DagDefinitionError, show } from "../check/errors.ts";

/** The default namespace of signals. */
export const DEFAULT_NAMESPACE = "default";

/** Only the engine writes to these; everyone can listen to them. */
const SYSTEM_NAMESPACES: ReadonlySet<string> = new Set([
  "task",
  "run",
  "trigger",
  "schedule",
  "action",
  "asset",
  "webhook",
  "deadline",
]);

const MAX_LENGTH = 250;

/** Returns a valid key or namespace, or throws a definition error. */
export function checkedName(value: unknown, what: "key" | "namespace"): string {
  const isText = typeof value === "string" && value.length >= 1 && value.length <= MAX_LENGTH;
  if (isText && value.isWellFormed() && !/\p{Cc}/u.test(value)) return value;
  throw new DagDefinitionError(
    "TW_BAD_SIGNAL",
    `signal(): a ${what} has 1 to ${MAX_LENGTH} characters and no control characters, got ${show(value)}`,
  );
}

/** Why such a signal cannot be sent; null if it can. */
export function whyNotSendable(name: { readonly namespace: string; readonly key: string }): string | null {
  if (hasWildcard(name.namespace) || hasWildcard(name.key)) {
    return `${show(name.key)} stands for many signals: "*" can be listened to, not sent`;
  }
  if (SYSTEM_NAMESPACES.has(name.namespace)) {
    return `the namespace ${show(name.namespace)} belongs to the engine`;
  }
  return null;
}

function hasWildcard(name: string): boolean {
  return name.includes("*");
}

/** Returns whether a name matches a pattern in which "*" stands for any text, in linear time. */
export function fitsPattern(pattern: string, name: string): boolean {
  const parts = pattern.split("*");
  if (parts.length === 1) return pattern === name;
  const [first, last] = [parts[0]!, parts.at(-1)!];
  const end = name.length - last.length;
  if (end < first.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}
