/**
 * The errors of built-in triggers. A refusal is final: retrying would not help before a user has changed something, so the
 * trigger fails at once. Every other error of a poll counts as temporary.
 */
import { EngineError } from "../service/errors.ts";

export class TriggerRefusal extends EngineError {}

export function badArguments(kind: string, what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_ARGS_INVALID", `${kind}: ${what}`);
}

export function connectionMissing(id: string): TriggerRefusal {
  return new TriggerRefusal(
    "TRIGGER_CONNECTION_MISSING",
    `Connection "${id}" does not exist. Create it with "tradewind connections set ${id}".`,
  );
}

export function connectionUnusable(id: string, what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_CONNECTION_INVALID", `Connection "${id}": ${what}`);
}

/** The server understood the request and rejected it. */
export function refused(what: string): TriggerRefusal {
  return new TriggerRefusal("TRIGGER_REFUSED", what);
}

/** The reason of a failure in one line: libraries wrap it in causes, and an AggregateError has no message. */
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
