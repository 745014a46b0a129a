/** An HTTP proxy before an API server, which counts requests and injects faults. Bodies are streamed in both directions. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterFile } from "./after-file.ts";

/**
 * - lose: the API receives the request and answers; the answer is replaced by a broken connection
 * - cut-request, cut-answer: the connection breaks after these bytes of the request, or of the answer
 */
export type ApiFault =
  | { readonly kind: "lose" }
  | { readonly kind: "cut-request" | "cut-answer"; readonly bytes: number };

export class ApiProxy {
  readonly #server: Server;
  /** "POST /execution/v1/logs", without query. */
  readonly requests: string[] = [];
  /** The faults that happened. */
  readonly faults: string[] = [];
  /** The address of the API; it may change. */
  target = "";
  /** Called with each request; null: it passes. */
  fault: (what: string) => ApiFault | null = () => null;

  static async open(): Promise<ApiProxy> {
    const proxy = new ApiProxy();
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    opened.push(() => proxy.close());
    return proxy;
  }

  private constructor() {
    this.#server = createServer((incoming, answer) => {
      const { socket } = incoming;
      void this.#forward(incoming, answer, socket).catch(() => socket.destroy());
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Breaks all connections. */
  cut(): void {
    this.#server.closeAllConnections();
  }

  count(what: string): number {
    return this.requests.filter((each) => each === what).length;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.cut();
    });
  }

  async #forward(incoming: IncomingMessage, answer: ServerResponse, socket: Socket): Promise<void> {
    const what = `${incoming.method} ${incoming.url?.split("?")[0]}`;
    this.requests.push(what);
    const fault = this.fault(what);
    if (fault) this.faults.push(what);
    const { headers, method, url } = incoming;
    const sent = request(new URL(url ?? "/", this.target), { method, headers });
    sent.on("error", () => socket.destroy());
    const answered = new Promise<IncomingMessage>((resolve) => sent.once("response", resolve));
    if (fault?.kind === "cut-request") await pipeline(incoming, cutAfter(fault.bytes), sent);
    else incoming.pipe(sent);
    const response = await answered;
    if (fault?.kind === "lose") {
      response.resume();
      socket.destroy();
      return;
    }
    answer.writeHead(response.statusCode ?? 500, response.headers);
    if (fault?.kind === "cut-answer") await pipeline(response, cutAfter(fault.bytes), answer);
    else await pipeline(response, answer);
  }
}

/** Passes these bytes on, then fails. */
function cutAfter(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      left -= piece.length;
      if (left >= 0) done(null, piece);
      // The bytes before the cut are delivered first.
      else {
        this.push(piece.subarray(0, piece.length + left));
        setTimeout(() => done(new Error("cut")), 50);
      }
    },
  });
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
