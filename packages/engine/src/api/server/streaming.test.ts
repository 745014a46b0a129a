import { fastify } from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { prepareStreams, stream } from "./streaming.ts";

test("does not start a stream for HEAD", async () => {
  const app = fastify({ exposeHeadRoutes: true });
  onTestFinished(() => app.close());
  prepareStreams(app, async () => true);
  let begun = 0;
  app.get("/", (_request, reply) =>
    stream(reply, "text/plain", async function* () {
      begun++;
      yield "piece";
    }),
  );
  const head = await app.inject({ method: "HEAD", url: "/" });
  expect([head.statusCode, head.headers["content-type"], head.body, begun]).toEqual([
    200,
    "text/plain",
    "",
    0,
  ]);
  expect((await app.inject("/")).body).toBe("piece");
  expect(begun).toBe(1);
});
