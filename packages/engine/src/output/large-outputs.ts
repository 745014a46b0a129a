/**
 * The interface to outputs that are too large for the database: receives them from the process of a task, stores them,
 * finds and verifies them, and returns them whole or by item. No output is ever in memory as a whole.
 *
 * Storing one takes three steps: the file is written and flushed beside the store; its row is created in the database
 * (store/output/output-objects.ts); the object is put under its key, which contains the attempt's token and so is used
 * once. Only then the end of the attempt is reported, and only the batch that stores the report makes it an output.
 *
 * If the process dies before the row, a draft is left in the scratch folder, which is removed when it is old. If it dies
 * before the object or the batch, the row has no reference; the sweep removes row and object. If the answer is lost, a
 * worker repeats the call, which finds the row and puts the same object again; otherwise the attempt is lost, and another one
 * writes under its own key. Two concurrent or late attempts have two keys, of which the batch uses one.
 */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Json } from "@tradewind/sdk/manifest";
import type { LargeValue, OutputReference } from "../model/index.ts";
import { EngineError } from "../service/errors.ts";
import { itemsIn, rangeOf, shortItem, textOf } from "./item-text.ts";
import { LocalCopies } from "./local-copies.ts";
import { type ObjectStore, openObjectStore } from "./object-store.ts";
import { type DraftFacts, OutputDraft, type SentFacts } from "./output-draft.ts";
import { missing, notStored, unreadable } from "./output-errors.ts";
import type { OutputLimits } from "./output-limits.ts";

/** The task instance of an output. */
export interface OutputPlace {
  readonly dagId: string;
  readonly runId: number;
  /** The run id that users see. */
  readonly run?: string;
  readonly taskId: string;
  readonly mapIndex: number;
  readonly attempt: string;
}

export interface LargeOutputsOptions {
  /** The store of new outputs. */
  readonly store: string;
  /** The folder of `file:`. Drafts and copies are kept below it, unless the store is another folder. */
  readonly folder: string;
  readonly limits: OutputLimits;
  /** Creates the row of an object. */
  readonly register: (
    object: Omit<OutputReference, "id"> & Omit<OutputPlace, "dagId">,
  ) => Promise<OutputReference>;
  /** Limit of fetched objects on this machine's disk. */
  readonly copiesBytes?: number;
}

/** Below the folder of outputs: files that processes are writing, or have fetched. DAG ids do not begin with a dot. */
export const SCRATCH = ".scratch";

const COPIES_BYTES = 1024 ** 3;
const ITEMS_TEXT = 4 * 1024 ** 2;

/** An object, or an item of it, verified and ready to be read. */
export interface OpenText {
  /** JSON. */
  pieces(): AsyncGenerator<string>;
  close(): void;
}

/** The large outputs of attempts, as the process that runs them uses them. */
export interface AttemptOutputs {
  readonly limits: OutputLimits;
  draft(): OutputDraft;
  /** Stores a draft as the output of an attempt. The draft is removed in any case. */
  keep(draft: OutputDraft, place: OutputPlace): Promise<OutputReference>;
  /** @param reader The attempt, callback or reaction that reads it. */
  open(value: LargeValue, reader: string): Promise<OpenText>;
  close(): Promise<void>;
}

export class LargeOutputs implements AttemptOutputs {
  /** The folder of drafts and copies, in scratch folders of processes. */
  readonly root: string;
  readonly #options: LargeOutputsOptions;
  readonly #scratch: string;
  readonly #copies: LocalCopies;
  /** Also of earlier settings: a reference names its store. */
  readonly #stores = new Map<string, Promise<ObjectStore>>();

  constructor(options: LargeOutputsOptions) {
    this.#options = options;
    const { folder, store } = options;
    // A rename does not work across disks: drafts are on the disk of the store.
    this.root = store.startsWith("file:") ? store.slice(5) || folder : folder;
    this.#scratch = join(this.root, SCRATCH, `${process.pid}-${randomUUID()}`);
    this.#copies = new LocalCopies(this.#scratch, options.copiesBytes ?? COPIES_BYTES);
  }

  get limits(): OutputLimits {
    return this.#options.limits;
  }

