/**
 * The engine's end of the guardian process (guardian/main.ts): keeps it alive and its list of process groups current.
 * A group is announced before its process is given any work, and struck off when the process was seen to end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Logger } from "../service/logger.ts";

export class Guardian {
  readonly #logger: Logger;
  readonly #restartMs: number;
  readonly #groups = new Set<number>();
  #process: ChildProcess | null = null;
  #restart: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(logger: Logger, options: { readonly restartMs?: number } = {}) {
    this.#logger = logger;
    this.#restartMs = options.restartMs ?? 1_000;
  }

  /** Of the guardian that is alive now. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** @param entry The guardian's program. */
  start(entry: string): void {
    this.#restart = null;
    const child = spawn(process.execPath, ["--max-old-space-size=16", entry], {
      stdio: ["pipe", "ignore", "ignore"],
      env: {},
      detached: true,
    });
    this.#process = child;
    child.unref();
    (child.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    child.stdin?.on("error", () => {});
    child.on("error", (error) => this.#lost(child, entry, error.message));
    child.on("exit", (code, signal) => this.#lost(child, entry, signal ?? `exit code ${code}`));
    for (const pid of this.#groups) this.#tell(`+${pid}\n`);
  }

  watch(pid: number): void {
    this.#groups.add(pid);
    this.#tell(`+${pid}\n`);
  }

  release(pid: number): void {
    if (this.#groups.delete(pid)) this.#tell(`-${pid}\n`);
  }

  /** The guardian ends the groups that are still on its list, then itself. */
  stop(): void {
    this.#stopped = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#process?.stdin?.end();
    this.#process = null;
  }

  #tell(line: string): void {
    const stdin = this.#process?.stdin;
    if (stdin?.writable === true) stdin.write(line);
  }

  #lost(child: ChildProcess, entry: string, reason: string): void {
    if (this.#stopped || this.#process !== child) return;
    this.#process = null;
    this.#logger.warn("the guardian of task processes has ended; starting another", { reason });
    this.#restart = setTimeout(() => this.start(entry), this.#restartMs);
    this.#restart.unref();
  }
}
