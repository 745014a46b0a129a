/** A call of the API as data: what a dialog sends is what it shows as a command to copy. */
import { BASE } from "../api/client.ts";
import { problemOf } from "../api/problem.ts";
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

/** At most so many at once, in their order. */
export async function sendAll<Answer>(calls: readonly Request[], signal?: AbortSignal): Promise<Answer[]> {
  const answers: Answer[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < calls.length; at = next++)
      answers[at] = await send<Answer>(calls[at]!, signal);
  };
  await Promise.all(Array.from({ length: Math.min(4, calls.length) }, work));
  return answers;
}

/** A path with encoded ids: apiPath`/dags/${dagId}`. */
export function apiPath(strings: TemplateStringsArray, ...ids: readonly (string | number)[]): string {
  return `/api/v2${String.raw({ raw: strings }, ...ids.map(encodeURIComponent))}`;
}
