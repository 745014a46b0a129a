/**
 * Bundles on this machine's disk, by content hash. A file under its final name is complete: it is written beside and
 * renamed, so that a process dying at any line, or two processes writing the same bundle, never leave half of one. What it
 * imports is there before it.
 */
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../service/errors.ts";
import { type BundleText, preludeFileOf } from "./bundle-text.ts";

export class BundleCache {
  readonly #dir: string;
  readonly #fetch: (hash: string) => Promise<BundleText>;
  readonly #pending = new Map<string, Promise<string>>();
  readonly #known = new Set<string>();

  /** @param fetch Reads a bundle's code from where it is stored for good. */
  constructor(dir: string, fetch: (hash: string) => Promise<BundleText>) {
    this.#dir = dir;
    this.#fetch = fetch;
  }

  /** Where the bundle is on this disk. A failed fetch is tried anew by the next caller. */
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

  /** The path without waiting, when this process has provided it before. */
  known(hash: string): string | undefined {
    return this.#known.has(hash) ? this.#file(hash) : undefined;
  }

  /** To be called when a bundle was found missing or broken on disk: the next `path` looks again. */
  forget(hash: string): void {
    this.#known.delete(hash);
  }

  async #provide(hash: string): Promise<string> {
    const path = this.#file(hash);
    if (!(await this.#isWhole(path))) await this.#fill(hash, path);
    this.#known.add(hash);
    return path;
  }

  /** An empty file is what a full disk or a power cut leaves of a renamed one. */
  async #isWhole(path: string): Promise<boolean> {
    const code = await readFile(path, "utf8").catch(() => "");
    const prelude = preludeFileOf(code);
    return code !== "" && (prelude === null || (await this.#has(prelude)));
  }

  async #has(file: string): Promise<boolean> {
    const found = await stat(join(this.#dir, file)).catch(() => null);
    return found !== null && found.size > 0;
  }

  async #fill(hash: string, path: string): Promise<void> {
    const { code, prelude } = await this.#fetch(hash);
    if (code === "")
      throw new EngineError("BUNDLE_EMPTY", `The stored bundle ${hash} is empty; load its DAG file again.`);
    await mkdir(this.#dir, { recursive: true });
    if (prelude !== null && !(await this.#has(prelude.file)))
      await this.#write(join(this.#dir, prelude.file), prelude.code);
    await this.#write(path, code);
  }

  async #write(path: string, code: string): Promise<void> {
    const draft = `${path}.${process.pid}.${crypto.randomUUID()}.tmp`;
    try {
      await writeFile(draft, code, { mode: 0o644, flush: true });
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
  }

  #file(hash: string): string {
    return join(this.#dir, `${hash}.mjs`);
  }
}
