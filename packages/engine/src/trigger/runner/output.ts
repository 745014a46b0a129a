/**
 * Captures all output of this process. Output of a trigger becomes a record of its log; any other output goes to the
 * real descriptor, and the supervisor writes it to the engine's log.
 */
import { writeSync } from "node:fs";
import { Writable } from "node:stream";
import type { LogLevel } from "@tradewind/sdk/program";
import { currentScope } from "./scope.ts";

/** Set while one of console's methods runs, because both `warn` and `error` end in the same stream. */
let consoleLevel: LogLevel | null = null;

export function captureOutput(): void {
  capture("stdout", 1, "info");
  capture("stderr", 2, "warn");
  for (const level of ["debug", "warn", "error"] as const) {
    const original = console[level].bind(console);
    console[level] = (...args: unknown[]) => {
      consoleLevel = level;
      try {
        original(...args);
      } finally {
        consoleLevel = null;
      }
    };
  }
}

/** Bypasses the capture. A supervisor that does not read must not block the loop: then the text is lost. */
export function print(descriptor: 1 | 2, text: string | Uint8Array): void {
  try {
    writeSync(descriptor, typeof text === "string" ? Buffer.from(text) : text);
  } catch {
    // The pipe is full, or nobody is there.
  }
}

/** Replaces the stream without accessing Node's own stream, which would change the descriptor's mode. */
function capture(name: "stdout" | "stderr", descriptor: 1 | 2, level: LogLevel): void {
  const write = (chunk: unknown, encoding?: unknown, done?: unknown): boolean => {
    const text =
      typeof chunk === "string" && (typeof encoding !== "string" || encoding === "utf8")
        ? chunk
        : Buffer.from(chunk as string, encoding as BufferEncoding).toString("utf8");
    const scope = currentScope();
    if (scope === null) print(descriptor, text);
    else scope.log(consoleLevel ?? level, text.replace(/\n$/, ""));
    const callback = typeof encoding === "function" ? encoding : done;
    if (typeof callback === "function") process.nextTick(callback as () => void);
    return true;
  };
  const stream = Object.assign(new Writable(), { write, fd: descriptor, isTTY: false });
  Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
}
