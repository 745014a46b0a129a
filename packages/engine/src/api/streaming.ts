/** Answers that go on: they end when the work is done, the client leaves, or the server stops. */
import { Readable } from "node:stream";
import type { FastifyInstance, FastifyReply } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    /** Aborted when the server begins to close: open streams must not hold it up. */
    closing: AbortSignal;
  }
}

export function announceClosing(app: FastifyInstance): void {
  const controller = new AbortController();
  app.decorate("closing", controller.signal);
  app.addHook("preClose", async () => controller.abort());
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
  reply.raw.once("close", () => gone.abort());
  const stop = AbortSignal.any([gone.signal, reply.server.closing]);
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
