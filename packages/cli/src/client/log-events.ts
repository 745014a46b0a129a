/** A stream of log events that survives a broken connection: it is opened again, for as long as the server may be back soon. */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Call, Client } from "./client.ts";
import { readEvents, type ServerEvent } from "./event-stream.ts";

const RECONNECT_MS = 500;
const GIVE_UP_MS = 30_000;

/** @param request Called before each connection. Ends with the stream's own end, or when the signal aborts. */
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
      // A stream that breaks off has no status; whether the server is still there shows at the next attempt.
      const isAway = !(error instanceof CliError) || error.exit === EXIT.server;
      if (!isAway || Date.now() - answeredAt > GIVE_UP_MS) throw error;
    }
    await sleep(RECONNECT_MS, undefined, { signal }).catch(() => {});
  }
}
