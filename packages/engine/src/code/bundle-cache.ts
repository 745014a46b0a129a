/**
 * Bundles on this machine's disk, by content hash. A file under its final name is complete: it is written beside it and
 * renamed, so that a crash at any line, or two processes writing the same bundle, never leave half of one. Its imports are
 * written before it.
 *
 * A process verifies a bundle against its hash before it returns the path for the first time: a changed or truncated file
 * is replaced, and stored code that does not match its hash is rejected. The packages that a bundle requires are verified
 * each time, because other programs install them.
 */
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { EngineError } from "../service/errors.ts";
import { BUNDLE_MODULE, fileIn, linkPackages, writeFileTree, writeWhole } from "./bundle-folder.ts";
import { type BundleText, hasFolder, hasHash, sharedChunkFileOf } from "./bundle-text.ts";
import { sha256 } from "./input-stamps.ts";
import type { InstalledPackage } from "./installed-package.ts";
import { packageStamp, requiredPackages } from "./required-packages.ts";
import { readRequirements } from "./requirements.ts";

/** Each new version of a DAG is a bundle: an evicted entry is read and verified again. */
const MOST_KNOWN = 10_000;

interface KnownBundle {
  readonly path: string;
  readonly packages: readonly InstalledPackage[];
  /** The stamp of the packages. */
  readonly stamp: string;
}

export class BundleCache {
  readonly #dir: string;
  readonly #fetch: (hash: string) => Promise<BundleText>;
  readonly #folders: readonly string[];
  readonly #pending = new Map<string, Promise<string>>();
  readonly #known = new Map<string, KnownBundle>();
  /** Versions of required packages that child processes may have loaded, by folder. */
  readonly #versions = new Map<string, string>();
  readonly #listeners: (() => void)[] = [];

  /**
   * @param fetch Reads a bundle's code from the database.
   * @param folders Where required packages are resolved, in this order.
   */
  constructor(
    dir: string,
    fetch: (hash: string) => Promise<BundleText>,
    folders: readonly string[] = [process.cwd()],
  ) {
    this.#dir = dir;
    this.#fetch = fetch;
    this.#folders = folders;
  }

  /**
   * The local path of the bundle. The next caller retries a failed fetch.
   *
   * @throws PackageError if this machine lacks a package that it requires.
   */
  async path(hash: string): Promise<string> {
    if (!/^[A-Za-z0-9_-]{8,128}$/.test(hash)) {
      throw new EngineError("BUNDLE_HASH_INVALID", `"${hash}" is not a bundle hash.`);
    }
    const path = this.known(hash);
    if (path !== undefined) return path;
    let pending = this.#pending.get(hash);
    if (pending === undefined) {
      pending = this.#provide(hash).finally(() => this.#pending.delete(hash));
      this.#pending.set(hash, pending);
    }
    return await pending;
  }

  /** The path without waiting, if this process has provided it before and its packages have not changed. */
  known(hash: string): string | undefined {
    const known = this.#known.get(hash);
    if (known === undefined) return undefined;
    if (known.packages.length > 0 && packageStamp(known.packages) !== known.stamp) return undefined;
    return known.path;
  }

  /** Called when a bundle was found missing or broken on disk: the next `path` checks again. */
  forget(hash: string): void {
    this.#known.delete(hash);
  }

  /** Called before a path is returned whose packages child processes may have loaded in another version: Node never reloads one. */
  onOtherPackages(listener: () => void): void {
    this.#listeners.push(listener);
  }

  async #provide(hash: string): Promise<string> {
    const { code, path } = (await this.#whole(hash)) ?? (await this.#fill(hash));
    const packages = requiredPackages(readRequirements(code), this.#folders);
    const stamp = packageStamp(packages);
    if (packages.length > 0) await linkPackages(dirname(path), packages);
    this.#recordVersions(packages);
    this.#known.set(hash, { path, packages, stamp });
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return path;
  }

  #recordVersions(packages: readonly InstalledPackage[]): void {
    const isOther = packages.some(
      ({ folder, version }) => (this.#versions.get(folder) ?? version) !== version,
    );
    for (const { folder, version } of packages) this.#versions.set(folder, version);
    if (isOther) for (const listener of this.#listeners) listener();
  }

  /** The bundle on disk; null if it is missing or does not match its hash. */
  async #whole(hash: string): Promise<{ readonly code: string; readonly path: string } | null> {
    for (const path of [this.#file(hash, false), this.#file(hash, true)]) {
      const code = await this.#read(path);
      const file = sharedChunkFileOf(code);
      const sharedChunk = file === null ? null : { file, code: await this.#read(join(this.#dir, file)) };
      if (code !== "" && hasHash({ code, sharedChunk }, hash) && (await hasFiles(code, path)))
        return { code, path };
    }
    return null;
  }

  #read(path: string): Promise<string> {
    return readFile(path, "utf8").catch(() => "");
  }

  async #fill(hash: string): Promise<{ readonly code: string; readonly path: string }> {
    const text = await this.#fetch(hash);
    if (!hasHash(text, hash)) throw corrupt("code", hash);
    const { code, sharedChunk } = text;
    const path = this.#file(hash, hasFolder(code));
    await mkdir(dirname(path), { recursive: true });
    for (const [place, fileHash] of Object.entries(readRequirements(code).files)) {
      const content = await text.file?.(fileHash);
      if (content === undefined || sha256(content) !== fileHash) throw corrupt(`file ${place}`, hash);
      await writeFileTree(dirname(path), [[place, content]]);
    }
    if (sharedChunk !== null) {
      const place = join(this.#dir, sharedChunk.file);
      // Other processes may be importing it right now: it is replaced only if it differs.
      if ((await this.#read(place)) !== sharedChunk.code) await writeWhole(place, sharedChunk.code);
    }
    await writeWhole(path, code);
    return { code, path };
  }

  #file(hash: string, isInFolder: boolean): string {
    return isInFolder ? join(this.#dir, hash, BUNDLE_MODULE) : join(this.#dir, `${hash}.mjs`);
  }
}

async function hasFiles(code: string, path: string): Promise<boolean> {
  for (const [place, hash] of Object.entries(readRequirements(code).files)) {
    const content = await readFile(fileIn(dirname(path), place)).catch(() => null);
    if (content === null || sha256(content) !== hash) return false;
  }
  return true;
}

function corrupt(what: string, hash: string): EngineError {
  return new EngineError(
    "BUNDLE_CORRUPT",
    `The stored ${what} of bundle ${hash} does not match its hash. Change its DAG file, so that a new version is stored, and clear the tasks that used this one.`,
  );
}
