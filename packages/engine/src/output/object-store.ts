/**
 * Where large outputs lie: a folder, or a bucket. A key is used once, by one attempt: nothing is ever overwritten, and
 * an object under its key is complete.
 */
import { EngineError } from "../service/errors.ts";
import { FolderStore } from "./folder-store.ts";

export interface ObjectStore {
  /** As the setting says it, and as references do. */
  readonly location: string;
  /** Puts a file under a key. The file is given away. */
  put(key: string, file: string): Promise<void>;
  /** As people are told where an object is. */
  addressOf(key: string): string;
  /** Where this machine has the object; null: it has to be fetched. */
  pathOf(key: string): string | null;
  /** Whether the object is there; nothing of it is read. */
  has(key: string): Promise<boolean>;
  /** Copies the object to a file of this machine; false: it is not there. */
  fetch(key: string, file: string): Promise<boolean>;
  /** What is not there is no error. */
  remove(keys: readonly string[]): Promise<void>;
  close(): void;
}

/** @param folder What `file:` alone stands for. */
export async function openObjectStore(location: string, folder: string): Promise<ObjectStore> {
  if (location.startsWith("file:")) return new FolderStore(location, location.slice(5) || folder);
  const s3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(location);
  if (s3 === null)
    throw new EngineError(
      "CONFIG_INVALID",
      `"${location}" is no place for outputs: TRADEWIND_OUTPUT_STORE is file:/folder or s3://bucket/prefix.`,
    );
  // Larger than all the rest of a scheduler, and few need it.
  const { S3Store } = await import("./s3-store.ts");
  return new S3Store(location, { bucket: s3[1]!, prefix: (s3[2] ?? "").replace(/\/+$/, "") });
}
