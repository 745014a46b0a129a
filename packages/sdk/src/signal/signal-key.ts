/** Checks the names of signals that a DAG listens to or sends. */
import { DagDefinitionError, show } from "../check/errors.ts";
import { isPattern, RESERVED_NAMESPACES } from "./signal-names.ts";

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
  if (isPattern(name.namespace) || isPattern(name.key)) {
    return `${show(name.key)} stands for many signals: "*" can be listened to, not sent`;
  }
  if (RESERVED_NAMESPACES.has(name.namespace)) {
    return `the namespace ${show(name.namespace)} belongs to the engine`;
  }
  return null;
}
