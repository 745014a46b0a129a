/**
 * Turns the output of user code in this process into frames on the log pipe. Writes are synchronous: output before a
 * crash is in the pipe, and a flood waits for the supervisor instead of growing in memory. Output that bypasses
 * JavaScript (native code, subprocesses) goes to the real descriptors, which the supervisor also reads.
 */
import { writeSync } from "node:fs";
import { Writable } from "node:stream";
import type { LogLevel } from "@tradewind/sdk/program";
import { encodeFrame, type LogSource, MAX_PAYLOAD_BYTES } from "../../log/log-frame.ts";
import { LOG_FD } from "../attempt/protocol.ts";

/** Longer records are cut here. The supervisor cuts shorter, after it has masked secrets. */
const MAX_MESSAGE_LENGTH = 40 * 1024;

export class OutputCapture {
  /** All bytes written to the pipe so far. */
  written = 0;
  /** Bytes of the current attempt that were dropped. */
  dropped = 0;
  #budget = 0;
  /** Set while a method of `console` runs, because `warn` and `error` write to the same stream. */
  #consoleLevel: LogLevel | null = null;

  install(): void {
    this.#capture("stdout", "info");
    this.#capture("stderr", "warn");
    for (const level of ["debug", "warn", "error"] as const) {
      const original = console[level].bind(console);
      console[level] = (...args: unknown[]) => {
        this.#consoleLevel = level;
        try {
          original(...args);
        } finally {
          this.#consoleLevel = null;
        }
      };
    }
  }

  begin(budget: number): void {
    this.#budget = budget;
    this.dropped = 0;
  }

  record(level: LogLevel, message: string, fields: object | undefined): void {
    let payload = Buffer.from(JSON.stringify({ m: message, f: readable(fields) }));
    if (payload.length > MAX_PAYLOAD_BYTES) {
      const m = message.slice(0, MAX_MESSAGE_LENGTH);
      payload = Buffer.from(JSON.stringify({ m, f: { note: "this record was too large and is cut" } }));
    }
    this.#frame("task", level, payload);
  }

  /**
   * Replaces the stream without using Node's own, which would make the descriptor non-blocking, also for subprocesses:
   * these would lose output or fail when the pipe is full.
   */
  #capture(source: "stdout" | "stderr", level: LogLevel): void {
    const write = (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
      const bytes =
        typeof chunk === "string"
          ? Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")
          : Buffer.from(chunk as Uint8Array);
      for (let at = 0; at < bytes.length; at += MAX_PAYLOAD_BYTES) {
        this.#frame(source, this.#consoleLevel ?? level, bytes.subarray(at, at + MAX_PAYLOAD_BYTES));
      }
      const callback = typeof encoding === "function" ? encoding : done;
      if (typeof callback === "function") process.nextTick(callback as () => void);
      return true;
    };
    const stream = Object.assign(new Writable(), { write, fd: source === "stdout" ? 1 : 2, isTTY: false });
    Object.defineProperty(process, source, { configurable: true, enumerable: true, get: () => stream });
  }

  #frame(source: LogSource, level: LogLevel, payload: Buffer): void {
    if (payload.length > this.#budget) {
      this.#budget = 0;
      this.dropped += payload.length;
      return;
    }
    this.#budget -= payload.length;
    const frame = encodeFrame({ source, level, time: Date.now(), payload });
    this.written += frame.length;
    for (let at = 0; at < frame.length; ) at += writeSome(frame, at);
  }
}

/** Fields may not be JSON at run time: a log call must not fail a task. */
function readable(fields: object | undefined): object | undefined {
  try {
    JSON.stringify(fields);
    return fields;
  } catch (error) {
    return { note: `these fields are not JSON: ${String(error)}` };
  }
}

function writeSome(bytes: Buffer, at: number): number {
  try {
    return writeSync(LOG_FD, bytes, at);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // The supervisor has exited, and this process is about to: the pipe has no reader.
    if (code !== "EAGAIN") return bytes.length;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    return 0;
  }
}
