/** A stream of log events that reconnects after a broken connection, for a limited time. */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Call, Client } from "./client.ts";
import { readEvents, type ServerEvent } from "./event-stream.ts";

const RECONNECT_MS = 500;
const GIVE_UP_MS = 30_000;

/** @param request Called before each connection. Ends when the stream ends or the signal aborts. */
export async function* logEvents(
  client: Client,
  path: string,
  request: () => Pick<Call, "what" | "query">,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  let answeredAt = Date.now();
  while (!signal.aborted) {
    try {
      const call = { ...request(), accept: "text/event-stream", timeoutMs: 0, signal };
      const response = await client.open(path, call);
      answeredAt = Date.now();
      for await (const event of readEvents(response)) {
        answeredAt = Date.now();
        if (event.type === "end") return;
        yield event;
      }
    } catch (error) {
      if (signal.aborted) return;
      // A broken stream has no status; the next attempt shows whether the server is still reachable.
      const isAway = !(error instanceof CliError) || error.exit === EXIT.server;
      if (!isAway || Date.now() - answeredAt > GIVE_UP_MS) throw error;
    }
    await sleep(RECONNECT_MS, undefined, { signal }).catch(() => {});
  }
}
