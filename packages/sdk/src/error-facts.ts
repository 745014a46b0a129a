/** Flattens whatever user code threw into facts for the log and the API. Never throws, whatever it is given. */
import type { ErrorFacts } from "./program.ts";
import { authorsPart, withoutOurs } from "./user-code.ts";

const MAX_CAUSES = 5;
const MAX_TEXT = 32_768;

export function errorFacts(thrown: unknown): ErrorFacts {
  try {
    if (thrown instanceof Error || isErrorLike(thrown)) {
      const code = (thrown as { code?: unknown }).code;
      return {
        name: String(thrown.name || "Error"),
        message: clip(String(thrown.message)),
        stack: clip(stackOf(thrown, 0)) || null,
        code: typeof code === "string" ? code : null,
      };
    }
    return { name: "NonError", message: clip(`thrown value: ${display(thrown)}`), stack: null, code: null };
  } catch {
    return { name: "NonError", message: "a value was thrown that cannot be shown", stack: null, code: null };
  }
}

/** For what an operator of ours found out: its stack has no line of the author's code, and says nothing to anybody. */
export function withoutFrames<E>(error: E): E {
  if (!(error instanceof Error)) return error;
  const { code } = error as { code?: unknown };
  error.stack = `${typeof code === "string" ? code : error.name}: ${error.message}`;
  return error;
}

/** The stack from the author's code upwards, followed by those of its causes. */
function stackOf(error: Error, depth: number): string {
  const own =
    typeof error.stack === "string" ? framesOf(error, error.stack) : `${error.name}: ${error.message}`;
  if (error.cause === undefined || depth >= MAX_CAUSES) return own;
  const cause = isErrorLike(error.cause) ? stackOf(error.cause, depth + 1) : display(error.cause);
  return `${own}\nCaused by: ${cause}`;
}

function framesOf(error: Error, stack: string): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" && code.startsWith("TW_") ? withoutOurs(stack) : authorsPart(stack);
}

/** Errors of another realm or another copy of a class are errors too. */
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
  return text.length > MAX_TEXT
    ? `${text.slice(0, MAX_TEXT)} ... (${text.length - MAX_TEXT} more characters)`
    : text;
}
