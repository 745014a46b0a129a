/** Answers that go on: they end when the work is done, the client leaves, its token is revoked, or the server stops. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";
import { TokenWatch } from "../../service/token-watch.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** Aborted when the server begins to close: open streams must not hold it up. */
    closing: AbortSignal;
    /** Of the tokens of open streams. */
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
 * Sends what `produce` yields, piece by piece. It must return soon after its signal is aborted. For HEAD it is not called:
 * what goes on would otherwise go on for nobody.
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
      // A connection kept alive after the stream would hold up a server that closes meanwhile.
      .header("connection", "close")
      .send(Readable.from(pieces, { objectMode: false, highWaterMark: 64 * 1024 }))
  );
}
