/** An unreachable DATABASE_URL: every command that needs it reports the same error and changes nothing. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { runCaptured } from "./support/captured-host.ts";

// No server listens on port 1.
const DATABASE_URL = "postgresql://ann:s3cret@127.0.0.1:1/shop";

async function environment(): Promise<NodeJS.ProcessEnv> {
  const folder = await mkdtemp(join(tmpdir(), "tradewind-address-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return { DATABASE_URL, TRADEWIND_HOME: join(folder, "home"), TRADEWIND_DAGS: folder, TRADEWIND_PORT: "0" };
}

it.each(["standalone", "scheduler", "triggerer", "api", "dag-processor", "backfill serve", "signals serve"])(
  "waits for the database in %s until a signal",
  async (words) => {
    const env = { ...(await environment()), TRADEWIND_LOG_LEVEL: "error" };
    const { code, stderr } = await runCaptured(words.split(" "), { env, signal: "SIGTERM" });
    expect([code, stderr]).toEqual([0, expect.stringMatching(/Stopped\.\n$/)]);
  },
);

it.each(["db status", "db migrate"])(
  "exits with 6 in %s and names the address without the password",
  async (words) => {
    const { code, stderr } = await runCaptured(words.split(" "), { env: await environment() });
    expect(code).toBe(6);
    expect(stderr).toContain('error: The database "shop" at 127.0.0.1:1 (user "ann", from DATABASE_URL)');
    expect(stderr).toContain("[DATABASE_UNREACHABLE]\n");
    expect(stderr).not.toContain("s3cret");
  },
);

it.each([["db status"], ["db clean --older-than 1d"]])("creates no database in %s", async (words) => {
  const env: NodeJS.ProcessEnv = { ...(await environment()), DATABASE_URL: undefined };
  const { code, stderr } = await runCaptured(words.split(" "), { env });
  expect(code).toBe(3);
  expect(stderr).toMatch(/no database in .*home\. \[TW_CLI_NO_DATABASE\]\n.*--home/);
  expect(existsSync(env.TRADEWIND_HOME ?? "")).toBe(false);
});

it("reports the error as JSON", async () => {
  const { code, stderr } = await runCaptured(["db", "status", "--json"], { env: await environment() });
  expect(code).toBe(6);
  expect(JSON.parse(stderr)).toMatchObject({ code: "DATABASE_UNREACHABLE", exit_code: 6 });
});

it("reports the error as one check in doctor", async () => {
  const { stdout } = await runCaptured(["doctor", "--json"], { env: await environment() });
  const checks = JSON.parse(stdout) as { name: string; says: string; remedy?: string }[];
  expect(checks.filter(({ name }) => name === "database")).toEqual([
    {
      name: "database",
      result: "fail",
      says: expect.stringMatching(/from DATABASE_URL.*\[DATABASE_UNREACHABLE\]$/),
    },
  ]);
});
