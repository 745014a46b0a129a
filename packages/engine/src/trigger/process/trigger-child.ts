/**
 * The supervisor's end of one child that runs triggers: starts the child, exchanges messages with it, and pings its event
 * loop. The child leads a process group of its own; a kill reaches all processes that it started.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { JsonLines } from "../../child/json-lines.ts";
import { MemoryWatch } from "../../child/memory-watch.ts";
import type { Logger } from "../../service/logger.ts";
import { type ProcessUser, userCodeProcess } from "../../service/process-user.ts";
import {
  CHANNEL_FD,
  type FromRunner,
  MAX_LINE_LENGTH,
  readFromRunner,
  readStallReport,
  STALL_FD,
  type StallReport,
  type ToRunner,
} from "./runner-protocol.ts";

export interface TriggerChildOptions {
  readonly entry: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Limit of resident memory; the JavaScript heap gets half of it. */
  readonly memoryMb: number;
  readonly user: ProcessUser | null;
  readonly silenceMs: number;
  readonly logger: Logger;
}

export interface TriggerChildListener {
  message(message: Exclude<FromRunner, { k: "pong" }>): void;
  stall(report: StallReport): void;
  /** The process has ended. Called once; no other call follows. */
  gone(reason: string): void;
}

const PING_MS = 500;
/** Time limit for its first message: a machine under load may take long to start a process. */
const START_MS = 30_000;
const MAX_LAST_WORDS = 2_000;
/** Characters that it may print between two pings; the rest is dropped from the engine's log. */
const MAX_PRINTED = 16_384;

export class TriggerChild {
  /** When its loop last answered, by performance.now(). */
  answeredAt = performance.now();
  readonly #options: TriggerChildOptions;
  readonly #listener: TriggerChildListener;
  readonly #process: ChildProcess;
  readonly #lines: JsonLines<ToRunner>;
  readonly #pings: NodeJS.Timeout;
  readonly #memory: MemoryWatch | null;
  #unanswered = 0;
  #isReady = false;
  #killed: string | null = null;
  #lastWords = "";
  #printed = 0;
  #isGone = false;

  /** @throws if the system refuses to start a process. */
  constructor(options: TriggerChildOptions, listener: TriggerChildListener) {
    this.#options = options;
    this.#listener = listener;
    const { entry, environment, cwd, memoryMb, user } = options;
    const heapMb = Math.ceil(memoryMb / 2);
    this.#process = spawn(process.execPath, [`--max-old-space-size=${heapMb}`, entry], {
      ...userCodeProcess(environment, user),
      cwd,
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#process.on("error", (error) => {
      // Also raised if a signal could not be delivered: then `exit` follows.
      if (this.#process.pid === undefined) this.#leave(error.message);
    });
    this.#process.on("exit", (code, signal) => this.#leave(signal ?? `exit code ${code}`));
    this.#lines = new JsonLines(this.#process.stdio[CHANNEL_FD] as Socket, {
      message: (raw) => this.#read(raw),
      broken: (what) => this.kill(`it sent ${what}`),
      maxLength: MAX_LINE_LENGTH,
    });
    new JsonLines(this.#process.stdio[STALL_FD] as Socket, {
      message: (raw) => {
        const report = readStallReport(raw);
        if (report !== null && !this.#isGone) this.#listener.stall(report);
      },
      broken: (what) => this.kill(`it sent ${what}`),
      maxLength: MAX_LINE_LENGTH,
    });
    for (const stream of [this.#process.stdout, this.#process.stderr] as Readable[]) {
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => this.#receiveText(text));
      stream.on("error", () => {});
    }
    this.#pings = setInterval(() => this.#ping(), PING_MS);
    const { pid } = this.#process;
    this.#memory =
      pid === undefined
        ? null
        : new MemoryWatch(pid, memoryMb, (usedMb) => this.kill(overLimit(memoryMb, usedMb)));
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  send(message: ToRunner): void {
    if (!this.#isGone) this.#lines.send(message);
  }

  kill(reason: string): void {
    this.#killed ??= reason;
    const { pid } = this.#process;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group has no process left.
    }
  }

  /** Counts pings instead of time: after a pause of this process, its first ping proves nothing about the child. */
  #ping(): void {
    this.#printed = 0;
    const limitMs = this.#isReady ? this.#options.silenceMs : START_MS;
    if (++this.#unanswered > Math.ceil(limitMs / PING_MS)) {
      this.kill(`it did not answer for ${limitMs} ms`);
      return;
    }
    this.send({ k: "ping" });
  }

  #read(raw: unknown): void {
    if (this.#isGone || this.#killed !== null) return;
    const message = readFromRunner(raw);
    if (message === null) {
      this.kill("it sent an invalid message");
      return;
    }
    this.answeredAt = performance.now();
    this.#unanswered = 0;
    if (message.k === "ready") this.#isReady = true;
    if (message.k !== "pong") this.#listener.message(message);
  }

  /** Output from outside of any trigger, or from native code. */
  #receiveText(text: string): void {
    this.#lastWords = (this.#lastWords + text).slice(-MAX_LAST_WORDS);
    const room = MAX_PRINTED - this.#printed;
    this.#printed += text.length;
    if (room <= 0) return;
    const said = text.length > room ? `${text.slice(0, room)}… (there was more)` : text;
    this.#options.logger.warn("a trigger process printed", { pid: this.pid, text: said.trim() });
  }

  #leave(how: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    clearInterval(this.#pings);
    this.#memory?.stop();
    this.kill("");
    for (const stream of this.#process.stdio) stream?.destroy();
    this.#listener.gone([this.#killed, how, this.#lastWords.trim()].filter(Boolean).join("; "));
  }
}

function overLimit(limitMb: number, usedMb: number): string {
  return `memory: it used ${usedMb} MB, the limit is ${limitMb} MB (TRADEWIND_TRIGGERER_MEMORY_MB)`;
}
