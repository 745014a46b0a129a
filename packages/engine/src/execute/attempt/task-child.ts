/** Starts the process of a task-runner. */
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
  /** Passed once at the start, not with each task. */
  readonly limits: OutputLimits;
}

/** The child leads its own process group. @throws if the system refuses to start a process. */
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
