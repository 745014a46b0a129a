/**
 * The requests being answered: a server that stops waits for these and nothing else. Node's own idea of an idle
 * connection leaves out the one that was opened and never used, as browsers and HTTP clients do in advance, and the
 * one whose request never comes to an end; both would hold up the end until they are cut.
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
      // "close" comes in any case, also when the client leaves before the answer.
      reply.raw.once("close", () => {
        inFlight.#requests.delete(raw);
        inFlight.#changed();
      });
    });
  }

  /** Resolves when every request that has wholly arrived is answered. */
  async over(): Promise<void> {
    while ([...this.#requests].some((request) => request.complete)) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}
