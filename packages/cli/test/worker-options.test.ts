import { expect, it, onTestFinished } from "vitest";
import { httpServer } from "../../engine/test/support/http-server.ts";
import { runCaptured } from "./support/captured-host.ts";

const env = {
  TRADEWIND_URL: "http://127.0.0.1:1",
  TRADEWIND_TOKEN: "tw_x",
  REDIS_URL: "redis://127.0.0.1:1",
};

it.each([
  ["--ca", ["--ca", "/no/such.pem"], {}],
  ["TRADEWIND_CA", [], { TRADEWIND_CA: "/no/such.pem" }],
])("worker names a CA file that cannot be read, from %s", async (_, argv, more) => {
  const { code, stderr } = await runCaptured(["worker", ...argv], { env: { ...env, ...more } });
  expect([code, stderr]).toEqual([2, expect.stringContaining("cannot read the CA file /no/such.pem")]);
});

it.each([
  [409, "WORKER_VERSION", 'Worker "w" (0.1) speaks protocol 1: update the worker', 5],
  [401, "UNAUTHENTICATED", "The token is invalid", 4],
])("worker ends when the API answers its registration with %i %s", async (status, code, detail, exit) => {
  const api = await httpServer((_, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ code, detail }));
  });
  onTestFinished(() => api.down());
  const result = await runCaptured(["worker"], { env: { ...env, TRADEWIND_URL: api.url } });
  expect(result).toMatchObject({ code: exit, stderr: expect.stringContaining(detail) });
});
