/** `GET /`: describes the server. Reveals no more than `/api/v2/version`. */
import { z } from "zod";
import type { Resource } from "./context.ts";

export const welcome: Resource = (app, { config }) => {
  const facts = {
    name: "Tradewind",
    version: config.version,
    api: "/api/v2",
    description: "/openapi.json",
    health: "/api/v2/monitor/health",
    authentication: "Authorization: Bearer <token>",
  };
  app.get(
    "/",
    { config: { open: true }, schema: { response: { 200: z.any() }, hide: true } },
    async (request, reply) => {
      if (/\bapplication\/json\b/.test(request.headers.accept ?? "")) return facts;
      return reply
        .type("text/plain; charset=utf-8")
        .serializer((text: unknown) => String(text))
        .send(TEXT(config.version));
    },
  );
};

const TEXT = (version: string) => `Tradewind ${version} is running here.

This is its REST API; there is no web page to see.

  GET /api/v2/monitor/health   how it is, for everybody
  GET /openapi.json            all it can do, with a token
  GET /api/v2/dags             its DAGs, with a token

Send the token with each request:

  Authorization: Bearer <token>

It is in the file "token" of the server's home folder (.tradewind unless told otherwise). The command line finds it
there by itself: tradewind dags list
`;
