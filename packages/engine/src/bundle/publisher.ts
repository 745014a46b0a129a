/**
 * Stores bundled files in the catalogue while others are still being bundled: many files in one transaction, without
 * waiting long for a file that hangs. Files are stored in the order of their names as far as they are ready.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { artefactHash } from "../code/artefact-hash.ts";
import type { Bundled, SharedChunkFile } from "../code/bundled.ts";
import { sha256 } from "../code/input-stamps.ts";
import { readRequirements } from "../code/requirements.ts";
import { ModelError } from "../model/index.ts";
import { messageOf } from "../service/errors.ts";
import type { StoredFile, StoredSharedChunk } from "../store/dag/bundles.ts";
import { recordImportError } from "../store/dag/dag-catalogue.ts";
import {
  type FileOutcome,
  type FilePublication,
  type PublishOptions,
  publishFiles,
} from "../store/dag/dag-publish.ts";
import { type Database, sqlState } from "../store/database/database.ts";

export interface PublisherOptions extends PublishOptions {
  readonly database: Database;
  readonly onStored: (file: string, bundled: Bundled, outcome: FileOutcome) => void;
  /** The database rejected the content of this file. */
  readonly onRefused: (file: string, bundled: Bundled, message: string) => void;
}

interface Waiting {
  readonly file: string;
  readonly bundled: Bundled;
}

const MAX_FILES = 100;
const MAX_BYTES = 16_000_000;
const MAX_WAIT_MS = 250;

export class Publisher {
  readonly #options: PublisherOptions;
  /** By the paths of their parts. */
  readonly #sharedChunks = new Map<string, Promise<StoredSharedChunk>>();
  #waiting: Waiting[] = [];
  #timer: NodeJS.Timeout | null = null;
  #flushing: Promise<void> = Promise.resolve();
  #failure: unknown = null;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  add(file: string, bundled: Bundled): void {
    this.#waiting.push({ file, bundled });
    if (this.#waiting.length >= MAX_FILES) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), MAX_WAIT_MS);
  }

  /** Resolves when everything is stored; rejects if the database could not be reached. */
  async drain(): Promise<void> {
    this.#flush();
    await this.#flushing;
    if (this.#failure !== null) throw this.#failure;
  }

  #flush(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    const batch = this.#waiting.sort((a, b) => (a.file < b.file ? -1 : 1));
    this.#waiting = [];
    this.#flushing = this.#flushing
      .then(() => this.#store(batch))
      .catch((error: unknown) => {
        this.#failure ??= error;
      });
  }

  async #store(batch: readonly Waiting[]): Promise<void> {
    if (this.#failure !== null) return;
    let part: { readonly from: Waiting; readonly publication: FilePublication }[] = [];
    let bytes = 0;
    for (const from of batch) {
      const { bundled } = from;
      const publication = await this.#publication(from);
      if (publication === null) {
        await this.#refuse(
          from,
          "its bundle does not match the hash that its process reported [BUNDLE_CORRUPT]",
        );
        continue;
      }
      part.push({ from, publication });
      bytes += bundled.body.length + bundled.map.length;
      for (const { content } of publication.bundle.files ?? []) bytes += content.length;
      if (bytes < MAX_BYTES) continue;
      await this.#storePart(part);
      part = [];
      bytes = 0;
    }
    if (part.length > 0) await this.#storePart(part);
  }

  /**
   * Null if the code does not match the hash from the bundler child. The child has run user code, and names the files of
   * its shared chunks: without this check it could name a file that only this process can read, and have it stored as code.
   */
  async #publication({ file, bundled }: Waiting): Promise<FilePublication | null> {
    const { hash, banner, sharedChunks, body, map, source, manifests } = bundled;
    const sharedChunk = sharedChunks.length === 0 ? null : await this.#sharedChunk(sharedChunks);
    if (artefactHash(`${banner}${sharedChunk?.code ?? ""}${body}`) !== hash) return null;
    const files = await requiredFiles(bundled);
    if (files === null) return null;
    const bundle = { hash, head: banner, sharedChunk, code: body, sourceMap: map, files };
    return { file, bundle, source, manifests };
  }

  #sharedChunk(files: readonly SharedChunkFile[]): Promise<StoredSharedChunk> {
    const key = files.map(({ path }) => path).join("\n");
    const sharedChunk = this.#sharedChunks.get(key) ?? readSharedChunk(files);
    this.#sharedChunks.set(key, sharedChunk);
    return sharedChunk;
  }

  async #storePart(part: readonly { from: Waiting; publication: FilePublication }[]): Promise<void> {
    const { database, onStored } = this.#options;
    try {
      const files = part.map(({ publication }) => publication);
      const outcomes = await publishFiles(database, files, this.#options);
      for (const [index, outcome] of outcomes.entries()) {
        const { file, bundled } = (part[index] as { from: Waiting }).from;
        onStored(file, bundled, outcome);
      }
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // One file that the database rejects must not block the others.
      if (part.length > 1) for (const one of part) await this.#storePart([one]);
      else {
        const code = error instanceof ModelError ? ` [${error.code}]` : "";
        await this.#refuse((part[0] as { from: Waiting }).from, `${messageOf(error)}${code}`);
      }
    }
  }

  async #refuse({ file, bundled }: Waiting, why: string): Promise<void> {
    const message = `${file}: this file's DAGs could not be stored: ${why}`;
    await recordImportError(this.#options.database, file, message);
    this.#options.onRefused(file, bundled, message);
  }
}

/** Null if a required file is missing from the child's list, or does not match its hash. */
async function requiredFiles({ banner, files }: Bundled): Promise<StoredFile[] | null> {
  const paths = new Map(files.map(({ hash, path }) => [hash, path]));
  const stored: StoredFile[] = [];
  for (const hash of new Set(Object.values(readRequirements(banner).files))) {
    const path = paths.get(hash);
    const content = path === undefined ? null : await readFile(path).catch(() => null);
    if (content === null || sha256(content) !== hash) return null;
    stored.push({ hash, content });
  }
  return stored;
}

async function readSharedChunk(files: readonly SharedChunkFile[]): Promise<StoredSharedChunk> {
  const code = (await Promise.all(files.map(({ path }) => readFile(path, "utf8")))).join("");
  const names = files.map(({ name }) => name);
  return { hash: createHash("sha256").update(code).digest("hex"), names, code };
}

/** The content is invalid (a value or a size that the server rejects, an impossible schedule), so retrying would not help. */
function isRefusal(error: unknown): boolean {
  return error instanceof ModelError || ["22", "23", "54"].includes(sqlState(error)?.slice(0, 2) ?? "");
}
