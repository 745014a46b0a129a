/** A component of the system as a process of its own, from its start to its end, for tests that kill and stop it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Where such a process lives. */
export interface Place {
  /** Its home; its log is `<home>.log` and goes on over restarts. */
  readonly home: string;
  readonly databaseUrl: string;
  readonly ledger: string;
  /** Milliseconds: time to live, renewal, margin. */
  readonly lease?: readonly [number, number, number];
}

/** As the programs exit that could not come up for want of a database. */
const DATABASE_AWAY = "75";

export abstract class ComponentProcess {
  readonly pid: number;
  /** "away": it could not come up for want of a database, and is gone again. */
  readonly ready: Promise<"up" | "away">;
  readonly gone: Promise<unknown>;
  /** Set once a test means it to end: any other end is a crash. */
  #isMeant = false;
  #isUp = false;
  #end: string | null = null;

  /** @param program A file of this folder; it says so on its standard output when it is up. */
  constructor(place: Place, program: string, environment: Readonly<Record<string, string>>) {
    const child = start(place, program, environment);
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
      throw new Error(`${program} did not come up (${this.#end}):\n${tail.join("\n")}`);
    });
    away.catch(() => {});
    this.ready = Promise.race([up, away]);
  }

  /** How it ended although nobody asked it to, after it had come up. */
  get crash(): string | null {
    return this.#isUp && !this.#isMeant ? this.#end : null;
  }

  /** Its children die with it: their guardian sees to that. */
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

function start(place: Place, program: string, environment: Readonly<Record<string, string>>): ChildProcess {
  const log = openSync(logOf(place), "a");
  const child = spawn(process.execPath, ["--conditions=source", join(import.meta.dirname, program)], {
    stdio: ["pipe", "pipe", log],
    env: {
      PATH: process.env.PATH,
      // Hundreds of them are started: each reads what the first one has compiled.
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATABASE_URL: place.databaseUrl,
      TRADEWIND_HOME: place.home,
      TRADEWIND_TASK_LEDGER: place.ledger,
      FAULT_LEASE: place.lease?.join(),
      ...environment,
    },
  });
  closeSync(log);
  return child;
}

export function logOf(place: Place): string {
  return `${place.home}.log`;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly error?: string;
  readonly reason?: string;
}

/** A line that is no JSON comes from Node itself: it is what a crash leaves. */
export function readLog(place: Place): LogLine[] {
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
