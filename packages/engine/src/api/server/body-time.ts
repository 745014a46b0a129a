/**
 * How long a request may take to arrive. The limit of Node's server (`requestTimeout`) is one for all routes; an upload may
 * take longer, as long as it makes progress.
 */
import type { FastifyInstance } from "fastify";

const BODY_MS = 60_000;

/** @param bodyMs The whole body of a request; for an upload, the time without a byte. */
export function limitBodyTime(app: FastifyInstance, bodyMs = BODY_MS): void {
  app.addHook("onRequest", async ({ raw, routeOptions }, reply) => {
    if (raw.headers["content-length"] === undefined && raw.headers["transfer-encoding"] === undefined) return;
    const cut = () => void (raw.complete || raw.destroy());
    if (routeOptions.config.isUpload === true) {
      raw.setTimeout(bodyMs, cut);
      // The answer may take longer.
      raw.once("end", () => raw.setTimeout(0));
    } else {
      const timer = setTimeout(cut, bodyMs);
      reply.raw.once("close", () => clearTimeout(timer));
    }
  });
}
