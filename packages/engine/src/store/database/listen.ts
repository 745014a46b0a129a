import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { destroy } from "./dead-connections.ts";

/**
 * LISTEN on a separate connection, which reconnects until closed.
 *
 * Notifications sent while the connection was down are lost, so after every reconnect the callback is called with an
 * empty payload: read the state again. A regular ping detects a dead connection.
 */
export interface Listening {
  /** Whether notifications arrive. A dead connection counts as up until the ping detects it. */
  readonly isUp: boolean;
  /** Pings now: other connections of this process were found dead. */
  check(): void;
  close(): Promise<void>;
}

/** Rejects if the first connection fails; later failures are handled here. */
export async function listen(
  config: pg.ClientConfig,
  channel: string,
  onNotify: (payload: string) => void,
): Promise<Listening> {
  const closing = new AbortController();
  let isUp = false;
  let check = () => {};
  const open = async () => {
    const listener = await openListener({ config, channel, onNotify, signal: closing.signal });
    isUp = true;
    check = listener.check;
    return {
      check,
      ended: listener.ended.then(() => {
        isUp = false;
      }),
    };
  };
  const kept = keepOpen(await open(), { open, onNotify, signal: closing.signal });
  return {
    get isUp() {
      return isUp;
    },
    check: () => check(),
    close: async () => {
      closing.abort();
      await kept;
    },
  };
}

const PING_MS = 5_000;
const PING_TIMEOUT_MS = 2_500;
const GOODBYE_MS = 500;
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 5_000;

interface OpenListener {
  check(): void;
  /** Settles when the connection has ended, for any reason. */
  readonly ended: Promise<void>;
}

/** Reconnects each time the connection ends, until aborted. */
async function keepOpen(
  listener: OpenListener,
  options: { open: () => Promise<OpenListener>; onNotify: (payload: string) => void; signal: AbortSignal },
): Promise<void> {
  const { open, onNotify, signal } = options;
  await listener.ended;
  let limit = RETRY_MIN_MS;
  while (!signal.aborted) {
    // Jitter over the whole range: processes must not reconnect all at once after a restart of the server.
    await sleep(RETRY_MIN_MS + Math.random() * limit, undefined, { signal }).catch(() => {});
    limit = Math.min(limit * 2, RETRY_MAX_MS);
    if (signal.aborted) return;
    try {
      const next = await open();
      onNotify("");
      limit = RETRY_MIN_MS;
      await next.ended;
    } catch {
      // The server is still down: only the pause grows. Readers continue on their own timers meanwhile.
    }
  }
}

async function openListener(options: {
  config: pg.ClientConfig;
  channel: string;
  onNotify: (payload: string) => void;
  signal: AbortSignal;
}): Promise<OpenListener> {
  const { config, channel, onNotify, signal } = options;
  const client = new pg.Client({ ...config, query_timeout: PING_TIMEOUT_MS });
  const end = () => {
    const late = setTimeout(() => destroy(client), GOODBYE_MS);
    client
      .end()
      .catch(() => {})
      .finally(() => clearTimeout(late));
  };
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  client.on("error", end);
  client.on("notification", (message) => {
    if (!signal.aborted) onNotify(message.payload ?? "");
  });
  // A server that accepts connections but does not respond must not delay `close` until the connection timeout.
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener("abort", abort);
  try {
    await Promise.race([client.connect(), aborted]);
    await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
  } catch (error) {
    if (signal.aborted) destroy(client);
    else end();
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
  let isChecking = false;
  const check = () => {
    if (isChecking) return;
    isChecking = true;
    client.query("SELECT 1").then(
      () => {
        isChecking = false;
      },
      () => destroy(client),
    );
  };
  const ping = setInterval(check, PING_MS);
  ping.unref();
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  return {
    check,
    ended: ended.finally(() => {
      clearInterval(ping);
      signal.removeEventListener("abort", end);
    }),
  };
}
