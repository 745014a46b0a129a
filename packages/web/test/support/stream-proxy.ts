/** A proxy in front of the server that counts the live streams which go through it. */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export class StreamProxy {
  readonly #server: Server;
  open = 0;
  mostOpen = 0;

  private constructor(target: URL) {
    this.#server = createServer((incoming, outgoing) => {
      if (incoming.url?.startsWith("/ui/stream?")) {
        this.open += 1;
        this.mostOpen = Math.max(this.mostOpen, this.open);
        outgoing.once("close", () => {
          this.open -= 1;
        });
      }
      const { headers, method, url } = incoming;
      const { hostname, port } = target;
      const upstream = request({ hostname, port, method, path: url, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        outgoing.flushHeaders();
        answer.pipe(outgoing);
      });
      upstream.on("error", () => outgoing.destroy());
      outgoing.once("close", () => upstream.destroy());
      incoming.pipe(upstream);
    });
  }

  static async to(url: string): Promise<StreamProxy> {
    const proxy = new StreamProxy(new URL(url));
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
