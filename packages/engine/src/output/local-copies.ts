/**
 * Objects as files of this machine, each proven once: its bytes are counted and hashed before anybody reads any of it,
 * and the places of its items are noted on the way. 10,000 instances of a map then read their items from one file.
 *
 * Bounded: as many objects are remembered as `MOST`, and of fetched ones as many bytes as `bytesLimit`; whatever somebody
 * reads just now stays until he is done. A file that was changed since is proven again.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { JsonItems, type OutputReference } from "../model/index.ts";
import { makeFolder } from "../service/home.ts";
import type { ObjectStore } from "./object-store.ts";
import { damaged, missing } from "./output-errors.ts";

/** The notes on the items of each take up to half a megabyte. */
const MOST = 32;

interface Copy {
  readonly path: string;
  readonly items: JsonItems;
  /** Fetched by us, and ours to delete. */
  readonly isOurs: boolean;
  readonly bytes: number;
  readonly stamp: string;
  readers: number;
}

export interface HeldCopy {
  readonly path: string;
  readonly items: JsonItems;
  /** Harmless when repeated. */
  release(): void;
}

export class LocalCopies {
  readonly #folder: string;
  readonly #bytesLimit: number;
  /** By object, the longest unused first. */
  readonly #copies = new Map<number, Copy>();
  readonly #coming = new Map<number, Promise<Copy>>();

  /** @param folder For what is fetched; made when needed. */
  constructor(folder: string, bytesLimit: number) {
    this.#folder = folder;
    this.#bytesLimit = bytesLimit;
  }

  async hold(reference: OutputReference, store: ObjectStore): Promise<HeldCopy> {
    let copy = await this.#found(reference, store);
    // Between the answer and this line others may have made room.
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
    // First of all, lest it be dropped meanwhile.
    copy.readers++;
    const isSame = (await stampOf(copy.path)) === copy.stamp;
    copy.readers--;
    if (this.#copies.get(id) === copy) this.#copies.delete(id);
    if (!isSame) return null;
    this.#copies.set(id, copy);
    return copy;
  }

  /** Once, for all who want it at the same time. */
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

/** @throws when it is not what was stored. */
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
    throw damaged(reference, address, "its bytes are not those that were stored");
  return items;
}

/** Changes whenever the file does; null: there is none. */
async function stampOf(path: string): Promise<string | null> {
  try {
    const { ino, mtimeMs, size } = await stat(path);
    return `${ino} ${size} ${mtimeMs}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
