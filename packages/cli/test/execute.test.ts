/** The exit codes of `tradewind execute`: a pod shows them, and the Kubernetes executor reads its last words. */
import { afterEach, expect, it } from "vitest";
import { httpServer, type TestHttpServer } from "../../engine/test/support/http-server.ts";
import { runCaptured } from "./support/captured-host.ts";

const ASSIGNMENT = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

let api: TestHttpServer;

afterEach(() => api?.down());

/** An API that answers the registration with this problem. */
async function rejected(status: number, code: string) {
  api = await httpServer((_, response) => {
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ code, detail: `it says ${code}` }));
  });
  const env = { TRADEWIND_URL: api.url, TRADEWIND_LAUNCH_TOKEN: "twl_x", TRADEWIND_LOG_LEVEL: "error" };
  return await runCaptured(["execute", ASSIGNMENT], { env });
}

it.each([
  [401, "UNAUTHENTICATED", 4],
  [403, "FORBIDDEN", 4],
  [409, "WORKER_VERSION", 5],
  [400, "BAD_REQUEST", 6],
])("ends with the words of an API that answers %i %s, and exit code %i", async (status, code, exit) => {
  const result = await rejected(status, code);
  expect(result.code).toBe(exit);
  expect(result.stderr).toContain(
    `The API at ${api.url} does not let this pod run its task: it says ${code}.`,
  );
  expect(result.stderr).toContain("check TRADEWIND_EXECUTION_URL of the scheduler");
});

it("has nothing to do, and exit code 0, when its task is not to be run any more", async () => {
  const { code, stderr } = await rejected(401, "ASSIGNMENT_ENDED");
  expect([code, stderr]).toEqual([0, "Nothing to do: the task is not to be run any more.\n"]);
});

it.each([
  ["token", { TRADEWIND_URL: "http://127.0.0.1:1" }],
  ["address", { TRADEWIND_LAUNCH_TOKEN: "twl_x" }],
])("needs its %s, which the executor sets", async (_, env) => {
  const { code, stderr } = await runCaptured(["execute", ASSIGNMENT], { env });
  expect(code).toBe(2);
  expect(stderr).toContain("the Kubernetes executor sets TRADEWIND_URL and TRADEWIND_LAUNCH_TOKEN");
});
