import { connect, createServer, type Server, type Socket } from "node:net";
import { AnswerReader, RequestReader } from "./pg-wire.ts";

/**
 * A proxy between a client and PostgreSQL that understands enough of the protocol to detect a commit, and injects faults:
 *
 * - pass: forwards everything
 * - drop-commit-answer: lets the server commit, then breaks the connection instead of forwarding the response
 * - cut: breaks every connection and rejects new ones
 * - delay: forwards each chunk late, in order, both ways
 * - hang: forwards nothing, on old and new connections; withheld chunks are delivered when the hang ends
 * - half-open: existing connections stay open and silent forever; new ones pass
 *
 * A commit is the response to COMMIT, or to a writing statement or batch outside a transaction (INSERT, UPDATE, DELETE,
 * MERGE in its text; a write inside a function is not detected).
 */
type ProxyMode =
  | { readonly kind: "pass" }
  | { readonly kind: "drop-commit-answer"; readonly probability?: number; readonly random?: () => number }
  | { readonly kind: "cut" }
  | { readonly kind: "delay"; readonly ms: number }
  | { readonly kind: "hang" }
  | { readonly kind: "half-open" };

export interface PgProxy {
  /** The server's URL through the proxy. */
  readonly url: string;
  /** The number of faults: dropped commit responses, cut or rejected connections, silenced connections. */
  readonly faults: { dropped: number; cut: number; silenced: number };
  /** The number of commits, dropped or not. */
  readonly commits: number;
  /** The number of withheld chunks, because of a hang or on a silent connection. */
  readonly withheld: number;
  set(mode: ProxyMode): void;
  close(): Promise<void>;
}

export async function pgProxy(serverUrl: string): Promise<PgProxy> {
  const target = new URL(serverUrl);
  const relay = new Relay(target.hostname, Number(target.port || 5432));
  const url = new URL(serverUrl);
  url.host = `127.0.0.1:${await relay.listen()}`;
  return {
    url: url.href,
    faults: relay.faults,
    get commits() {
      return relay.commits;
    },
    get withheld() {
      return relay.withheld;
    },
    set: (mode) => relay.set(mode),
    close: () => relay.close(),
  };
}

class Relay {
  readonly faults = { dropped: 0, cut: 0, silenced: 0 };
  commits = 0;
  withheld = 0;
  #mode: ProxyMode = { kind: "pass" };
  readonly #pairs = new Set<{ cut(): void; isSilent: boolean }>();
  readonly #held: (() => void)[] = [];
  readonly #server: Server;

  constructor(host: string, port: number) {
    this.#server = createServer((client) => this.#accept(client, connect({ host, port, noDelay: true })));
  }

  listen(): Promise<number> {
    return new Promise((resolve) => {
      this.#server.listen(0, "127.0.0.1", () => resolve((this.#server.address() as { port: number }).port));
    });
  }

  set(mode: ProxyMode): void {
    this.#mode = mode;
    if (mode.kind !== "hang") for (const forward of this.#held.splice(0)) forward();
    if (mode.kind === "half-open") {
      this.faults.silenced += this.#pairs.size;
      for (const pair of this.#pairs) pair.isSilent = true;
    }
    if (mode.kind !== "cut") return;
    this.faults.cut += this.#pairs.size;
    for (const pair of this.#pairs) pair.cut();
  }

  close(): Promise<void> {
    for (const pair of this.#pairs) pair.cut();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(client: Socket, server: Socket): void {
    client.setNoDelay(true);
    const pair = {
      isSilent: false,
      cut: () => {
        this.#pairs.delete(pair);
        client.destroy();
        server.destroy();
      },
    };
    for (const socket of [client, server]) socket.on("error", pair.cut).on("close", pair.cut);
    if (this.#mode.kind === "cut") {
      this.faults.cut++;
      pair.cut();
      return;
    }
    this.#pairs.add(pair);

    const requests = new RequestReader();
    const answers = new AnswerReader(requests.groups);
    const toServer = this.#forwarder(server, pair);
    const toClient = this.#forwarder(client, pair);
    client.on("data", (chunk) => {
      const { forward, reply } = requests.read(chunk);
      if (reply.length > 0) client.write(reply);
      if (forward.length > 0) toServer(forward);
    });
    server.on("data", (chunk) => {
      for (const { bytes, commits } of answers.read(chunk)) {
        if (commits) {
          this.commits++;
          if (this.#dropsThis()) {
            this.faults.dropped++;
            pair.cut();
            return;
          }
        }
        toClient(bytes);
      }
    });
  }

  #dropsThis(): boolean {
    if (this.#mode.kind !== "drop-commit-answer") return false;
    const { probability = 1, random = Math.random } = this.#mode;
    return random() < probability;
  }

  /** Keeps the order when the delay changes: a chunk never leaves before an earlier one. */
  #forwarder(socket: Socket, pair: { readonly isSilent: boolean }): (bytes: Buffer) => void {
    let lastLeaves = 0;
    return (bytes) => {
      const isHanging = this.#mode.kind === "hang";
      if (pair.isSilent || isHanging) this.withheld++;
      if (pair.isSilent) return;
      if (isHanging) {
        this.#held.push(() => socket.destroyed || socket.write(bytes));
        return;
      }
      const delay = this.#mode.kind === "delay" ? this.#mode.ms : 0;
      const leaves = Math.max(performance.now() + delay, lastLeaves);
      if (delay === 0 && lastLeaves <= performance.now()) {
        if (!socket.destroyed) socket.write(bytes);
        return;
      }
      // Timers round down to whole milliseconds; a chunk due in the same millisecond must still come second.
      lastLeaves = leaves + 1;
      setTimeout(() => socket.destroyed || socket.write(bytes), Math.ceil(leaves - performance.now()) + 1);
    };
  }
}
