/** A component of the system as a separate process, from start to exit, for tests that kill and stop it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder and settings of such a process. */
export interface Place {
  /** Its home; its log is `<home>.log` and continues over restarts. */
  readonly home: string;
  readonly databaseUrl: string;
  readonly ledger: string;
  /** Milliseconds: time to live, renewal, margin. */
  readonly lease?: readonly [number, number, number];
  /** Further settings. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The exit code of programs that could not start without the database. */
const DATABASE_AWAY = "75";

export abstract class ComponentProcess {
  readonly pid: number;
  /** "away": it could not start without the database and has exited. */
  readonly ready: Promise<"up" | "away">;
  readonly gone: Promise<unknown>;
  /** Set when a test ends the process on purpose: any other exit is a crash. */
  #isMeant = false;
  #isUp = false;
  #end: string | null = null;

  /** @param program A file of this folder; it reports on its standard output when it is up. */
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

  /** How the process ended unexpectedly after it was up. */
  get crash(): string | null {
    return this.#isUp && !this.#isMeant ? this.#end : null;
  }

  /** Its guardian kills its children as well. */
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

  /** Call at the end of a test, in any state. */
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
      // Hundreds of processes are started: each uses the compile cache of the first.
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      DATABASE_URL: place.databaseUrl,
      TRADEWIND_HOME: place.home,
      TRADEWIND_TASK_LEDGER: place.ledger,
      FAULT_LEASE: place.lease?.join(),
      ...place.environment,
      ...environment,
    },
  });
  closeSync(log);
  return child;
}

export function logOf(place: Pick<Place, "home">): string {
  return `${place.home}.log`;
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly error?: string;
  readonly reason?: string;
}

/** A line that is not JSON comes from Node itself, as after a crash. */
export function readLog(place: Pick<Place, "home">): LogLine[] {
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
