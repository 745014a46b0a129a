/** How the process of a task-runner is started: what it is given, and whose it is. */
import { type ChildProcess, spawn } from "node:child_process";
import type { OutputLimits } from "../../output/output-limits.ts";
import { type ProcessUser, userCodeProcess } from "../../service/process-user.ts";

export interface ChildOptions {
  /** The task-runner's program. */
  readonly entry: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly user: ProcessUser | null;
  /** V8's heap limit; null leaves the default. */
  readonly heapMb: number | null;
  /** Told once, not with each task. */
  readonly limits: OutputLimits;
}

/** It leads a process group of its own. @throws when the system refuses to start a process at all. */
export function startChild(options: ChildOptions): ChildProcess {
  const heap = options.heapMb === null ? [] : [`--max-old-space-size=${options.heapMb}`];
  const { inline, most } = options.limits;
  return spawn(process.execPath, [...heap, options.entry, `${inline}`, `${most}`], {
    ...userCodeProcess(options.environment, options.user),
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
    detached: true,
  });
}
