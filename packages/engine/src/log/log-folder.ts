/**
 * The writing side of one attempt's log file: append-only, opened with the first line, written in the background in
 * batches, one write at a time. A log that cannot be written (disk full, folder gone) never affects the attempt: the lines
 * are lost, and `onError` receives the first error. If the process dies the file may end in half a line; the next writer
 * starts a new line, and readers skip lines that are not JSON.
 */
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { LogListener, LogSink, LogWriter } from "./log-writer.ts";

interface LogFileOptions extends LogListener {
  readonly path: string;
}

const HIGH_WATER = 1024 * 1024;

/** Logs as files of one folder: the key of a log is its path there. */
export class LogFolder implements LogWriter {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  open(key: string, listener: LogListener): LogSink {
    return new LogFile({ path: join(this.#folder, key), ...listener });
  }
}

class LogFile implements LogSink {
  readonly #options: LogFileOptions;
  #waiting: string[] = [];
  #waitingLength = 0;
  #pressure = false;
  #failed = false;
  #handle: FileHandle | null = null;
  #work: Promise<void> | null = null;

  constructor(options: LogFileOptions) {
    this.#options = options;
  }

  append(line: string): void {
    if (this.#failed) return;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (!this.#pressure && this.#waitingLength > HIGH_WATER) this.#setPressure(true);
    this.#work ??= this.#drain();
  }

  /** Resolves when everything appended so far is in the file, and closes it. */
  async close(): Promise<void> {
    await this.#work;
    const handle = this.#handle;
    this.#handle = null;
    await handle?.close().catch(this.#options.onError);
  }

  async #drain(): Promise<void> {
    try {
      this.#handle ??= await openForAppend(this.#options.path);
      while (this.#waiting.length > 0) {
        const text = this.#waiting.join("");
        this.#waiting = [];
        await writeAll(this.#handle, Buffer.from(text));
        this.#waitingLength -= text.length;
        if (this.#pressure) this.#setPressure(false);
      }
    } catch (error) {
      this.#failed = true;
      this.#waiting = [];
      this.#options.onError(error);
      if (this.#pressure) this.#setPressure(false);
    } finally {
      this.#work = null;
    }
  }

  #setPressure(high: boolean): void {
    this.#pressure = high;
    this.#options.onPressure(high);
  }
}

async function openForAppend(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true });
  const handle = await open(path, "a+", 0o640);
  try {
    const { size } = await handle.stat();
    if (size > 0) {
      const last = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
      if (last.buffer[0] !== 0x0a) await handle.appendFile("\n");
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer): Promise<void> {
  let from = 0;
  while (from < bytes.length) from += (await handle.write(bytes, from)).bytesWritten;
}
