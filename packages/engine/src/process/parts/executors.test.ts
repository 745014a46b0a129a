import { expect, it } from "vitest";
import { readConfig } from "../../service/config.ts";
import { executorNames } from "./executors.ts";

const names = (env: Record<string, string>) => executorNames(readConfig({ env }));
const executors = (given: object) => ({ TRADEWIND_EXECUTORS: JSON.stringify(given) });
const GPU = executors({ gpu: { type: "queue", redisUrl: "redis://gpu:6379" } });

it.each([
  [{}, ["local"]],
  [{ REDIS_URL: "redis://127.0.0.1" }, ["local", "queue"]],
  [{ REDIS_URL: "redis://127.0.0.1", TRADEWIND_EXECUTOR: "queue" }, ["queue", "local"]],
  [{ ...GPU, TRADEWIND_EXECUTOR: "gpu" }, ["gpu", "local"]],
  [
    { REDIS_URL: "redis://127.0.0.1", ...executors({ queue: { type: "queue", parallelism: 5 } }) },
    ["local", "queue"],
  ],
  [executors({ acme: { module: "@acme/tradewind-executor", options: { zone: "eu" } } }), ["local", "acme"]],
])("names the executors of %j, the default first", (env, expected) => {
  expect(names(env as Record<string, string>)).toEqual(expected);
});

it.each([
  [{ TRADEWIND_EXECUTOR: "queue" }, /^Executor "queue" needs a Redis: set REDIS_URL/],
  [executors({ gpu: { type: "queue" } }), /^Executor "gpu" needs a Redis: set REDIS_URL, .* or its redisUrl/],
  [
    { ...GPU, TRADEWIND_EXECUTOR: "gpus" },
    /^TRADEWIND_EXECUTOR names the executor "gpus", which is not configured. Configured: local, gpu\./,
  ],
  [{ TRADEWIND_EXECUTOR: "a b" }, /^TRADEWIND_EXECUTOR is "a b": it must be the name of an executor/],
  [{ TRADEWIND_EXECUTORS: "gpu" }, /^TRADEWIND_EXECUTORS is not a JSON object of executors by name/],
  [
    executors({ gpu: { type: "celery" } }),
    /invalid executor "gpu": its type must be "queue" or "kubernetes"; .* give a "module"/,
  ],
  [executors({ gpu: {} }), /invalid executor "gpu": its type must be "queue"/],
  [
    executors({ gpu: { type: "queue", module: "x" } }),
    /executor "gpu": give it a type or a module, not both/,
  ],
  [executors({ gpu: { type: "queue", redisURL: "x" } }), /unknown key "redisURL"; did you mean "redisUrl"\?/],
  [
    executors({ gpu: { type: "queue", redisUrl: "http://u:hunter2@x" } }),
    /executor "gpu": redisUrl is not the address of a Redis/,
  ],
  [
    executors({ gpu: { type: "queue", parallelism: 0 } }),
    /executor "gpu": parallelism must be a whole number/,
  ],
  [executors({ acme: { module: 1 } }), /executor "acme": module must be the name of a package/],
  [executors({ local: { type: "queue" } }), /executor "local": it is always there, .* TRADEWIND_PARALLELISM/],
  [executors({ default: "gpu" }), /executor "default": TRADEWIND_EXECUTOR names the executor of tasks/],
  [executors({ "a b": { type: "queue" } }), /executor "a b": its name must have 1 to 250 letters/],
])("rejects the setting %j", (env, message) => {
  expect(() => names(env as Record<string, string>)).toThrow(message);
  expect(() => names(env as Record<string, string>)).toThrow(
    expect.objectContaining({ code: "CONFIG_INVALID" }),
  );
  expect(() => names(env as Record<string, string>)).not.toThrow(/hunter2/);
});
