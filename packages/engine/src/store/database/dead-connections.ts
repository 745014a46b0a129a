/**
 * Detects connections that are dead without an error: after a failover or a NAT timeout, packets on an old socket are
 * dropped while new connections work. If a call has no reply, its backend is looked up over a new connection. While the
 * backend works, the call may take as long as the statement's timeout allows. A backend that waits for its client has
 * either never received the call, or its reply was lost: then the socket is destroyed, which rejects the call, and the
 * backend is terminated, which releases the locks of its transaction.
 *
 * A client timeout alone cannot tell a dead connection from a slow statement, and TCP takes minutes to give up.
 */
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

/** A call without a reply for this long is looked up. */
const SILENT_MS = 1_500;
const LOOK_MS = 500;
/** Lookups before a connection counts as dead: a reply in flight arrives between two of them. */
const LOOKS = 2;
/** Timeout of our own connection and statements. */
const PROBE_MS = 3_000;

interface Suspect {
  readonly stream: ClientStream;
  bytesRead: number;
  checks: number;
}

interface ClientStream {
  readonly bytesRead: number;
  destroy(): void;
}

export class DeadConnections {
  readonly #config: pg.ClientConfig;
  readonly #onFound: () => void;
  readonly #suspects = new Map<pg.ClientBase, Suspect>();
  #isLooking = false;

  /** @param onFound Called when a connection is dead; connections opened earlier may be dead, too. */
  constructor(config: pg.ClientConfig, onFound: () => void) {
    this.#config = config;
    this.#onFound = onFound;
  }

  /** Waits for the reply to a call on this connection; rejects if the connection is found dead. */
  async answer<T>(client: pg.ClientBase, answer: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#suspect(client), SILENT_MS);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      this.#suspects.delete(client);
    }
  }

  #suspect(client: pg.ClientBase): void {
    const stream = streamOf(client);
    this.#suspects.set(client, { stream, bytesRead: stream.bytesRead, checks: 0 });
    if (!this.#isLooking) void this.#check();
  }

  async #check(): Promise<void> {
    this.#isLooking = true;
    let probe: pg.Client | null = null;
    while (this.#suspects.size > 0) {
      try {
        probe ??= await openProbe(this.#config);
        if (probe === null) break;
        await this.#judge(probe);
      } catch {
        // The server is down: whether these connections survive is unknown.
        if (probe !== null) streamOf(probe).destroy();
        probe = null;
      }
      await sleep(LOOK_MS);
    }
    this.#isLooking = false;
    probe?.end().catch(() => {});
  }

  async #judge(probe: pg.Client): Promise<void> {
    const pids = [...this.#suspects.keys()].map(backendOf);
    const { rows } = await probe.query<Backend>({ text: BACKENDS, values: [pids] });
    const working = new Set(rows.filter(isWorking).map(({ pid }) => pid));
    const dead: number[] = [];
    for (const [client, suspect] of this.#suspects) {
      const pid = backendOf(client);
      // Added after the lookup.
      if (!pids.includes(pid)) continue;
      const isAlive = working.has(pid) || suspect.stream.bytesRead > suspect.bytesRead;
      suspect.checks = isAlive ? 0 : suspect.checks + 1;
      suspect.bytesRead = suspect.stream.bytesRead;
      if (suspect.checks < LOOKS) continue;
      dead.push(pid);
      this.#suspects.delete(client);
      suspect.stream.destroy();
    }
    if (dead.length === 0) return;
    this.#onFound();
    await probe.query({ text: TERMINATE, values: [dead] });
  }
}

interface Backend {
  readonly pid: number;
  readonly state: string | null;
  readonly wait_event_type: string | null;
}

const BACKENDS = "SELECT pid, state, wait_event_type FROM pg_stat_activity WHERE pid = ANY($1::int[])";
const TERMINATE =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = ANY($1::int[]) AND usename = current_user";

/** A backend that waits to read from or write to its client is not working. */
function isWorking({ state, wait_event_type: waits }: Backend): boolean {
  return !state?.startsWith("idle") && waits !== "Client";
}

/** null: the backend ids are not those of the connections (a pooler is in between), so no lookup is possible. */
async function openProbe(config: pg.ClientConfig): Promise<pg.Client | null> {
  const probe = await openFresh(config);
  const { rows } = await probe.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  if (rows[0]?.pid === backendOf(probe)) return probe;
  probe.end().catch(() => {});
  return null;
}

/** A separate connection for an urgent statement. */
export async function openFresh(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: PROBE_MS, query_timeout: PROBE_MS });
  client.on("error", () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.end().catch(() => {});
    throw error;
  }
}

/** Closes without a terminate message: a dead connection would not deliver it. */
export function destroy(client: pg.ClientBase): void {
  streamOf(client).destroy();
}

function streamOf(client: pg.ClientBase): ClientStream {
  return (client as unknown as { readonly connection: { readonly stream: ClientStream } }).connection.stream;
}

function backendOf(client: pg.ClientBase): number {
  return (client as unknown as { readonly processID: number }).processID;
}
