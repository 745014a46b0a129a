/** A real `tradewind standalone` in a separate folder, on any free port. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const DAGS = fileURLToPath(new URL("../dags", import.meta.url));
const EXAMPLES = fileURLToPath(new URL("../../../../examples", import.meta.url));
const START_MS = 50_000;
const STOP_MS = 40_000;

export class StandaloneProcess {
  readonly folder: string;
  readonly child: ChildProcess;
  stderr = "";

  constructor(folder: string, child: ChildProcess) {
    this.folder = folder;
    this.child = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
  }

  static async start(): Promise<StandaloneProcess> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-cli-"));
    await cp(DAGS, join(folder, "dags"), { recursive: true });
    await cp(join(EXAMPLES, "hello.ts"), join(folder, "dags", "hello.ts"));
    return StandaloneProcess.startOn(folder);
  }

  /** With these files of examples/ and additional options. */
  static async startWith(examples: readonly string[], more: readonly string[]): Promise<StandaloneProcess> {
    const folder = await mkdtemp(join(tmpdir(), "tradewind-cli-"));
    // Packages that the examples import besides the SDK.
    await symlink(join(EXAMPLES, "..", "node_modules"), join(folder, "node_modules"));
    for (const name of examples) await cp(join(EXAMPLES, name), join(folder, "dags", name));
    return StandaloneProcess.startOn(folder, more);
  }

  /** In the folder of an earlier standalone. */
  static async startOn(
    folder: string,
    more: readonly string[] = [],
    env: NodeJS.ProcessEnv = {},
  ): Promise<StandaloneProcess> {
    const args = [
      "standalone",
      "--home",
      join(folder, "home"),
      "--dags",
      join(folder, "dags"),
      "--port",
      "0",
      "--parallelism",
      "4",
      ...more,
    ];
    const child = spawnCli(args, env);
    const standalone = new StandaloneProcess(folder, child);
    await standalone.until(/Tradewind is running/);
    return standalone;
  }

  get home(): string {
    return join(this.folder, "home");
  }

  /** Waits for this text on stderr. */
  async until(pattern: RegExp): Promise<void> {
    const deadline = Date.now() + START_MS;
    while (!pattern.test(this.stderr)) {
      if (this.child.exitCode !== null)
        throw new Error(`standalone ended (${this.child.exitCode}):\n${this.stderr}`);
      if (Date.now() > deadline) throw new Error(`standalone did not print ${pattern}:\n${this.stderr}`);
      await sleep(20);
    }
  }

  async tokenMode(): Promise<number> {
    return (await stat(join(this.home, "token"))).mode & 0o777;
  }

  async about(): Promise<{ url: string; pid: number }> {
    return JSON.parse(await readFile(join(this.home, "standalone.json"), "utf8")) as {
      url: string;
      pid: number;
    };
  }

  /** Stops it like a user and returns the exit code. */
  async stop(): Promise<number | null> {
    if (this.child.exitCode !== null) return this.child.exitCode;
    const ended = once(this.child, "exit") as Promise<[number | null]>;
    this.child.kill("SIGTERM");
    const late = setTimeout(() => {
      process.stderr.write(`standalone does not stop:\n${this.stderr.slice(-3_000)}\n`);
      this.child.kill("SIGKILL");
    }, STOP_MS);
    const [code] = await ended;
    clearTimeout(late);
    return code;
  }

  async remove(): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** A command in its own process; its environment has only the given server settings. */
export function spawnCli(args: readonly string[], env: NodeJS.ProcessEnv, cwd?: string): ChildProcess {
  const { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE } = process.env;
  return spawn(process.execPath, ["--conditions=source", MAIN, ...args], {
    cwd,
    env: { PATH, HOME, TMPDIR, NODE_COMPILE_CACHE, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

/** The same, until its end. */
export async function runCli(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  onStarted: (child: ChildProcess, stderr: () => string) => void = () => {},
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawnCli(args, env);
  const out = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name]!.setEncoding("utf8").on("data", (text: string) => {
      out[name] += text;
    });
  }
  onStarted(child, () => out.stderr);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, ...out };
}
