/** Live signals. A new connection resumes after the last signal received: none is lost or repeated. */
import { setTimeout as sleep } from "node:timers/promises";
import { CliError } from "../errors.ts";
import { EXIT } from "../exit-code.ts";
import type { Client } from "./client.ts";
import { readEvents } from "./event-stream.ts";

export interface Signal {
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
  readonly version: number;
  readonly sender: string;
  readonly time: string;
  readonly position: string;
}

/** A place in the log: a position, and filters for signals after it. */
interface Place {
  readonly position: string;
  readonly after_version: number | null;
  readonly since: string | null;
}

const RECONNECT_MS = 500;
const PATIENCE_MS = 30_000;

export async function* followSignals(
  client: Client,
  query: Readonly<Record<string, string | number | readonly string[] | undefined>>,
  signal: AbortSignal,
): AsyncGenerator<Signal> {
  const { after_version, from, position: at, since, ...filter } = query;
  const beginning = { after_version, from, position: at, since };
  let place: Place | undefined;
  let answeredAt = Date.now();
  while (!signal.aborted) {
    try {
      const response = await client.open("/signals/listen", {
        what: "cannot listen to signals",
        query: { ...filter, ...(place ?? beginning) },
        accept: "text/event-stream",
        timeoutMs: 0,
        signal,
      });
      for await (const event of readEvents(response)) {
        answeredAt = Date.now();
        const [data = "null"] = event.data;
        if (event.type === "position") place = JSON.parse(data) as Place;
        if (event.type !== "signal") continue;
        const found = JSON.parse(data) as Signal;
        yield found;
        // The consumer has processed this signal.
        place = { after_version: null, since: null, ...place, position: found.position };
      }
    } catch (error) {
      if (signal.aborted) return;
      const away = !(error instanceof CliError) || error.exit === EXIT.server;
      if (!away || Date.now() - answeredAt > PATIENCE_MS) throw error;
    }
    await sleep(RECONNECT_MS, undefined, { signal }).catch(() => {});
  }
}
