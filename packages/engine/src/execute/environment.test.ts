import { afterEach, expect, test, vi } from "vitest";
import { taskEnvironment } from "./environment.ts";
import { ExecutorUnderTest } from "./testing/executor-under-test.ts";

// Other test files share this process.
afterEach(() => vi.unstubAllEnvs());

const SOURCE = {
  PATH: "/bin",
  HOME: "/home/me",
  TZ: "UTC",
  DATABASE_URL: "postgres://secret",
  TRADEWIND_SECRET_KEY: "secret",
  TRADEWIND_TASK_REGION: "eu",
  AWS_SECRET_ACCESS_KEY: "secret",
  NODE_EXTRA_CA_CERTS: "/ca.pem",
  NODE_OPTIONS: "--inspect",
};

test("only what is allowed, and what tasks were meant to get", () => {
  expect(taskEnvironment(SOURCE)).toEqual({
    PATH: "/bin",
    HOME: "/home/me",
    TZ: "UTC",
    TRADEWIND_TASK_REGION: "eu",
  });
});

test("more on request, but never the engine's own secrets", () => {
  expect(taskEnvironment(SOURCE, ["NODE_EXTRA_CA_CERTS", "AWS_*"])).toMatchObject({
    NODE_EXTRA_CA_CERTS: "/ca.pem",
    AWS_SECRET_ACCESS_KEY: "secret",
  });
  const all = taskEnvironment(SOURCE, ["*", "DATABASE_URL", "TRADEWIND_*"]);
  expect(Object.keys(all)).not.toContain("DATABASE_URL");
  expect(Object.keys(all)).not.toContain("TRADEWIND_SECRET_KEY");
});

test("a task sees that environment and nothing else", async () => {
  vi.stubEnv("DATABASE_URL", "postgres://user:secret@localhost/none");
  vi.stubEnv("TRADEWIND_TASK_COLOUR", "blue");
  await using under = await ExecutorUnderTest.start();
  const seen = await under.output<Record<string, string>>("env");
  const allowed = taskEnvironment(process.env);
  expect(seen).toEqual(allowed);
  expect(seen["TRADEWIND_TASK_COLOUR"]).toBe("blue");
});
