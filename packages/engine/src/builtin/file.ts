/**
 * Waits for a file. Polling is authoritative: `fs.watch` sees nothing on network file systems and nothing in a folder that
 * does not exist yet. Where it works, the trigger fires within milliseconds.
 *
 * A file is identified by its path, size and modification time: written again it is another event, seen again it is not.
 */
import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { FileEvent } from "@tradewind/sdk/builtin-triggers";
import { members, text, whole } from "./argument-readers.ts";
import { globMatcher, hasWildcard } from "./glob.ts";
import { listedKind } from "./poll-loop.ts";
import { SharedClients } from "./shared-clients.ts";
import { badArguments } from "./trigger-error.ts";
import type { Thing } from "./watches.ts";

const KIND = "tradewind.file";
/** A file that was unchanged for this long counts as written; a file that changes all the time is not awaited. */
const SETTLED_MS = 30;
const SETTLING_ROUNDS = 10;

export const fileKind = listedKind(KIND, {
  args: members({ path: text, intervalMs: whole(1) }),
  intervalMs: ({ intervalMs }) => intervalMs,
  open: async ({ path }, host) => {
    const folder = dirname(resolve(path));
    if (hasWildcard(folder)) throw badArguments(KIND, "path: only its last part may have * and ?");
    const name = basename(resolve(path));
    const watched = new WatchedFolder(folder, name, (reason) =>
      host.log("debug", `${folder} is not watched, only polled: ${reason}`),
    );
    return {
      place: "file",
      limit: 16,
      none: `${join(folder, name)} is not there yet`,
      things: (signal) => {
        // Started before the poll: a file that appears in between is either seen or reported.
        watched.begin();
        return filesIn(folder, name, signal);
      },
      watch: (hurry) => {
        watched.listener = hurry;
      },
      close: () => watched.end(),
    };
  },
});

async function* filesIn(folder: string, name: string, signal: AbortSignal): AsyncGenerator<Thing> {
  const names = hasWildcard(name) ? (await namesIn(folder)).filter(globMatcher(name)).sort() : [name];
  for (const each of names) {
    signal.throwIfAborted();
    const thing = await fileAt(join(folder, each));
    if (thing !== undefined) yield thing;
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw error;
  }
}

async function fileAt(path: string): Promise<Thing | undefined> {
  try {
    let found = await stat(path);
    if (found.isDirectory()) return undefined;
    // A watch reports a file that is still empty. A file that is written in one go is complete a moment later.
    for (let round = 0; round < SETTLING_ROUNDS && isFresh(found); round++) {
      await sleep(SETTLED_MS);
      const before = found;
      found = await stat(path);
      if (found.size === before.size && found.mtimeMs === before.mtimeMs) break;
    }
    const event: FileEvent = { path, size: found.size, mtime: found.mtime.toISOString() };
    return { name: path, event: { ...event }, key: `${found.mtimeMs} ${found.size} ${path}` };
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw error;
  }
}

function isFresh({ mtimeMs }: { readonly mtimeMs: number }): boolean {
  return Math.abs(Date.now() - mtimeMs) < SETTLED_MS;
}

function isAbsence(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "");
}

interface FolderWatch {
  readonly watcher: FSWatcher;
  readonly listeners: Set<(name: string | null) => void>;
}

/** The system limits the number of watches: one per folder, for any number of files in it. */
const watches = new SharedClients<FolderWatch>(({ watcher }) => watcher.close());

class WatchedFolder {
  listener: ((path: string | null) => void) | null = null;
  readonly #folder: string;
  readonly #onMissing: (reason: string) => void;
  readonly #matches: (name: string) => boolean;
  readonly #changed = (name: string | null) => {
    if (name === null || this.#matches(name))
      this.listener?.(name === null ? null : join(this.#folder, name));
  };
  #held: { readonly client: FolderWatch; release(): void } | null = null;
  #isReported = false;

  constructor(folder: string, name: string, onMissing: (reason: string) => void) {
    this.#folder = folder;
    this.#matches = globMatcher(name);
    this.#onMissing = onMissing;
  }

  /** Idempotent; retries if the folder did not exist last time. */
  begin(): void {
    if (this.#held !== null) return;
    try {
      const held = watches.hold(this.#folder, () => watchFolder(this.#folder));
      held.client.listeners.add(this.#changed);
      held.client.watcher.once("close", this.#lost).once("error", this.#lost);
      this.#held = held;
    } catch (error) {
      if (!this.#isReported) this.#onMissing((error as Error).message);
      this.#isReported = true;
    }
  }

  end(): void {
    this.listener = null;
    this.#lost();
  }

  readonly #lost = (): void => {
    const held = this.#held;
    this.#held = null;
    if (held === null) return;
    held.client.listeners.delete(this.#changed);
    held.client.watcher.off("close", this.#lost).off("error", this.#lost);
    held.release();
  };
}

function watchFolder(folder: string): FolderWatch {
  const listeners: FolderWatch["listeners"] = new Set();
  const watcher = watch(folder, { persistent: false }, (_event, name) => {
    for (const listener of [...listeners]) listener(name);
  });
  // The users of the watch release it; without any listener an error would end the process.
  watcher.on("error", () => {});
  watcher.setMaxListeners(0);
  return { watcher, listeners };
}
