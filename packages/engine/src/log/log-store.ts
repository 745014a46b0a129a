/**
 * The logs of attempts: in a folder, or in a bucket. Every process that reaches the store reads every log, also while it
 * grows. The key of a log is its path, with "/" between the parts: `<dag>/<run number>/<task>/<map index>/<file>.log`.
 * Positions are byte offsets.
 *
 * A log has one writer at a time. A process that runs attempts itself writes with `open`. A writer that reaches the store only
 * through the API sends chunks, which `append` stores: possibly twice, and through several API servers one after the other.
 */
import { EngineError } from "../service/errors.ts";
import type { LogWriter } from "./log-writer.ts";

export interface LogStore extends LogWriter {
  /**
   * Prepares a log for a writer that appends: ends the line that a dead writer left unfinished. Returns the offset where the
   * new writer begins, 0 for a new log. Can be repeated before the first `append`.
   */
  begin(key: string): Promise<number>;
  /**
   * Stores the bytes of a log from `offset` on. Bytes that are already stored are compared, not added. Returns the length of
   * the log.
   * @throws EngineError LOG_CHUNK_REJECTED if the log is shorter than `offset`, or has other bytes there.
   */
  append(key: string, offset: number, bytes: Buffer): Promise<number>;
  /** The logs below folders, at any depth. A folder that leads out of the store has none. */
  view(folders: readonly string[], options?: LogViewOptions): LogView;
  /** The names of the folders in a folder; "" is the root. */
  folders(folder: string): Promise<readonly string[]>;
  /** When something in the folder was last written, in ms; 0 if it does not exist. */
  lastWritten(folder: string): Promise<number>;
  /** Deletes a folder with its logs. A missing folder is no error. */
  remove(folder: string): Promise<void>;
  /** Waits a short time for writes that are not finished. */
  close(): Promise<void>;
}

export interface LogViewOptions {
  /** Watches the folders, so that `wait` returns when a log grows. */
  readonly isFollowed?: boolean;
}

/** A log as it was when it was listed. */
export interface StoredLog {
  readonly key: string;
  readonly size: number;
  /** In ms. */
  readonly modifiedAt: number;
  /** The bytes from `from` to `to` (exclusive); fewer if the log has been deleted. */
  read(from: number, to: number): Promise<Buffer>;
}

export interface LogView {
  /** The logs that may have grown since the last call, or all. A log without content is not listed. */
  changed(options: { readonly isAll: boolean }): AsyncGenerator<StoredLog, void, undefined>;
  /** Waits for growth since the last call of `changed`, at most about `ms`; a bucket is listed once per second at most. */
  wait(options: { readonly ms: number; readonly stop: AbortSignal }): Promise<void>;
  /** Ends the current wait, or the next one. */
  wake(): void;
  close(): void;
}

/** The parts of a path in a store; null if an id such as ".." leads out of it. */
export function partsOf(path: string): readonly string[] | null {
  if (path === "") return [];
  const parts = path.split("/");
  return parts.some((part) => part === "" || part === "." || part === ".." || /[\\\0]/.test(part))
    ? null
    : parts;
}

export const LOG_STORE_UNAVAILABLE = "LOG_STORE_UNAVAILABLE";
export const LOG_CHUNK_REJECTED = "LOG_CHUNK_REJECTED";

export function chunkRejected(key: string, offset: number, size: number): EngineError {
  const found = offset > size ? `the log ends at byte ${size}` : "the log has other bytes there";
  return new EngineError(
    LOG_CHUNK_REJECTED,
    `The chunk of log "${key}" for byte ${offset} does not fit: ${found}. A log has one writer at a time, and a new writer begins at its end.`,
    { details: { log: key, offset, size } },
  );
}
