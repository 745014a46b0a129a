/**
 * The store of large outputs: a folder, or a bucket. A key is used once, by one attempt: nothing is ever overwritten, and
 * an object under its key is complete.
 */
import { EngineError } from "../service/errors.ts";
import { s3Place } from "../service/setting-values.ts";
import { FolderStore } from "./folder-store.ts";

export interface ObjectStore {
  /** As in the setting and in references. */
  readonly location: string;
  /** Stores a file under a key. The file is moved. */
  put(key: string, file: string): Promise<void>;
  /** The location of an object, for display. */
  addressOf(key: string): string;
  /** The local path of the object; null if it has to be fetched. */
  pathOf(key: string): string | null;
  /** True if the object exists; reads nothing of it. */
  has(key: string): Promise<boolean>;
  /** Copies the object to a local file; false if it does not exist. */
  fetch(key: string, file: string): Promise<boolean>;
  /** A missing object is no error. */
  remove(keys: readonly string[]): Promise<void>;
  close(): void;
}

/** @param folder The folder of `file:` alone. */
export async function openObjectStore(location: string, folder: string): Promise<ObjectStore> {
  if (location.startsWith("file:")) return new FolderStore(location, location.slice(5) || folder);
  const place = s3Place(location);
  if (place === null)
    throw new EngineError(
      "CONFIG_INVALID",
      `Invalid output store "${location}": TRADEWIND_OUTPUT_STORE must be file:/folder or s3://bucket/prefix.`,
    );
  // Larger than all the rest of a scheduler, and rarely needed.
  const { S3Store } = await import("./s3-store.ts");
  return new S3Store(location, place);
}
