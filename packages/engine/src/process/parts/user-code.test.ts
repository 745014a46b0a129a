import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it, onTestFinished, vi } from "vitest";
import { openHome } from "../../service/home.ts";
import { silentLogger } from "../../service/logger.ts";
import { prepareUserCode } from "./user-code.ts";

afterEach(() => vi.unstubAllEnvs());

async function warnings(): Promise<unknown[][]> {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-user-code-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const said: unknown[][] = [];
  const logger = { ...silentLogger, warn: (...words: unknown[]) => void said.push(words) };
  await prepareUserCode({
    config: { taskUser: undefined },
    home: await openHome(join(folder, "home")),
    logger,
  });
  return said.filter(([text]) => `${text}`.includes("TRADEWIND_TASK_ENV"));
}

it("warns at the start of withheld secrets that a pattern matches, by name only", async () => {
  vi.stubEnv("DATABASE_URL", "postgres://secret");
  vi.stubEnv("TRADEWIND_SECRET_KEY", "secret");
  vi.stubEnv("TRADEWIND_TASK_ENV", "*_URL,TRADEWIND_SECRET*");
  expect(await warnings()).toEqual([
    [
      "a pattern of TRADEWIND_TASK_ENV matches variables that are never passed to user code",
      { variables: ["DATABASE_URL", "TRADEWIND_SECRET_KEY"] },
    ],
  ]);
});

it("does not warn if no pattern matches a secret", async () => {
  vi.stubEnv("DATABASE_URL", "postgres://secret");
  vi.stubEnv("TRADEWIND_TASK_ENV", "AWS_*");
  expect(await warnings()).toEqual([]);
});
