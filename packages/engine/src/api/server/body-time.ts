/**
 * How long a request may take to arrive. The limit of Node's server (`requestTimeout`) is one for all routes; an upload may
 * take longer, as long as it makes progress.
 */
import type { FastifyInstance } from "fastify";

const BODY_MS = 60_000;

/** @param bodyMs For the whole body of a request; for an upload, the time without a byte, at most twice as long. */
export function limitBodyTime(app: FastifyInstance, bodyMs = BODY_MS): void {
  app.addHook("onRequest", async ({ raw, routeOptions }, reply) => {
    if (raw.headers["content-length"] === undefined && raw.headers["transfer-encoding"] === undefined) return;
    const isUpload = routeOptions.config.isUpload === true;
    let received = -1;
    const timer = setInterval(() => {
      const { bytesRead } = raw.socket;
      if (!raw.complete && (!isUpload || bytesRead === received)) raw.destroy();
      received = bytesRead;
    }, bodyMs);
    reply.raw.once("close", () => clearInterval(timer));
  });
}
