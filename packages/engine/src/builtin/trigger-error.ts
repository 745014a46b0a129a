/**
 * What a built-in trigger can fail with. A refusal is final: asking again cannot help before a person has changed
 * something, so the trigger fails at once. Everything else that is thrown while it looks counts as a passing fault.
 */
import { EngineError } from "../service/errors.ts";

export class TriggerRefusal extends EngineError {}

export function badArguments(kind: string, what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_ARGS_INVALID", `${kind}: ${what}`);
}

export function connectionMissing(id: string): TriggerRefusal {
  return new TriggerRefusal(
    "TRIGGER_CONNECTION_MISSING",
    `There is no connection "${id}": tradewind connections set ${id} …`,
  );
}

export function connectionUnusable(id: string, what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_CONNECTION_INVALID", `Connection "${id}": ${what}`);
}

/** The other side understood the question and will not answer it. */
export function refused(what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_REFUSED", what);
}

/** What is known of a failure, in one line: libraries like to wrap the reason, and an AggregateError has no message. */
export function reasonOf(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at !== undefined && at !== null && parts.length < 5; ) {
    const text = textOf(at);
    if (text !== "" && !parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof AggregateError ? at.errors[0] : at instanceof Error ? at.cause : undefined;
  }
  return parts.join(": ") || "unknown error";
}

function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as { code?: unknown }).code;
  if (error.message !== "") return error.message;
  return typeof code === "string" ? code : error instanceof AggregateError ? "" : error.name;
}
