/**
 * Where a test run keeps its files: in memory, where the machine has plenty. Tests make and remove files by the hundred
 * thousand, a database alone is 300, and there that is done in a fifth of the time. Nothing here need outlive the
 * machine: servers are killed in tests, the machine is not.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, mkdirSync, readFileSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";

const MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 2 ** 30;

/** A folder for this checkout and user, the same for every run; undefined where memory is short. */
export function memoryFolder(): string | undefined {
  if (process.availableMemory() < 2 * ROOM_BYTES || roomBytes() < ROOM_BYTES) return undefined;
  const checkout = createHash("sha256")
    .update(resolve(import.meta.dirname, "../../../.."))
    .digest("hex");
  const folder = join(MEMORY, `tradewind-tests-${checkout.slice(0, 8)}-uid-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return folder;
}

/** What may be written there; nothing where programs may not be run, as some tests install and start them. */
function roomBytes(): number {
  try {
    accessSync(MEMORY, constants.W_OK);
    const mount = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" "))
      .find(([, at]) => at === MEMORY);
    if (mount?.[3]?.split(",").includes("noexec")) return 0;
    const { bavail, bsize } = statfsSync(MEMORY);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
