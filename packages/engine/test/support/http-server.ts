import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterFile } from "./after-file.ts";

/** A real HTTP server whose answers the test controls. It can stop and start again on its port. */
export interface TestHttpServer {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly {
    readonly method: string;
    readonly url: string;
    readonly headers: IncomingMessage["headers"];
    readonly body: string;
    /** Of the client: the same for all requests of a connection. */
    readonly port: number;
  }[];
  answer: (request: IncomingMessage, response: ServerResponse) => void;
  down(): Promise<void>;
  up(): Promise<void>;
}

export async function httpServer(answer: TestHttpServer["answer"]): Promise<TestHttpServer> {
  const requests: TestHttpServer["requests"][number][] = [];
  let server: Server;
  const up = (port: number) => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      const { headers, method = "", socket, url = "" } = request;
      requests.push({ method, url, headers, body, port: socket.remotePort ?? 0 });
      it.answer(request, response);
    });
    return new Promise<number>((resolve) => {
      server.listen(port, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    });
  };
  const down = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const port = await up(0);
  const it: TestHttpServer = {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    answer,
    down,
    up: async () => void (await up(port)),
  };
  opened.push(down);
  return it;
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close().catch(() => {})));
});
