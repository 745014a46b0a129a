import { s3Place } from "../service/setting-values.ts";
import { LogFolder } from "./log-folder.ts";
import type { LogStore } from "./log-store.ts";

/** @param folder The folder of `file:` alone. */
export async function openLogStore(location: string, folder: string): Promise<LogStore> {
  const place = s3Place(location);
  if (place === null) return new LogFolder(location.slice("file:".length) || folder);
  // The client is larger than all the rest of a scheduler, and rarely needed.
  const { S3Logs } = await import("./s3-logs.ts");
  return new S3Logs(location, place);
}
