import { expect, it } from "vitest";
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
