/** Streamed responses: they end when the work is done, the client disconnects, its token is revoked, or the server stops. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";
import { TokenWatch } from "../../service/token-watch.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** Aborted when the server begins to close: open streams must not delay it. */
    closing: AbortSignal;
    /** Watches the tokens of open streams. */
    tokenWatch: TokenWatch;
  }
}

export function prepareStreams(app: FastifyInstance, isValid: (token: string) => Promise<boolean>): void {
  const controller = new AbortController();
  app.decorate("closing", controller.signal);
  app.addHook("preClose", async () => controller.abort());
  app.decorate("tokenWatch", new TokenWatch(isValid));
}

/**
 * Streams the pieces that `produce` yields. `produce` must return soon after its signal is aborted. It is not called for HEAD,
 * because no client would read the stream.
 */
export function stream(
  reply: FastifyReply,
  type: string,
  produce: (stop: AbortSignal) => AsyncGenerator<string, void, undefined>,
): FastifyReply {
  const gone = new AbortController();
  const { principal, server } = reply.request;
  const release = principal && server.tokenWatch.watch(principal.token, () => gone.abort());
  reply.raw.once("close", () => {
    release?.();
    gone.abort();
  });
  const stop = AbortSignal.any([gone.signal, server.closing]);
  const pieces = reply.request.method === "HEAD" ? [] : produce(stop);
  return (
    reply
      .type(type)
      .header("x-accel-buffering", "no")
      // A kept-alive connection would delay a server that closes after the stream.
      .header("connection", "close")
      .send(Readable.from(pieces, { objectMode: false, highWaterMark: 64 * 1024 }))
  );
}
