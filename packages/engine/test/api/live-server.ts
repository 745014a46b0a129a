/** The API of an installation on a port, whose changes send wake-ups as in a real process. */
import { onTestFinished } from "vitest";
import { createApi } from "../../src/api/server/api.ts";
import type { ApiOptions } from "../../src/api/server/context.ts";
import { passOn } from "../../src/process/api.ts";
import type { Installation } from "./installation.ts";

export interface LiveServer {
  readonly url: string;
  readonly headers: Record<string, string>;
  close(): Promise<void>;
}

/** Closed with the test; another call is another process. */
export async function liveServer(tw: Installation, options: Partial<ApiOptions> = {}): Promise<LiveServer> {
  const app = await createApi({ ...tw.options, ...options, notify: (change) => passOn(change, tw.wakeUps) });
  const close = () => app.close();
  onTestFinished(close);
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, headers: { authorization: `Bearer ${tw.token}` }, close };
}

/** A request to the REST API; returns its status. */
export async function send(
  { headers, url }: LiveServer,
  method: string,
  path: string,
  body?: unknown,
): Promise<number> {
  const json = body === undefined ? {} : { "content-type": "application/json" };
  const response = await fetch(`${url}${path.startsWith("/ui/") ? path : `/api/v2${path}`}`, {
    method,
    headers: { ...headers, ...json },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  await response.body?.cancel();
  return response.status;
}
