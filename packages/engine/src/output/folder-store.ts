/**
 * Objects as files of a folder. A file under its name is complete: it was written elsewhere on the same disk, flushed,
 * and renamed. If the process dies before the rename, a draft is left in the scratch folder, which is removed when it is
 * old. If it dies after, the object has no output that refers to it; the sweep finds its row.
 */
import { open, rename, rm, rmdir, stat } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { makeFolder } from "../service/home.ts";
import type { ObjectStore } from "./object-store.ts";

const TRIES = 5;

export class FolderStore implements ObjectStore {
  readonly location: string;
  readonly folder: string;

  constructor(location: string, folder: string) {
    this.location = location;
    this.folder = folder;
  }

  pathOf(key: string): string {
    return join(this.folder, ...key.split("/"));
  }

  addressOf(key: string): string {
    return this.pathOf(key);
  }

  async put(key: string, file: string): Promise<void> {
    const path = this.pathOf(key);
    for (let tries = 1; ; tries++) {
      try {
        await makeFolder(dirname(path));
        await rename(file, path);
        break;
      } catch (error) {
        // A sweep that found the folder empty has just removed it, perhaps while another process created it.
        const { code } = error as NodeJS.ErrnoException;
        if ((code !== "ENOENT" && code !== "EEXIST") || tries === TRIES) throw error;
      }
    }
    await flushFolder(dirname(path));
  }

  async has(key: string): Promise<boolean> {
    try {
      await stat(this.pathOf(key));
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
  }

  /** The object is already local. */
  fetch(): Promise<boolean> {
    return Promise.resolve(false);
  }

  async remove(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const path = this.pathOf(key);
      await rm(path, { force: true });
      // Removes folders that are empty now; rmdir rejects the others.
      for (let at = dirname(path); at.startsWith(this.folder + sep); at = dirname(at)) {
        if (
          !(await rmdir(at).then(
            () => true,
            () => false,
          ))
        )
          break;
      }
    }
  }

  close(): void {}
}

/** A rename survives a power cut once the folder is flushed. Not every system supports that: then it is skipped. */
async function flushFolder(path: string): Promise<void> {
  const handle = await open(path).catch(() => null);
  try {
    await handle?.sync().catch(() => {});
  } finally {
    await handle?.close();
  }
}
