/**
 * A call of the API as data: what a dialog sends is what it shows as a command to copy. All changes are sent this way; what pages
 * show is read by the typed client.
 */
import { BASE } from "../api/client.ts";
import { messageOf, problemOf } from "../api/problem.ts";
import type { Request } from "./command-text.ts";

export async function send<Answer>(call: Request, signal?: AbortSignal): Promise<Answer> {
  const response = await fetch(`${BASE.replace(/\/$/, "")}${call.path}`, {
    method: call.method,
    headers: {
      "x-tradewind-csrf": "1",
      ...(call.body === undefined ? {} : { "content-type": "application/json" }),
    },
    body: call.body === undefined ? null : JSON.stringify(call.body),
    signal: signal ?? null,
  });
  if (!response.ok) throw await problemOf(response);
  return (response.status === 204 ? undefined : await response.json()) as Answer;
}

const AT_ONCE = 4;

/** @throws After all calls, if some failed; the message says how many and why. */
export async function sendAll<Answer>(calls: readonly Request[], signal?: AbortSignal): Promise<Answer[]> {
  const answers: Answer[] = [];
  const errors: unknown[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < calls.length; at = next++)
      try {
        answers[at] = await send<Answer>(calls[at]!, signal);
      } catch (error) {
        errors.push(error);
      }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, calls.length) }, work));
  if (errors.length > 0) throw calls.length === 1 ? errors[0] : someFailed(errors, calls.length);
  return answers;
}

function someFailed(errors: readonly unknown[], calls: number): Error {
  const reasons = [...new Set(errors.map(messageOf))];
  const more = reasons.length > 3 ? ` and ${reasons.length - 3} other reasons` : "";
  return new Error(`${errors.length} of ${calls} failed: ${reasons.slice(0, 3).join("; ")}${more}`);
}

/** A path with encoded ids: apiPath`/dags/${dagId}`. */
export function apiPath(strings: TemplateStringsArray, ...ids: readonly (string | number)[]): string {
  return `/api/v2${String.raw({ raw: strings }, ...ids.map(encodeURIComponent))}`;
}
