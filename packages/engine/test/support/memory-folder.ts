/**
 * Where a test run keeps its files: in memory, where the machine has plenty. Tests make and remove files by the hundred
 * thousand, a database alone is 300, and on a disk that is a third of what they cost. Nothing here need outlive the
 * machine: servers are killed in tests, the machine is not.
 */
import { createHash } from "node:crypto";
import { mkdirSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";

const MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 2 ** 30;

/** A folder for this checkout and user, the same for every run; undefined where memory is short. */
export function memoryFolder(): string | undefined {
  if (process.availableMemory() < 2 * ROOM_BYTES || freeBytes(MEMORY) < ROOM_BYTES) return undefined;
  const checkout = createHash("sha256")
    .update(resolve(import.meta.dirname, "../../../.."))
    .digest("hex");
  const folder = join(MEMORY, `tradewind-tests-${checkout.slice(0, 8)}-uid-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return folder;
}

function freeBytes(path: string): number {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
