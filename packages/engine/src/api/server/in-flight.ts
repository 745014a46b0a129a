/**
 * Requests in progress: a stopping server waits only for these. Node's idle connections do not include connections that were
 * opened in advance and never used, or requests that never complete; both would delay the stop until they are cut.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance } from "fastify";

declare module "fastify" {
  interface FastifyInstance {
    inFlight: InFlight;
  }
}

export class InFlight {
  readonly #requests = new Set<IncomingMessage>();
  #changed: () => void = () => {};

  static observe(app: FastifyInstance): void {
    const inFlight = new InFlight();
    app.decorate("inFlight", inFlight);
    app.addHook("onRequest", async ({ raw }, reply) => {
      inFlight.#requests.add(raw);
      // "close" is emitted in any case, also if the client disconnects before the response.
      reply.raw.once("close", () => {
        inFlight.#requests.delete(raw);
        inFlight.#changed();
      });
    });
  }

  /** Resolves when every completely received request has its response. */
  async over(): Promise<void> {
    while ([...this.#requests].some((request) => request.complete)) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}
