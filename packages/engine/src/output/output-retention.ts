/**
 * Objects that no output refers to any more, nor any attempt under way: of runs that were deleted, of tasks that were
 * cleared, of attempts that died between writing and committing. The object goes first, then its row.
 *
 * Dies in between: the row is found again, and that its object is gone is no error. Two at once: the same. What was unused
 * stays so: an attempt that is over never comes back.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SCRATCH } from "./large-outputs.ts";

/** The row is made before the object: whoever made a younger one may still be writing. */
export const UNUSED_FOR_MS = 3_600_000;

/** Nobody writes a draft for so long, or reads a copy. */
const SCRATCH_MS = 24 * 3_600_000;

interface UnusedObject {
  readonly id: number;
  readonly store: string;
  readonly key: string;
}

export interface OutputRetention {
  readonly batch: number;
  /** The next unused ones, in the order of their numbers. */
  readonly list: (after: number, limit: number) => Promise<readonly UnusedObject[]>;
  readonly remove: (store: string, keys: readonly string[]) => Promise<void>;
  readonly forget: (ids: readonly number[]) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (objects: number) => void;
  /** A store that cannot be reached keeps what it has: its rows stay. */
  readonly onUnreachable?: (store: string, error: unknown) => void;
}

/** Answers how many objects it removed. */
export async function cleanOutputs(options: OutputRetention): Promise<number> {
  const { batch, forget, list, onProgress, onUnreachable, remove, signal } = options;
  let gone = 0;
  for (let after = 0; signal?.aborted !== true; ) {
    const found = await list(after, batch);
    if (found.length === 0) break;
    after = found.at(-1)!.id;
    for (const [store, objects] of Map.groupBy(found, (object) => object.store)) {
      try {
        await remove(
          store,
          objects.map(({ key }) => key),
        );
      } catch (error) {
        onUnreachable?.(store, error);
        continue;
      }
      await forget(objects.map(({ id }) => id));
      gone += objects.length;
      onProgress?.(gone);
    }
  }
  return gone;
}

/** What processes that died have left of drafts and copies, on this machine. */
export async function cleanScratch(folder: string, olderThanMs = SCRATCH_MS): Promise<void> {
  const scratch = join(folder, SCRATCH);
  for (const name of await readdir(scratch).catch(() => [])) {
    const path = join(scratch, name);
    const found = await stat(path).catch(() => null);
    if (found && found.mtimeMs < Date.now() - olderThanMs) await rm(path, { recursive: true, force: true });
  }
}
