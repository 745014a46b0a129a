/**
 * Frames on the log pipe from child to supervisor: one byte of kind, eight of time (ms since 1970), four of length,
 * then the payload. The child writes them synchronously, so lines from before a crash are not lost, and a supervisor that
 * does not read blocks the writer.
 */
import type { LogLevel } from "@tradewind/sdk/program";

export type LogSource = "task" | "stdout" | "stderr";

/** One frame. Payload of "task": JSON `{ m: message, f?: fields }`; of the streams: the bytes as written. */
export interface LogFrame {
  readonly source: LogSource;
  readonly level: LogLevel;
  readonly time: number;
  readonly payload: Buffer;
}

const HEADER_BYTES = 13;
/** The writer splits longer payloads, so that the reader never holds more than this. */
export const MAX_PAYLOAD_BYTES = 256 * 1024;

const SOURCES: readonly LogSource[] = ["task", "stdout", "stderr"];
const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

export function encodeFrame(frame: LogFrame): Buffer {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + frame.payload.length);
  bytes[0] = SOURCES.indexOf(frame.source) * LEVELS.length + LEVELS.indexOf(frame.level);
  bytes.writeDoubleLE(frame.time, 1);
  bytes.writeUInt32LE(frame.payload.length, 9);
  frame.payload.copy(bytes, HEADER_BYTES);
  return bytes;
}

/** Splits a byte stream into frames. A foreign stream is reported once and then ignored. */
export class FrameReader {
  readonly #onFrame: (frame: LogFrame) => void;
  #rest: Buffer = Buffer.alloc(0);
  #consumed = 0;
  #broken = false;

  constructor(onFrame: (frame: LogFrame) => void) {
    this.#onFrame = onFrame;
  }

  /** Bytes of all complete frames so far (of everything, once the stream is broken). */
  get consumed(): number {
    return this.#consumed;
  }

  /** Returns false if the bytes cannot be frames: user code wrote to our descriptor. */
  push(chunk: Buffer): boolean {
    if (this.#broken) {
      this.#consumed += chunk.length;
      return true;
    }
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= HEADER_BYTES) {
      const kind = bytes[0]!;
      const length = bytes.readUInt32LE(9);
      if (kind >= SOURCES.length * LEVELS.length || length > MAX_PAYLOAD_BYTES) {
        this.#broken = true;
        this.#consumed += bytes.length;
        this.#rest = Buffer.alloc(0);
        return false;
      }
      const end = HEADER_BYTES + length;
      if (bytes.length < end) break;
      this.#consumed += end;
      this.#onFrame({
        source: SOURCES[Math.floor(kind / LEVELS.length)]!,
        level: LEVELS[kind % LEVELS.length]!,
        time: bytes.readDoubleLE(1),
        payload: bytes.subarray(HEADER_BYTES, end),
      });
      bytes = bytes.subarray(end);
    }
    this.#rest = bytes;
    return true;
  }
}
