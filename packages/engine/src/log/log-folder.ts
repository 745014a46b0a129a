/**
 * Logs as files of a folder of this machine, or of a file system that several machines share: the key of a log is its path
 * there. A file is append-only, opened with the first line, and written in the background in batches, one write at a time. A
 * log that cannot be written (disk full, folder gone) never affects the attempt: the lines are lost, and `onError` receives
 * the first error. If the process dies the file may end in half a line; the next writer starts a new line, and readers show
 * the half.
 */
import { constants } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rm, rmdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { FolderView, lastWrittenIn } from "./folder-view.ts";
import { chunkRejected, type LogStore, type LogView, type LogViewOptions, partsOf } from "./log-store.ts";
import type { LogListener, LogSink } from "./log-writer.ts";

interface LogFileOptions extends LogListener {
  readonly path: string;
}

const HIGH_WATER = 1024 * 1024;
const FILE_MODE = 0o640;

export class LogFolder implements LogStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = resolve(folder);
  }

  open(key: string, listener: LogListener): LogSink {
    return new LogFile({ path: join(this.#folder, key), ...listener });
  }

  async begin(key: string): Promise<number> {
    const handle = await open(this.#path(key), constants.O_RDWR | constants.O_APPEND).catch(ignoreMissing);
    if (handle === null) return 0;
    try {
      await endLine(handle);
      return (await handle.stat()).size;
    } finally {
      await handle.close();
    }
  }

  /** Writes at the offset, not at the end: a chunk of which a dead server wrote only a part is completed. */
  async append(key: string, offset: number, bytes: Buffer): Promise<number> {
    const path = this.#path(key);
    await makeParent(path);
    const handle = await open(path, constants.O_RDWR | constants.O_CREAT, FILE_MODE);
    try {
      const { size } = await handle.stat();
      if (offset > size) throw chunkRejected(key, offset, size);
      const stored = await readAll(handle, offset, Math.min(size, offset + bytes.length));
      const [known, rest] = [bytes.subarray(0, stored.length), bytes.subarray(stored.length)];
      if (!stored.equals(known)) throw chunkRejected(key, offset, size);
      await writeAll(handle, rest, offset + stored.length);
      return size + rest.length;
    } finally {
      await handle.close();
    }
  }

  view(folders: readonly string[], { isFollowed = false }: LogViewOptions = {}): LogView {
    return new FolderView(
      folders.flatMap((key) => (partsOf(key) === null ? [] : [{ key, path: join(this.#folder, key) }])),
      isFollowed,
    );
  }

  async folders(folder: string): Promise<readonly string[]> {
    const entries = await readdir(this.#path(folder), { withFileTypes: true }).catch(ignoreMissing);
    return (entries ?? []).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  }

  lastWritten(folder: string): Promise<number> {
    return lastWrittenIn(this.#path(folder));
  }

  async remove(folder: string): Promise<void> {
    const path = this.#path(folder);
    await rm(path, { recursive: true, force: true });
    // Fails while the folder is not empty.
    await rmdir(dirname(path)).catch(() => {});
  }

  async close(): Promise<void> {}

  #path(key: string): string {
    if (partsOf(key) === null) throw new Error(`invalid path of a log: ${JSON.stringify(key)}`);
    return join(this.#folder, key);
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
  await makeParent(path);
  const handle = await open(path, "a+", FILE_MODE);
  try {
    await endLine(handle);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Not for other accounts: a store may lie outside of the home, which is closed to them. */
async function makeParent(path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
}

async function endLine(handle: FileHandle): Promise<void> {
  const { size } = await handle.stat();
  if (size === 0) return;
  const last = await readAll(handle, size - 1, size);
  if (last[0] !== 0x0a) await handle.appendFile("\n");
}

async function readAll(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(to - from);
  let end = 0;
  while (end < bytes.length) {
    const { bytesRead } = await handle.read(bytes, end, bytes.length - end, from + end);
    if (bytesRead === 0) break;
    end += bytesRead;
  }
  return bytes.subarray(0, end);
}

/** @param position undefined: at the end. */
async function writeAll(handle: FileHandle, bytes: Buffer, position?: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const place = position === undefined ? null : position + at;
    at += (await handle.write(bytes, at, bytes.length - at, place)).bytesWritten;
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === "ENOENT" || error.code === "ENOTDIR") return null;
  throw error;
}
