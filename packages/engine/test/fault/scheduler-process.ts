import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

export interface SchedulerPlace {
  /** Its home; its log is `<home>.log` and goes on over restarts. */
  readonly home: string;
  readonly databaseUrl: string;
  readonly ledger: string;
  readonly parallelism: number;
  /** Milliseconds: time to live, renewal, margin. */
  readonly lease?: readonly [number, number, number];
}

/** As scheduler-program.ts exits. */
const DATABASE_AWAY = "75";

/** One scheduler process, from its start to its end. */
export class SchedulerProcess {
  readonly pid: number;
  /** "away": it could not come up for want of a database, and is gone again. */
  readonly ready: Promise<"up" | "away">;
  readonly gone: Promise<unknown>;
  /** Set once a test means it to end: any other end is a crash. */
  #isMeant = false;
  #isUp = false;
  #end: string | null = null;

  constructor(place: SchedulerPlace) {
    const child = start(place);
    this.pid = child.pid as number;
    this.gone = once(child, "exit").then(([code, signal]) => {
      this.#end = String(signal ?? code);
    });
    const up = once(child.stdout as NodeJS.ReadableStream, "data").then(() => {
      this.#isUp = true;
      return "up" as const;
    });
    const away = this.gone.then(() => {
      if (this.#isUp || this.#isMeant || this.#end === DATABASE_AWAY) return "away" as const;
      const tail = readLog(place)
        .slice(-20)
        .map(({ message }) => message);
      throw new Error(`a scheduler did not come up (${this.#end}):\n${tail.join("\n")}`);
    });
    away.catch(() => {});
    this.ready = Promise.race([up, away]);
  }

  /** How it ended although nobody asked it to, after it had come up. */
  get crash(): string | null {
    return this.#isUp && !this.#isMeant ? this.#end : null;
  }

  /** Its task processes die with it: their guardian sees to that. */
  async kill(): Promise<void> {
    this.#isMeant = true;
    process.kill(this.pid, "SIGKILL");
    await this.gone;
  }

  async terminate(): Promise<void> {
    this.#isMeant = true;
    process.kill(this.pid, "SIGTERM");
    await this.gone;
  }

  pause(): void {
    process.kill(this.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.pid, "SIGCONT");
  }

  /** At the end of a test, whatever state it is in. */
  async discard(): Promise<void> {
    if (this.#end === null) await this.kill();
  }
}

function start(place: SchedulerPlace): ChildProcess {
  const log = openSync(logOf(place), "a");
  const program = join(import.meta.dirname, "scheduler-program.ts");
  const child = spawn(process.execPath, ["--conditions=source", program], {
    stdio: ["pipe", "pipe", log],
    env: {
      PATH: process.env.PATH,
      DATABASE_URL: place.databaseUrl,
      TRADEWIND_HOME: place.home,
      TRADEWIND_PARALLELISM: String(place.parallelism),
      TRADEWIND_TASK_LEDGER: place.ledger,
      FAULT_LEASE: place.lease?.join(),
    },
  });
  closeSync(log);
  return child;
}

export function logOf(place: SchedulerPlace): string {
  return `${place.home}.log`;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly error?: string;
  readonly reason?: string;
}

/** A line that is no JSON comes from Node itself: it is what a crash leaves. */
export function readLog(place: SchedulerPlace): LogLine[] {
  if (!existsSync(logOf(place))) return [];
  const lines = readFileSync(logOf(place), "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    try {
      return JSON.parse(line) as LogLine;
    } catch {
      return { level: "crash", message: line };
    }
  });
}
