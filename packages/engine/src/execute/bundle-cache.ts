/**
 * Bundles on this machine's disk, by content hash. A file under its final name is complete: it is written beside and
 * renamed, so that a process dying at any line, or two processes writing the same bundle, never leave half of one. What it
 * imports is there before it.
 *
 * A process verifies a bundle against its hash before it hands out the path for the first time: a file that was changed
 * or cut off is replaced, and stored code that is not what its hash says is refused.
 */
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EngineError } from "../service/errors.ts";
import { type BundleText, hasHash, preludeFileOf } from "./bundle-text.ts";

/** Each new version of a DAG is a bundle: one that is not known any more is read and verified again. */
const MOST_KNOWN = 10_000;

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
    if (!(await this.#isWhole(hash, path))) await this.#fill(hash, path);
    this.#known.add(hash);
    const [oldest] = this.#known;
    if (this.#known.size > MOST_KNOWN && oldest !== undefined) this.#known.delete(oldest);
    return path;
  }

  async #isWhole(hash: string, path: string): Promise<boolean> {
    const code = await this.#read(path);
    const file = preludeFileOf(code);
    const prelude = file === null ? null : { file, code: await this.#read(join(this.#dir, file)) };
    return hasHash({ code, prelude }, hash);
  }

  #read(path: string): Promise<string> {
    return readFile(path, "utf8").catch(() => "");
  }

  async #fill(hash: string, path: string): Promise<void> {
    const text = await this.#fetch(hash);
    if (!hasHash(text, hash)) {
      throw new EngineError(
        "BUNDLE_CORRUPT",
        `The stored code of bundle ${hash} does not match its hash. Change its DAG file, so that a new version is stored, and clear the tasks that used this one.`,
      );
    }
    await mkdir(this.#dir, { recursive: true });
    const { code, prelude } = text;
    if (prelude !== null) {
      const place = join(this.#dir, prelude.file);
      // Others may be importing it right now: it is replaced only when it differs.
      if ((await this.#read(place)) !== prelude.code) await this.#write(place, prelude.code);
    }
    await this.#write(path, code);
  }

  async #write(path: string, code: string): Promise<void> {
    const draft = `${path}.${process.pid}.${crypto.randomUUID()}.tmp`;
    try {
      await writeFile(draft, code, { flush: true });
      // Readable whatever the umask: it may be another account's process that imports it.
      await chmod(draft, 0o644);
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