  draft(sent?: SentFacts): OutputDraft {
    return new OutputDraft(join(this.#scratch, `draft-${randomUUID()}.json`), this.limits.most, sent);
  }

  /** @throws EngineError OUTPUT_NOT_STORED; the draft is removed in any case. */
  async keep(draft: OutputDraft, place: OutputPlace): Promise<OutputReference> {
    const { store: location } = this.#options;
    let facts: DraftFacts | null = null;
    try {
      facts = await draft.finish();
      // Before the row is created: a setting may be wrong.
      await this.#store(location);
      const { dagId, ...of } = place;
      const { attempt, mapIndex, runId, taskId } = place;
      const key = `${dagId}/${runId}/${taskId}/${mapIndex}/${attempt}.json`;
      const reference = await this.#options.register({ ...of, ...facts, store: location, key });
      // Of a repeated call, the row has the store of the first one.
      await (await this.#store(reference.store)).put(key, draft.path);
      return reference;
    } catch (error) {
      const where = location === "file:" ? this.#options.folder : location;
      throw notStored(where, facts?.bytes ?? null, error);
    } finally {
      await draft.discard();
    }
  }

  /** @throws EngineError OUTPUT_MISSING, OUTPUT_DAMAGED, OUTPUT_UNREADABLE. */
  async open({ path, reference }: LargeValue): Promise<OpenText> {
    return await readable(reference, async () => {
      const copy = await this.#copies.hold(reference, await this.#store(reference.store));
      try {
        const [index, ...rest] = path;
        const short = index === undefined || rest.length > 0 ? null : await shortItem(copy, index);
        if (short !== null) return { pieces: () => oneOf(short), close: copy.release };
        const range = await rangeOf(copy, path);
        if (range === null) throw new Error(`it has no item ${path.join(", ")}`);
        return { pieces: () => textOf(copy.path, range), close: copy.release };
      } catch (error) {
        copy.release();
        throw error;
      }
    });
  }

  /** For an output that is not read now. @throws EngineError OUTPUT_MISSING, OUTPUT_UNREADABLE. */
  async requireThere({ reference }: LargeValue): Promise<void> {
    await readable(reference, async () => {
      const store = await this.#store(reference.store);
      if (!(await store.has(reference.key))) throw missing(reference, store.addressOf(reference.key));
    });
  }

  /** How many items it has; null if it is no list. */
  async length({ path, reference }: LargeValue): Promise<number | null> {
    if (path.length === 0) return reference.items;
    return await readable(reference, async () => {
      const copy = await this.#copies.hold(reference, await this.#store(reference.store));
      try {
        const range = await rangeOf(copy, path);
        return range === null ? null : await itemsIn(copy.path, range);
      } finally {
        copy.release();
      }
    });
  }

  /** Consecutive items of a list; null if their text is longer than `ITEMS_TEXT`. */
  async items(
    { path, reference }: LargeValue,
    first: number,
    count: number,
  ): Promise<readonly Json[] | null> {
    return await readable(reference, async () => {
      const copy = await this.#copies.hold(reference, await this.#store(reference.store));
      try {
        const from = await rangeOf(copy, [...path, first]);
        const to = count === 1 ? from : await rangeOf(copy, [...path, first + count - 1]);
        if (from === null || to === null) throw new Error(`it has no items ${first} to ${first + count - 1}`);
        if (to.end === null || to.end - from.start > ITEMS_TEXT) return null;
        const pieces: string[] = [];
        for await (const piece of textOf(copy.path, { start: from.start, end: to.end })) pieces.push(piece);
        return JSON.parse(`[${pieces.join("")}]`) as Json[];
      } finally {
        copy.release();
      }
    });
  }

  /** As a value in memory: for callers that have checked its size. */
  async read(value: LargeValue): Promise<Json> {
    const text = await this.open(value);
    try {
      const pieces: string[] = [];
      for await (const piece of text.pieces()) pieces.push(piece);
      return JSON.parse(pieces.join("")) as Json;
    } finally {
      text.close();
    }
  }

  /** Removes unreferenced objects. A missing object is no error. */
  async remove(location: string, keys: readonly string[]): Promise<void> {
    await (await this.#store(location)).remove(keys);
  }

  /** Writes, reads and removes an object. @throws the error of the store. */
  async probe(): Promise<void> {
    const store = await this.#store(this.#options.store);
    const draft = this.draft();
    const key = `${SCRATCH}/probe-${randomUUID()}.json`;
    try {
      await draft.open();
      await draft.write('"probe"');
      const facts = await draft.finish();
      await store.put(key, draft.path);
      const reference = { id: 0, store: store.location, key, ...facts };
      const copy = await new LocalCopies(this.#scratch, 0).hold(reference, store);
      copy.release();
    } finally {
      await draft.discard();
      await store.remove([key]).catch(() => {});
    }
  }

  async close(): Promise<void> {
    for (const opening of this.#stores.values()) await opening.then((store) => store.close()).catch(() => {});
    this.#stores.clear();
    await rm(this.#scratch, { recursive: true, force: true }).catch(() => {});
  }

  #store(location: string): Promise<ObjectStore> {
    let store = this.#stores.get(location);
    if (!store) {
      store = openObjectStore(location, this.#options.folder);
      this.#stores.set(location, store);
      store.catch(() => this.#stores.delete(location));
    }
    return store;
  }
}

async function* oneOf(piece: string): AsyncGenerator<string> {
  yield piece;
}

async function readable<T>(reference: OutputReference, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw error instanceof EngineError ? error : unreadable(reference, error);
  }
}
