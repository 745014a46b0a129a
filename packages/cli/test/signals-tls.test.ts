import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignalClient } from "@tradewind/engine/signals";
import { beforeAll, expect, it } from "vitest";
import { certificate } from "../../engine/test/support/certificates.ts";
import { type TestDatabase, testDatabase } from "../../engine/test/support/test-database.ts";

const MAIN = join(import.meta.dirname, "..", "src", "main.ts");

let test: TestDatabase;
let folder: string;

beforeAll(async () => {
  test = await testDatabase();
  folder = await mkdtemp(join(tmpdir(), "tw-tls-"));
  const { cert, key } = certificate("server");
  await writeFile(join(folder, "server.pem"), cert);
  await writeFile(join(folder, "server.key"), key);
  return async () => {
    await rm(folder, { recursive: true, force: true });
    await test.close();
  };
});

function tradewind(args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, ["--conditions=source", MAIN, ...args, "--home", folder], {
    env: { PATH: process.env.PATH, DATABASE_URL: test.url, ...env },
    stdio: ["ignore", "ignore", "pipe"],
  });
}

/** Waits until the process prints its address, or ends. */
async function served(child: ChildProcess): Promise<{ said: string; url: string | undefined }> {
  let said = "";
  let url: string | undefined;
  for await (const text of child.stderr!.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    said += text as string;
    url = /grpcs?:\/\/[\d.]+:\d+/.exec(said)?.[0];
    if (url !== undefined) break;
  }
  child.stderr!.resume();
  return { said, url };
}

async function sendAndStop(child: ChildProcess, url: string): Promise<void> {
  const token = (await readFile(join(folder, "token"), "utf8")).trim();
  const client = SignalClient.connect(url, { token, tls: { ca: join(folder, "server.pem") } });
  await client.send([{ key: "k" }]);
  await client.close();
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  expect(await ended).toEqual([0, null]);
}

it("serves TLS with the given certificate", async () => {
  const tls = ["--tls-cert", join(folder, "server.pem"), "--tls-key", join(folder, "server.key")];
  const child = tradewind(["signals", "serve", "--port", "0", ...tls]);
  const { said, url } = await served(child);
  expect(said).toContain("grpcs://");
  await sendAndStop(child, url!);
});

it("serves TLS in standalone, configured by the environment", async () => {
  const child = tradewind(["standalone", "--port", "0", "--dags", folder], {
    TRADEWIND_SIGNALS_PORT: "0",
    TRADEWIND_SIGNALS_TLS_CERT: join(folder, "server.pem"),
    TRADEWIND_SIGNALS_TLS_KEY: join(folder, "server.key"),
  });
  const { said, url } = await served(child);
  expect(said).toContain("grpcs://");
  await sendAndStop(child, url!);
});

it("names the missing file and does not fall back to plain text", async () => {
  const child = tradewind(["signals", "serve", "--port", "0", "--tls-cert", join(folder, "server.pem")]);
  const exit = once(child, "exit");
  const { said, url } = await served(child);
  expect(url).toBeUndefined();
  expect(said).toContain("has no key: give both");
  expect((await exit)[0]).not.toBe(0);
});
