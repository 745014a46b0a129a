/**
 * Unknown query parameters. Reads ignore them like Airflow, because its clients send parameters of newer versions. A response
 * header names them, so that a typo in a filter can be found. Requests that change something reject them.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";

const HEADER = "tradewind-ignored-parameters";

export function ignoreUnknownParameters(app: Pick<FastifyInstance, "addHook">): void {
  app.addHook("preValidation", async (request, reply) => {
    if (request.method !== "GET" && request.method !== "HEAD") return;
    const ignored = dropUnknown(request);
    if (ignored.length > 0) reply.header(HEADER, ignored.map(encodeURIComponent).join(", "));
  });
}

function dropUnknown(request: FastifyRequest): string[] {
  const known = (request.routeOptions.schema?.querystring as { shape?: object } | undefined)?.shape ?? {};
  const query = request.query as Record<string, unknown>;
  const ignored = Object.keys(query).filter((name) => !Object.hasOwn(known, name));
  for (const name of ignored) delete query[name];
  return ignored;
}
