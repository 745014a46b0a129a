import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Redis } from "ioredis";
import { afterFile } from "./after-file.ts";
import { freePort } from "./free-port.ts";
import { type RedisBinary, redisBinary } from "./redis-binary.ts";

/** A separate real Redis, in a temporary folder. */
export interface TestRedis {
  readonly port: number;
  /** A client for the test itself; it reconnects automatically. */
  readonly client: Redis;
  /** Kills the server like the out-of-memory killer; its data stays. */
  down(): Promise<void>;
  /** Starts it again on the same port, with the same data, or without any. */
  up(how?: "as it was" | "empty"): Promise<void>;
  /** It hangs, with open connections. */
  pause(): void;
  resume(): void;
  close(): Promise<void>;
}

export async function redisServer(options: { readonly password?: string } = {}): Promise<TestRedis> {
  const binary = await redisBinary();
  const folder = await mkdtemp(join(tmpdir(), "tw-redis-"));
  const secret = options.password === undefined ? [] : ["--requirepass", options.password];
  const settings = [
    ...["--bind", "127.0.0.1", "--dir", folder, "--daemonize", "no"],
    ...["--save", "", "--appendonly", "yes", "--appendfsync", "no", ...secret],
  ];
  const { port, ...started } = await startAnywhere(binary, settings);
  let { child } = started;
  const client = new Redis({
    ...{ host: "127.0.0.1", port, password: options.password },
    // Its commands wait while the server is down.
    ...{ retryStrategy: () => 20, maxRetriesPerRequest: null },
  });
  client.on("error", () => {});
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  const down = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    kill();
    await once(child, "exit");
  };
  const close = async () => {
    client.disconnect();
    await down();
    process.off("exit", kill);
    await rm(folder, { recursive: true, force: true });
  };
  opened.push(close);
  return {
    port,
    client,
    down,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    up: async (how = "as it was") => {
      if (how === "empty") await rm(join(folder, "appendonlydir"), { recursive: true, force: true });
      child = await start(binary, [...settings, "--port", `${port}`]);
    },
    close,
  };
}

/** Another test may take a free port before the server does. */
async function startAnywhere(
  binary: RedisBinary,
  settings: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  for (let tries = 5; ; tries--) {
    const port = await freePort();
    try {
      return { child: await start(binary, [...settings, "--port", `${port}`]), port };
    } catch (error) {
      if (tries === 1) throw error;
    }
  }
}

async function start({ path, env }: RedisBinary, settings: readonly string[]): Promise<ChildProcess> {
  const child = spawn(path, settings, {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    if (!line.includes("Ready to accept connections")) continue;
    child.stdout.resume();
    return child;
  }
  throw new Error(`redis-server did not start:\n${said.join("\n")}`);
}

const opened: (() => Promise<void>)[] = [];

afterFile(async () => {
  await Promise.all(opened.splice(0).map((close) => close()));
});
