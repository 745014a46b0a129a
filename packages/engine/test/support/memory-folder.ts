/**
 * The folder for the files of a test run: in memory, if the machine has plenty. Tests create and delete hundreds of
 * thousands of files (300 per database), which takes a fifth of the time there. The files need not survive a reboot: tests
 * kill servers, not the machine.
 */
import { createHash } from "node:crypto";
import { accessSync, constants, mkdirSync, readFileSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";

const MEMORY = "/dev/shm";
const ROOM_BYTES = 4 * 2 ** 30;

/** A folder for this checkout and user, the same for every run; undefined if memory is short. */
export function memoryFolder(): string | undefined {
  if (process.availableMemory() < 2 * ROOM_BYTES || roomBytes() < ROOM_BYTES) return undefined;
  const checkout = createHash("sha256")
    .update(resolve(import.meta.dirname, "../../../.."))
    .digest("hex");
  const folder = join(MEMORY, `tradewind-tests-${checkout.slice(0, 8)}-uid-${process.getuid?.() ?? 0}`);
  mkdirSync(folder, { recursive: true, mode: 0o755 });
  return folder;
}

/** The writable bytes there; 0 if programs must not be executed there, because some tests install and start programs. */
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
