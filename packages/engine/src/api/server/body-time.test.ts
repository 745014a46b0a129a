import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { fastify } from "fastify";
import { expect, it, onTestFinished } from "vitest";
import { limitBodyTime } from "./body-time.ts";

const BODY_MS = 400;

/** The address of a server whose routes read their body. */
async function server(): Promise<number> {
  const app = fastify({ requestTimeout: 0 });
  limitBodyTime(app, BODY_MS);
  app.addContentTypeParser("text/plain", (_request, body, done) => done(null, body));
  for (const [path, isUpload] of [
    ["/json", false],
    ["/upload", true],
  ] as const)
    app.post(path, { config: { isUpload } }, async (request) => {
      let length = 0;
      for await (const piece of request.body as AsyncIterable<Buffer>) length += piece.length;
      return { length };
    });
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  return (app.server.address() as AddressInfo).port;
}

/** Sends these pieces with a pause before each; resolves with the answer, "" if the connection was cut. */
async function send(port: number, path: string, pieces: readonly string[], pauseMs: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (piece: Buffer) => {
    answer += piece;
    if (answer.includes("}")) socket.end();
  });
  socket.on("error", () => {});
  const length = pieces.join("").length;
  socket.write(
    `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: ${length}\r\n\r\n`,
  );
  const closed = once(socket, "close");
  for (const piece of pieces) {
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    if (!socket.destroyed) socket.write(piece);
  }
  await closed;
  return answer.split("\r\n\r\n")[1] ?? "";
}

it("cuts a request whose body takes too long, even if it arrives bit by bit", async () => {
  const port = await server();
  expect(await send(port, "/json", Array(40).fill("x"), 25)).toBe("");
  expect(await send(port, "/json", ["x"], 0)).toBe('{"length":1}');
});

it("accepts an upload as long as bytes arrive", async () => {
  const port = await server();
  expect(await send(port, "/upload", Array(40).fill("x"), 25)).toBe('{"length":40}');
});

it("cuts an upload without progress", async () => {
  const port = await server();
  expect(await send(port, "/upload", ["x", "y"], 10 * BODY_MS)).toBe("");
});
