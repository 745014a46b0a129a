/** The current state of the inputs of all DAG files. Each input is read once per pass, also if files share it. */
import { readdir, readFile, stat } from "node:fs/promises";
import type { InputStamp } from "../code/bundled.ts";
import { RACY_MS, sha256 } from "../code/input-stamps.ts";

export class InputView {
  readonly #suspects: ReadonlySet<string>;
  readonly #stats = new Map<string, Promise<{ mtimeMs: number; size: number } | null>>();
  readonly #hashes = new Map<string, Promise<string | null>>();

  /** `suspects`: paths that were reported as changed; their content is compared even if the stamp is the same. */
  constructor(suspects: ReadonlySet<string>) {
    this.#suspects = suspects;
  }

  /** The current stamp if the content is the same as at `verifiedAt`; null if it changed or is gone. */
  async same(stamp: InputStamp, verifiedAt: number): Promise<InputStamp | null> {
    const now = await this.#stat(stamp.path);
    if (now === null || now.size !== stamp.size) return null;
    const isRacy = stamp.mtimeMs > verifiedAt - RACY_MS;
    if (now.mtimeMs === stamp.mtimeMs && !isRacy && !this.#suspects.has(stamp.path)) return stamp;
    if ((await this.#hash(stamp.path)) !== stamp.sha256) return null;
    return now.mtimeMs === stamp.mtimeMs ? stamp : { ...stamp, mtimeMs: now.mtimeMs };
  }

  #stat(path: string) {
    let known = this.#stats.get(path);
    if (!known) {
      known = stat(path).then(
        ({ mtimeMs, size }) => ({ mtimeMs, size }),
        () => null,
      );
      this.#stats.set(path, known);
    }
    return known;
  }

  #hash(path: string) {
    let known = this.#hashes.get(path);
    if (!known) {
      known = content(path).then(sha256, () => null);
      this.#hashes.set(path, known);
    }
    return known;
  }
}

/** Read in the same way as by `contentOf`. */
async function content(path: string): Promise<string | Buffer> {
  return (await stat(path)).isDirectory() ? (await readdir(path)).sort().join("\0") : readFile(path);
}
