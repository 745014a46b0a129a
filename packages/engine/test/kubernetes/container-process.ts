import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { constants } from "node:os";
import type { V1Container, V1ContainerState, V1ContainerStatus } from "@kubernetes/client-node";
import type { Env } from "./container-env.ts";

const TERMINATION_MESSAGE_BYTES = 2048;

/** A container of a pod: one process group, without isolation of files or network. */
export class ContainerProcess {
  state: V1ContainerState = { waiting: { reason: "PodInitializing" } };
  private child: ChildProcess | undefined;
  private reason: string | undefined;

  readonly spec: V1Container;
  private readonly log: string;

  /** @param log This file receives its output. */
  constructor(spec: V1Container, log: string) {
    this.spec = spec;
    this.log = log;
  }

  get pid(): number | undefined {
    return this.isRunning ? this.child?.pid : undefined;
  }

  get isRunning(): boolean {
    return this.state.running !== undefined;
  }

  get exitCode(): number | undefined {
    return this.state.terminated?.exitCode;
  }

  /** Standard output and standard error so far. */
  output(): Promise<string> {
    return readFile(this.log, "utf8").catch(() => "");
  }

  /** Resolves when the process runs, or could not be started. */
  async start([program = "", ...args]: readonly string[], env: Env): Promise<void> {
    const output = openSync(this.log, "a");
    const child = spawn(program, args, {
      cwd: this.spec.workingDir,
      // Images set PATH and HOME.
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ["ignore", output, output],
      detached: true,
    });
    closeSync(output);
    this.child = child;
    try {
      await once(child, "spawn");
      this.state = { running: { startedAt: new Date() } };
    } catch (error) {
      const at = new Date(0);
      this.state = {
        terminated: {
          exitCode: 128,
          reason: "StartError",
          message: (error as Error).message,
          startedAt: at,
          finishedAt: at,
        },
      };
    }
  }

  /** Waits for the end of a running process. */
  async end(): Promise<void> {
    const { child } = this;
    if (child === undefined || !this.isRunning) return;
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    // The end of a container's first process is the end of all its processes.
    this.killGroup();
    const { signalCode } = child;
    const exitCode = child.exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
    const message = exitCode === 0 ? undefined : await this.terminationMessage();
    this.state = {
      terminated: {
        exitCode,
        reason: this.reason ?? (exitCode === 0 ? "Completed" : "Error"),
        message,
        startedAt: this.state.running?.startedAt,
        finishedAt: new Date(),
      },
    };
  }

  /** SIGTERM for the first process; after the grace period, SIGKILL for all. A second call can only shorten it. */
  stop(graceMs: number): void {
    const { pid } = this;
    if (pid === undefined) return;
    signal(pid, "SIGTERM");
    const timer = setTimeout(() => this.killGroup(), graceMs);
    this.child?.once("exit", () => clearTimeout(timer));
  }

  kill(reason?: string): void {
    if (!this.isRunning) return;
    this.reason = reason;
    this.killGroup();
  }

  status(): V1ContainerStatus {
    const { name, image = "" } = this.spec;
    const { state, isRunning } = this;
    return { name, image, imageID: "", ready: isRunning, started: isRunning, restartCount: 0, state };
  }

  private killGroup(): void {
    if (this.child?.pid !== undefined) signal(-this.child.pid, "SIGKILL");
  }

  private async terminationMessage(): Promise<string | undefined> {
    if (this.spec.terminationMessagePolicy !== "FallbackToLogsOnError") return undefined;
    const lines = (await this.output()).split("\n").slice(-80).join("\n");
    return Buffer.from(lines).subarray(-TERMINATION_MESSAGE_BYTES).toString();
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
