/**
 * The engine's end of the guardian process (guardian/main.ts): keeps it alive and its list of process groups current.
 * A group is added before its process gets any work, and removed when the process was seen to end.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Logger } from "../service/logger.ts";

/** The guardian's list in a shell: at the end of its input it kills the remaining groups. */
const BACKSTOP = `trap '' INT TERM HUP
groups=' '
while read -r line; do
  pid=\${line#?}
  case $line in
    +*) groups="$groups$pid " ;;
    -*) case $groups in *" $pid "*) groups="\${groups%% $pid *} \${groups#* $pid }" ;; esac ;;
  esac
done
for pid in $groups; do kill -9 -$pid; done`;

export class Guardian {
  readonly #logger: Logger;
  readonly #restartMs: number;
  readonly #groups = new Set<number>();
  /** By the system's monotonic clock, which both processes read; null: without a lease. */
  #endsAtMs: number | null = null;
  #process: ChildProcess | null = null;
  #backstop: ChildProcess | null = null;
  #restart: NodeJS.Timeout | null = null;
  #stopped = false;

  constructor(logger: Logger, options: { readonly restartMs?: number } = {}) {
    this.#logger = logger;
    this.#restartMs = options.restartMs ?? 1_000;
  }

  /** Process id of the live guardian. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** @param entry The guardian's program. */
  start(entry: string): void {
    this.#restart = null;
    if (this.#backstop === null) this.#startBackstop();
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
    for (const pid of this.#groups) this.#send(`+${pid}\n`);
    this.#sendLease();
  }

  /** The groups may live until this time of `performance.now()`, unless it is extended. */
  extendLease(endsAt: number): void {
    this.#endsAtMs = Number(process.hrtime.bigint() / 1_000_000n) + Math.floor(endsAt - performance.now());
    this.#sendLease();
  }

  watch(pid: number): void {
    this.#groups.add(pid);
    this.#send(`+${pid}\n`);
    this.#sendToBackstop(`+${pid}\n`);
  }

  release(pid: number): void {
    if (!this.#groups.delete(pid)) return;
    this.#send(`-${pid}\n`);
    this.#sendToBackstop(`-${pid}\n`);
  }

  /** The guardian kills the groups that are still on its list, then ends. */
  stop(): void {
    this.#stopped = true;
    if (this.#restart !== null) clearTimeout(this.#restart);
    this.#process?.stdin?.end();
    this.#process = null;
    this.#backstop?.stdin?.end();
    this.#backstop = null;
  }

  /** For the case that the engine and the guardian are killed together. It costs a shell, and is not replaced. */
  #startBackstop(): void {
    const shell = spawn("/bin/sh", ["-c", BACKSTOP], {
      stdio: ["pipe", "ignore", "ignore"],
      env: {},
      detached: true,
    });
    this.#backstop = shell;
    shell.unref();
    (shell.stdin as unknown as { unref?: () => void } | null)?.unref?.();
    shell.stdin?.on("error", () => {});
    shell.on("error", (error) =>
      this.#logger.warn("could not start the backstop of the guardian", { error: error.message }),
    );
  }

  #sendLease(): void {
    if (this.#endsAtMs !== null) this.#send(`=${this.#endsAtMs}\n`);
  }

  #send(line: string): void {
    const stdin = this.#process?.stdin;
    if (stdin?.writable === true) stdin.write(line);
  }

  #sendToBackstop(line: string): void {
    const stdin = this.#backstop?.stdin;
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
