/**
 * A proxy between HTTP clients and a server, as a network that fails: it loses the answers to some calls, cuts connections,
 * or withholds everything for a while.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { afterFile } from "./after-file.ts";

export interface HttpProxy {
  readonly url: string;
  /** "hang": nothing is forwarded, also on new connections; what was withheld is delivered afterwards. */
  set(mode: "pass" | "cut" | "hang"): void;
  /** Chunks and connections that were withheld or cut. */
  readonly faults: number;
  /** The server handles the next call whose request line matches, and its answer is lost; resolves then. */
  losesAnswerTo(call: RegExp): Promise<void>;
  close(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  /** Called instead of the next answer. */
  lose: (() => void) | null;
}

/** @param target The address of the server, or a function that chooses one for each connection. */
export async function httpProxy(target: string | (() => string)): Promise<HttpProxy> {
  const pairs = new Set<Pair>();
  const held: (() => void)[] = [];
  let faults = 0;
  let mode: "pass" | "cut" | "hang" = "pass";
  let losing: { readonly call: RegExp; readonly lost: () => void } | null = null;
  const cut = (pair: Pair) => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  };
  const forward = (to: Socket, bytes: Buffer) => {
    const write = () => void (to.destroyed || to.write(bytes));
    if (mode !== "hang") return write();
    faults++;
    held.push(write);
  };
  const server: Server = createServer((client) => {
    const { hostname, port } = new URL(typeof target === "string" ? target : target());
    const pair: Pair = { client, server: connect({ host: hostname, port: Number(port) }), lose: null };
    for (const socket of [client, pair.server]) {
      socket.setNoDelay(true);
      socket.on("error", () => cut(pair)).on("close", () => cut(pair));
    }
    if (mode === "cut") {
      faults++;
      return cut(pair);
    }
    pairs.add(pair);
    client.on("data", (bytes) => {
      // One call at a time per connection: a request begins with its line.
      const line = /^[A-Z]+ \S+ HTTP/.exec(bytes.toString("latin1", 0, 500))?.[0] ?? "";
      if (losing?.call.test(line)) {
        pair.lose = losing.lost;
        losing = null;
      }
      forward(pair.server, bytes);
    });
    pair.server.on("data", (bytes) => {
      if (pair.lose === null) return forward(client, bytes);
      cut(pair);
      pair.lose();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const proxy: HttpProxy = {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    set: (next) => {
      mode = next;
      if (mode === "cut") {
        faults += pairs.size;
        for (const pair of [...pairs]) cut(pair);
      }
      if (mode !== "hang") for (const write of held.splice(0)) write();
    },
    get faults() {
      return faults;
    },
    losesAnswerTo: (call) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      losing = { call, lost: resolve };
      return promise;
    },
    close: () => {
      for (const pair of [...pairs]) cut(pair);
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
  opened.push(proxy.close);
  return proxy;
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
