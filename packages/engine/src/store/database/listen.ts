import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { destroy } from "./dead-connections.ts";

/**
 * LISTEN on a connection of its own, kept up for as long as it is wanted.
 *
 * Notifications sent while the connection was down are gone, so after every reconnect the listener is called with an
 * empty payload: "look for yourself". A connection that is dead without a sign is found by a regular ping.
 */
export interface Listening {
  /** Whether notifications arrive. One that is dead without a sign looks up until the ping finds it. */
  readonly isUp: boolean;
  /** Pings now: other connections of this process were found dead. */
  check(): void;
  close(): Promise<void>;
}

/** Rejects when the first connection fails; from then on failures are its own business. */
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
  /** Settles when the connection has ended, for whatever reason. */
  readonly ended: Promise<void>;
}

/** Runs until the signal is given: waits for the end of a connection, then makes the next. */
async function keepOpen(
  listener: OpenListener,
  options: { open: () => Promise<OpenListener>; onNotify: (payload: string) => void; signal: AbortSignal },
): Promise<void> {
  const { open, onNotify, signal } = options;
  await listener.ended;
  let limit = RETRY_MIN_MS;
  while (!signal.aborted) {
    // Jitter over the whole range: after a restart of the server not all processes may come at once.
    await sleep(RETRY_MIN_MS + Math.random() * limit, undefined, { signal }).catch(() => {});
    limit = Math.min(limit * 2, RETRY_MAX_MS);
    if (signal.aborted) return;
    try {
      const next = await open();
      onNotify("");
      limit = RETRY_MIN_MS;
      await next.ended;
    } catch {
      // The server is still away: only the wait grows. Readers go on by their own timers meanwhile.
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
  // A server that accepts connections and does not answer must not hold up the close until the connection times out.
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
