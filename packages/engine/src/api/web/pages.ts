/**
 * The web UI: one page for every address that is not the API's, and the files that it loads. They are the same for everyone and
 * need no token; all data comes from the API.
 */
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { basePathOf } from "../server/base-path.ts";
import type { Resource } from "../server/context.ts";
import { notFound } from "../server/problem.ts";
import { acceptedEncodings, WebFiles } from "./web-files.ts";

/**
 * Scripts only from this server, and data from nowhere else. Inline styles are allowed: dialogs and menus of component libraries
 * insert them.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "object-src 'none'",
  "base-uri 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** Paths of the API, known or not: they need a token and return JSON. */
const API_PATH = /^\/(?:(?:api|execution|ui)(?:\/|$)|openapi\.json$)/;

export const pages: Resource = (app, { config, webFolder }) => {
  const files = new WebFiles(webFolder);
  const base = `${basePathOf(config.publicUrl)}/`;

  const sendPage = async (reply: FastifyReply, text: string | null): Promise<FastifyReply> => {
    reply
      .header("cache-control", "no-cache")
      .header("content-security-policy", CONTENT_SECURITY_POLICY)
      .header("cross-origin-opener-policy", "same-origin")
      // "no-referrer" would make browsers hide the origin of some requests, too.
      .header("referrer-policy", "same-origin")
      .type("text/html; charset=utf-8")
      .serializer(String);
    return text === null ? reply.code(503).send(NOT_BUILT) : reply.send(withBase(text, base));
  };

  app.get(
    "/*",
    {
      config: { open: (request: FastifyRequest) => !API_PATH.test(pathOf(request)) },
      schema: { response: { 200: z.any() }, hide: true },
    },
    async (request, reply) => {
      const path = pathOf(request);
      if (API_PATH.test(path)) throw notFound(`There is no ${request.method} ${path}`);
      const found = await files.file(path.slice(1), acceptedEncodings(request.headers["accept-encoding"]));
      if (found !== null) {
        if (found.encoding !== null) reply.header("content-encoding", found.encoding);
        // A worker of the page has the policy of its own script.
        if (found.type.startsWith("text/javascript"))
          reply.header("content-security-policy", CONTENT_SECURITY_POLICY);
        return reply
          .header(
            "cache-control",
            path.startsWith("/assets/") ? "public, max-age=31536000, immutable" : "no-cache",
          )
          .header("vary", "accept-encoding")
          .type(found.type)
          .serializer((body: unknown) => body as string)
          .send(found.body);
      }
      const isPage = path === "/" || /\btext\/html\b/.test(request.headers.accept ?? "");
      if (!isPage) throw notFound(`There is no ${request.method} ${path}`);
      return sendPage(reply, await files.page());
    },
  );
};

function pathOf(request: FastifyRequest): string {
  return request.url.split("?", 1)[0]!;
}

/** The browser resolves all relative addresses of the page against the base. */
function withBase(page: string, base: string): string {
  const escaped = base.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  const tag = `<base href="${escaped}" />`;
  const known = /<base\b[^>]*>/;
  return known.test(page) ? page.replace(known, () => tag) : page.replace("<head>", () => `<head>${tag}`);
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Tradewind</title></head>
<body>
<h1>The web UI is not built</h1>
<p>Run this command in the repository, then reload this page:</p>
<pre>npm run build:web</pre>
<p>The REST API works without it: send a token as <code>Authorization: Bearer &lt;token&gt;</code>; <code>GET /openapi.json</code>
describes it.</p>
</body>
</html>
`;
