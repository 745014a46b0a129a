/**
 * The state of the inputs of an artefact at the time of the build. Files are read synchronously here and in the child:
 * nothing else waits for this process, and the thread pool costs more than the read.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, type Stats, statSync } from "node:fs";
import type { InputStamp } from "./bundled.ts";

/** File systems have coarse clocks: a write this close before a time may have an earlier timestamp. */
const CLOCK_TICK_MS = 20;

/** A stamp taken this soon after a write proves nothing: a second write may leave the same time and size. */
export const RACY_MS = 2_000;

/** A child sees the same packages in hundreds of files: each is read once per change. */
const known = new Map<string, InputStamp>();

/** `settled` is false if an input is missing or was written since `startedAt`: then it is unknown what was bundled. */
export function stampInputs(
  paths: readonly string[],
  startedAt: number,
): { stamps: InputStamp[]; settled: boolean } {
  const stamps = paths.map(stampInput);
  const found = stamps.filter((stamp) => stamp !== null);
  // A time in the future is a wrong clock, not a write: waiting for it to pass would bundle the file forever.
  const now = Date.now() + CLOCK_TICK_MS;
  const isFresh = ({ mtimeMs }: InputStamp) => mtimeMs >= startedAt - CLOCK_TICK_MS && mtimeMs <= now;
  return { stamps: found, settled: found.length === paths.length && !found.some(isFresh) };
}

/** Null if the file cannot be read. */
export function stampInput(path: string): InputStamp | null {
  try {
    const stat = statSync(path);
    const { mtimeMs, size } = stat;
    const last = known.get(path);
    if (last && last.mtimeMs === mtimeMs && last.size === size) return last;
    const stamp = { path, mtimeMs, size, sha256: sha256(contentOf(path, stat)) };
    if (mtimeMs < Date.now() - RACY_MS) known.set(path, stamp);
    else known.delete(path);
    return stamp;
  } catch {
    return null;
  }
}

/** For a folder, its file names: an added file changes a bundle that includes the folder. */
function contentOf(path: string, stat: Stats): string | Buffer {
  return stat.isDirectory() ? readdirSync(path).sort().join("\0") : readFileSync(path);
}

export function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
