/**
 * The files of the web UI, as its build has put them into a folder. Only names from a listing of that folder are read, so no
 * path of a request reaches the file system. The listing is read again when the build has changed.
 *
 * Texts are compressed at their first use, and kept: there are a few dozen, and their names change with their content.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";

/** In the published package, and in the repository. */
const FOLDERS = ["../../web", "../../../../web/dist"].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
);

const PAGE = "index.html";
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".png": "image/png",
  ".svg": "image/svg+xml; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".woff2": "font/woff2",
};
/** Smaller ones do not become smaller. */
const COMPRESSED_BYTES = 512;

export type Encoding = "br" | "gzip";

export interface WebFile {
  readonly type: string;
  readonly body: Buffer;
  readonly encoding: Encoding | null;
}

const compress = {
  br: (body: Buffer) => promisify(brotliCompress)(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (body: Buffer) => promisify(gzip)(body, { level: 9 }),
};

export class WebFiles {
  readonly #folder: string;
  /** When the page of the listed build was written; null: nothing is listed. */
  #builtAt: number | null = null;
  #names: ReadonlySet<string> = new Set();
  readonly #compressed = new Map<string, Promise<Buffer>>();

  constructor(folder: string = FOLDERS.find((each) => existsSync(each)) ?? FOLDERS[1]!) {
    this.#folder = folder;
  }

  /** The text of the page that loads the UI; null: the UI is not built. */
  async page(): Promise<string | null> {
    await this.#refresh();
    if (!this.#names.has(PAGE)) return null;
    return readFile(join(this.#folder, PAGE), "utf8").catch(() => null);
  }

  /** @param name As in the listing: `assets/index-1a2b3c4d.js`. */
  async file(name: string, encodings: readonly Encoding[]): Promise<WebFile | null> {
    if (!this.#names.has(name)) await this.#refresh();
    if (!this.#names.has(name) || name === PAGE) return null;
    const type = TYPES[extname(name)] ?? "application/octet-stream";
    // A new build may have removed it meanwhile.
    const body = await readFile(join(this.#folder, name)).catch(() => null);
    if (body === null) return null;
    const encoding = encodings[0] ?? null;
    if (encoding === null || body.length < COMPRESSED_BYTES || !/charset|wasm/.test(type))
      return { type, body, encoding: null };
    const key = `${encoding} ${name}`;
    const compressed = this.#compressed.get(key) ?? compress[encoding](body);
    this.#compressed.set(key, compressed);
    return { type, body: await compressed, encoding };
  }

  async #refresh(): Promise<void> {
    const builtAt = await stat(join(this.#folder, PAGE)).then(
      ({ mtimeMs }) => mtimeMs,
      () => null,
    );
    if (builtAt === this.#builtAt && builtAt !== null) return;
    const entries =
      builtAt === null
        ? []
        : await readdir(this.#folder, { recursive: true, withFileTypes: true }).catch(() => []);
    this.#names = new Set(
      entries
        .filter((entry) => entry.isFile())
        .map((entry) => relative(this.#folder, join(entry.parentPath, entry.name)).split(sep).join("/")),
    );
    this.#compressed.clear();
    this.#builtAt = builtAt;
  }
}

/** The encodings that a browser accepts, best first. */
export function acceptedEncodings(header: string | undefined): readonly Encoding[] {
  const accepted = new Set(
    (header ?? "")
      .split(",")
      .filter((each) => !/;\s*q=0(?:\.0*)?\s*$/.test(each))
      .map((each) => each.split(";")[0]!.trim()),
  );
  return (["br", "gzip"] as const).filter((each) => accepted.has(each));
}
