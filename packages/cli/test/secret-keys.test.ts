/** Services on one database, some with a secret key that does not match the stored secrets. */
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, testDatabase } from "../../engine/test/support/test-database.ts";
import { runCaptured } from "./support/captured-host.ts";
import { runCli } from "./support/standalone-process.ts";

const KEY = randomBytes(32).toString("base64");
let folder: string;
let test: TestDatabase;

beforeAll(async () => {
  test = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "tradewind-keys-"));
  await mkdir(join(folder, "dags"));
  await withApi({ TRADEWIND_SECRET_KEY: KEY }, async (tw) => {
    expect((await tw("variables", "set", "sealed", "abc")).code).toBe(0);
    expect((await tw("connections", "set", "db", "--type", "http", "--password", "x")).code).toBe(0);
    expect((await tw("variables", "show", "sealed", "--value")).stdout).toBe("abc\n");
  });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

type Commands = (...argv: string[]) => ReturnType<typeof runCaptured>;

/** Runs an API server in its own process while `work` uses it. */
async function withApi(env: NodeJS.ProcessEnv, work: (tw: Commands) => Promise<void>): Promise<string> {
  const home = join(folder, "home");
  let done: Promise<void> | undefined;
  const args = ["--home", home, "api", "--port", "0"];
  const { stderr } = await runCli(args, { DATABASE_URL: test.url, ...env }, (child, said) => {
    child.stderr!.on("data", () => {
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said())?.[0];
      if (url === undefined || done !== undefined) return;
      done = (async () => {
        const TRADEWIND_TOKEN = (await readFile(join(home, "token"), "utf8")).trim();
        await work((...argv) => runCaptured(argv, { env: { TRADEWIND_URL: url, TRADEWIND_TOKEN } }));
      })().finally(() => child.kill("SIGTERM"));
      // Awaited below, after the end of the server.
      done.catch(() => {});
    });
  });
  if (done === undefined) throw new Error(`the API did not start: ${stderr}`);
  await done;
  return stderr;
}

it("returns an error for an undecryptable value, and marks it in a list", async () => {
  await withApi({}, async (tw) => {
    const { code, stdout, stderr } = await tw("variables", "show", "sealed");
    expect([code, stdout]).toEqual([5, ""]);
    expect(stderr).toMatch(
      /The value of variable "sealed" was sealed with a key .* the same secret key.* \[SECRET_UNREADABLE\]/,
    );
    expect(JSON.parse((await tw("variables", "list", "--values", "--json")).stdout)).toMatchObject([
      { key: "sealed", value: null },
    ]);
    expect((await tw("variables", "list", "--values")).stdout).toMatch(/sealed +\(cannot be read: /);
    expect((await tw("connections", "show", "db")).code).toBe(0);
  });
});

it.each([
  [["api", "--port", "0"]],
  [["scheduler"]],
  [["triggerer"]],
  [["backfill", "serve"]],
  [["standalone", "--port", "0"]],
])("warns once at the start of %j that the secret key does not match", async (args) => {
  const env = { DATABASE_URL: test.url, TRADEWIND_DAGS: join(folder, "dags") };
  let late: NodeJS.Timeout | undefined;
  const { code, stderr } = await runCli(["--home", join(folder, "home"), ...args], env, (child, said) => {
    child.stderr!.on("data", () => {
      if (/SECRET_UNREADABLE/.test(said()) && !child.killed) child.kill("SIGTERM");
    });
    late = setTimeout(() => child.kill("SIGTERM"), 20_000);
  });
  clearTimeout(late);
  expect(code).toBe(0);
  expect(stderr.match(/^.*SECRET_UNREADABLE.*$/gm)).toEqual([
    expect.stringMatching(/WARN .*the same secret key.* variables=1 connections=1 example="variable/),
  ]);
});

it("names the key that does not match in doctor, and creates none", async () => {
  const secrets = async (home: string, env: NodeJS.ProcessEnv) => {
    const all = { DATABASE_URL: test.url, TRADEWIND_HOME: join(folder, home), ...env };
    const { stdout } = await runCaptured(["doctor", "--json"], { env: all });
    const checks = JSON.parse(stdout) as { name: string; result: string; says: string }[];
    return checks.filter(({ name }) => name === "secrets").map(({ result, says }) => `${result} ${says}`);
  };
  expect(await secrets("home", {})).toEqual([
    `warn 1 variable and 1 connection cannot be decrypted with ${join(folder, "home", "secret.key")}, e.g. variable "sealed" [SECRET_UNREADABLE]`,
  ]);
  expect(await secrets("home", { TRADEWIND_SECRET_KEY: KEY })).toEqual([
    "ok all stored secrets can be decrypted with TRADEWIND_SECRET_KEY",
  ]);
  expect(await secrets("home", { TRADEWIND_SECRET_KEY: "short" })).toEqual([
    expect.stringMatching(/^fail TRADEWIND_SECRET_KEY: key 1 .*\[SECRET_KEY_INVALID\]$/),
  ]);
  expect(await secrets("other", {})).toEqual([]);
  expect(await secrets("other", {})).toEqual([]);
});
