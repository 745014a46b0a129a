/**
 * Objects as files of this machine, each verified once: its bytes are counted and hashed before any of it is read, and
 * the positions of its items are indexed on the way. 10,000 instances of a map then read their items from one file.
 *
 * Bounded: at most `MOST` objects, and `bytesLimit` bytes of fetched ones; an object with readers stays until they are
 * done. A file that has changed since is verified again.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { JsonItems, type OutputReference } from "../model/index.ts";
import { makeFolder } from "../service/home.ts";
import type { ObjectStore } from "./object-store.ts";
import { damaged, missing } from "./output-errors.ts";

/** The index of each takes up to half a megabyte. */
const MOST = 32;

interface Copy {
  readonly path: string;
  readonly items: JsonItems;
  /** Fetched by this process, which may delete it. */
  readonly isOurs: boolean;
  readonly bytes: number;
  readonly stamp: string;
  readers: number;
}

export interface HeldCopy {
  readonly path: string;
  readonly items: JsonItems;
  /** Idempotent. */
  release(): void;
}

export class LocalCopies {
  readonly #folder: string;
  readonly #bytesLimit: number;
  /** By object, least recently used first. */
  readonly #copies = new Map<number, Copy>();
  readonly #coming = new Map<number, Promise<Copy>>();

  /** @param folder For fetched objects; created when needed. */
  constructor(folder: string, bytesLimit: number) {
    this.#folder = folder;
    this.#bytesLimit = bytesLimit;
  }

  async hold(reference: OutputReference, store: ObjectStore): Promise<HeldCopy> {
    let copy = await this.#found(reference, store);
    // Other readers may have evicted it between the answer and this line.
    while (this.#copies.get(reference.id) !== copy) copy = await this.#found(reference, store);
    copy.readers++;
    this.#trim();
    let isHeld = true;
    const release = () => {
      if (isHeld) copy.readers--;
      isHeld = false;
      this.#trim();
    };
    return { path: copy.path, items: copy.items, release };
  }

  async #found(reference: OutputReference, store: ObjectStore): Promise<Copy> {
    return (await this.#known(reference)) ?? (await this.#prove(reference, store));
  }

  async #known({ id }: OutputReference): Promise<Copy | null> {
    const copy = this.#copies.get(id);
    if (!copy) return null;
    // First, so that it is not evicted meanwhile.
    copy.readers++;
    const isSame = (await stampOf(copy.path)) === copy.stamp;
    copy.readers--;
    if (this.#copies.get(id) === copy) this.#copies.delete(id);
    if (!isSame) return null;
    this.#copies.set(id, copy);
    return copy;
  }

  /** Once, for all concurrent readers. */
  #prove(reference: OutputReference, store: ObjectStore): Promise<Copy> {
    const { id } = reference;
    let coming = this.#coming.get(id);
    if (!coming) {
      coming = this.#make(reference, store).finally(() => this.#coming.delete(id));
      this.#coming.set(id, coming);
    }
    return coming;
  }

  async #make(reference: OutputReference, store: ObjectStore): Promise<Copy> {
    const own = store.pathOf(reference.key);
    const address = store.addressOf(reference.key);
    const path = own ?? join(this.#folder, `copy-${randomUUID()}.json`);
    try {
      if (own === null) {
        await makeFolder(this.#folder);
        if (!(await store.fetch(reference.key, path))) throw missing(reference, address);
      }
      const stamp = await stampOf(path);
      if (stamp === null) throw missing(reference, address);
      const items = await proven(path, reference, address);
      const copy = { path, items, isOurs: own === null, bytes: reference.bytes, stamp, readers: 0 };
      this.#copies.set(reference.id, copy);
      return copy;
    } catch (error) {
      if (own === null) await rm(path, { force: true }).catch(() => {});
      throw error;
    }
  }

  #trim(): void {
    let bytes = 0;
    for (const copy of this.#copies.values()) if (copy.isOurs) bytes += copy.bytes;
    for (const [id, copy] of this.#copies) {
      if (this.#copies.size <= MOST && bytes <= this.#bytesLimit) return;
      if (copy.readers > 0) continue;
      this.#copies.delete(id);
      if (!copy.isOurs) continue;
      bytes -= copy.bytes;
      void rm(copy.path, { force: true }).catch(() => {});
    }
  }
}

/** @throws if it is not what was stored. */
async function proven(path: string, reference: OutputReference, address: string): Promise<JsonItems> {
  const hash = createHash("sha256");
  const items = new JsonItems();
  let bytes = 0;
  for await (const piece of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    const part = piece as Buffer;
    bytes += part.length;
    hash.update(part);
    items.push(part);
  }
  if (bytes !== reference.bytes)
    throw damaged(reference, address, `it has ${bytes} bytes, and was stored with ${reference.bytes}`);
  if (hash.digest("hex") !== reference.sha256)
    throw damaged(reference, address, "its hash differs from the stored one");
  return items;
}

/** Changes whenever the file does; null if there is none. */
async function stampOf(path: string): Promise<string | null> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
