/** A standalone with the queue executor on a real Redis, and any number of worker processes. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { redisServer, type TestRedis } from "../../../engine/test/support/redis-server.ts";
import { type Captured, runCaptured } from "./captured-host.ts";
import { StandaloneProcess, spawnCli } from "./standalone-process.ts";

const READY_MS = 30_000;

export class WorkerProcess {
  readonly child: ChildProcess;
  stderr = "";

  constructor(child: ChildProcess) {
    this.child = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
  }

  async until(pattern: RegExp): Promise<void> {
    const deadline = Date.now() + READY_MS;
    while (!pattern.test(this.stderr)) {
      if (this.child.exitCode !== null || Date.now() > deadline)
        throw new Error(`the worker did not print ${pattern}:\n${this.stderr}`);
      await sleep(20);
    }
  }

  /** Waits for its end; returns the exit code. */
  async ended(): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, "exit");
    return this.child.exitCode;
  }

  stop(): Promise<number | null> {
    this.child.kill("SIGTERM");
    return this.ended();
  }
}

export class RemoteInstallation {
  readonly redis: TestRedis;
  readonly folder: string;
  readonly standalone: StandaloneProcess;
  readonly url: string;
  readonly token: string;
  readonly #workers: WorkerProcess[] = [];
  #workerToken = "";

  private constructor(parts: {
    redis: TestRedis;
    standalone: StandaloneProcess;
    url: string;
    token: string;
  }) {
    this.redis = parts.redis;
    this.standalone = parts.standalone;
    this.folder = parts.standalone.folder;
    this.url = parts.url;
    this.token = parts.token;
  }

  /** @param dags DAG files by name. */
  static async start(
    dags: Readonly<Record<string, string>>,
    env: NodeJS.ProcessEnv = {},
  ): Promise<RemoteInstallation> {
    const redis = await redisServer();
    const folder = await mkdtemp(join(tmpdir(), "tradewind-remote-"));
    // User code may run as another account, and reads files of the test here.
    await chmod(folder, 0o755);
    await mkdir(join(folder, "dags"));
    for (const [name, text] of Object.entries(dags)) await writeFile(join(folder, "dags", name), text);
    const standalone = await StandaloneProcess.startOn(folder, [], {
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
      TRADEWIND_EXECUTOR: "queue",
      ...env,
    });
    const { url } = await standalone.about();
    const token = (await readFile(join(standalone.home, "token"), "utf8")).trim();
    const installation = new RemoteInstallation({ redis, standalone, url, token });
    const loaded = async () => (await installation.json<object[]>("dags", "list")).length > 0;
    await installation.until(loaded, "the DAGs");
    return installation;
  }

  /** A command of a user. */
  tw(...argv: string[]): Promise<Captured> {
    return runCaptured(argv, { env: { TRADEWIND_URL: this.url, TRADEWIND_TOKEN: this.token } });
  }

  /** The JSON of a command that succeeds. */
  async json<T>(...argv: string[]): Promise<T> {
    const { code, stderr, stdout } = await this.tw(...argv, "--json");
    if (code !== 0) throw new Error(`tradewind ${argv.join(" ")} ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** @param more Options; `--redis-url` for another Redis. */
  async worker(name: string, ...more: string[]): Promise<WorkerProcess> {
    if (this.#workerToken === "")
      this.#workerToken = (await this.json<{ token: string }>("tokens", "create", "--role", "worker")).token;
    const child = spawnCli(["worker", "--name", name, ...more], {
      TRADEWIND_HOME: join(this.folder, `home-${name}`),
      TRADEWIND_URL: this.url,
      TRADEWIND_TOKEN: this.#workerToken,
      REDIS_URL: `redis://127.0.0.1:${this.redis.port}`,
    });
    const worker = new WorkerProcess(child);
    this.#workers.push(worker);
    await worker.until(/The worker is running/);
    return worker;
  }

  /** Polls for a state that has no event for a command line. */
  async until(holds: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = Date.now() + READY_MS;
    while (!(await holds())) {
      if (Date.now() > deadline) throw new Error(`timed out waiting for: ${what}`);
      await sleep(50);
    }
  }

  async close(): Promise<void> {
    for (const { child } of this.#workers) child.kill("SIGKILL");
    await this.standalone.stop();
    await this.redis.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
