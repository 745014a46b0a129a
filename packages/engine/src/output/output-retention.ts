/**
 * Objects that no output and no active attempt refers to: of deleted runs, of cleared tasks, of attempts that died between
 * writing and committing. The object is removed first, then its row.
 *
 * If the process dies in between, the row is found again, and its missing object is no error. The same holds for two at
 * once. An unused object stays unused: an ended attempt never returns.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SCRATCH } from "./large-outputs.ts";

/** The row is created before the object: the creator of a younger one may still be writing. */
export const UNUSED_FOR_MS = 3_600_000;

/** No draft is written, and no copy read, for this long. */
const SCRATCH_MS = 24 * 3_600_000;

interface UnusedObject {
  readonly id: number;
  readonly store: string;
  readonly key: string;
}

export interface OutputRetention {
  readonly batch: number;
  /** The next unused objects, by id. */
  readonly list: (after: number, limit: number) => Promise<readonly UnusedObject[]>;
  readonly remove: (store: string, keys: readonly string[]) => Promise<void>;
  readonly forget: (ids: readonly number[]) => Promise<void>;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (objects: number) => void;
  /** If a store is unreachable, its objects and rows are kept. */
  readonly onUnreachable?: (store: string, error: unknown) => void;
}

/** Returns how many objects it removed. */
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

/** Removes drafts and copies of dead processes on this machine. */
export async function cleanScratch(folder: string, olderThanMs = SCRATCH_MS): Promise<void> {
  const scratch = join(folder, SCRATCH);
  for (const name of await readdir(scratch).catch(() => [])) {
    const path = join(scratch, name);
    const found = await stat(path).catch(() => null);
    if (found && found.mtimeMs < Date.now() - olderThanMs) await rm(path, { recursive: true, force: true });
  }
}
