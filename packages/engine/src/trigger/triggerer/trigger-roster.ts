/**
 * The triggers that one process is to run, which of them its present child has, and which bundles it has loaded for
 * them. A bundle stays in the memory of a child for as long as the child lives, whether anything of it still runs or
 * not.
 */
import type { Json } from "@tradewind/sdk/manifest";
import type { TriggerOutcome } from "../../model/index.ts";
import type { TriggerWork } from "../contract.ts";
import type { Assignment, Culprit } from "../process/runner-protocol.ts";

/** Of those that are over, so many are still known by name. */
const MAX_FORMER = 100;

/** One trigger that is to run. */
export interface Entry {
  readonly work: TriggerWork;
  /** Of its start in the present child; null while it awaits one. */
  serial: number | null;
  hasFired: boolean;
  /** Of a built-in one, for the next child. */
  lastEvent: Json | undefined;
  /** The serial whose event was reported and awaits its acknowledgement. */
  unacknowledged: number | null;
  /** What a new child said while an event of the last one was still unacknowledged. */
  held: TriggerOutcome | null;
}

export function newEntry(work: TriggerWork): Entry {
  return {
    work,
    serial: null,
    hasFired: work.lastEvent !== undefined,
    lastEvent: work.lastEvent,
    unacknowledged: null,
    held: null,
  };
}

export class TriggerRoster {
  /** By the trigger's id; and those in the present child by serial. */
  readonly #entries = new Map<number, Entry>();
  readonly #serials = new Map<number, Entry>();
  /** Those that were in a child and are over, the oldest first, by serial. */
  readonly #former = new Map<number, TriggerWork>();
  /** Of each bundle that the present child has loaded, how many of its triggers run there. */
  readonly #bundles = new Map<string, number>();
  readonly #nextSerial: () => number;
  #deadBundles = 0;

  /** @param nextSerial Shared by all children: what one says is not taken for the word of another. */
  constructor(nextSerial: () => number) {
    this.#nextSerial = nextSerial;
  }

  get size(): number {
    return this.#entries.size;
  }

  get entries(): Entry[] {
    return [...this.#entries.values()];
  }

  /** How many bundles the present child has loaded for triggers that are all over. */
  get deadBundles(): number {
    return this.#deadBundles;
  }

  /** Nothing was reported that awaits its acknowledgement. */
  get isCalm(): boolean {
    for (const { unacknowledged } of this.#entries.values()) if (unacknowledged !== null) return false;
    return true;
  }

  bySerial(serial: number): Entry | undefined {
    return this.#serials.get(serial);
  }

  /** What a serial stands for, or stood for until a moment ago. */
  workOf(serial: number): TriggerWork | undefined {
    return this.#serials.get(serial)?.work ?? this.#former.get(serial);
  }

  /** One that this child is to run from now on; another may have run it before. */
  add(entry: Entry): void {
    entry.serial = null;
    entry.held = null;
    this.#entries.set(entry.work.id, entry);
  }

  /** It is still to run, and in no child. */
  isWaiting(entry: Entry): boolean {
    return this.#entries.get(entry.work.id) === entry && entry.serial === null;
  }

  /** It goes to the present child, with this. */
  assign(entry: Entry): Assignment {
    const serial = this.#nextSerial();
    entry.serial = serial;
    this.#serials.set(serial, entry);
    const { lastEvent, hasFired } = entry;
    const { args, bundlePath, id, kind } = entry.work;
    if (bundlePath !== null) {
      const users = this.#bundles.get(bundlePath);
      if (users === 0) this.#deadBundles--;
      this.#bundles.set(bundlePath, (users ?? 0) + 1);
    }
    return { serial, id, kind, args, bundlePath, hasFired, ...(lastEvent !== undefined && { lastEvent }) };
  }

  forget(entry: Entry): void {
    if (this.#entries.get(entry.work.id) === entry) this.#entries.delete(entry.work.id);
    if (entry.serial === null || !this.#serials.delete(entry.serial)) return;
    this.#former.set(entry.serial, entry.work);
    const [oldest] = this.#former.keys();
    if (this.#former.size > MAX_FORMER && oldest !== undefined) this.#former.delete(oldest);
    const { bundlePath } = entry.work;
    if (bundlePath === null) return;
    const users = (this.#bundles.get(bundlePath) ?? 1) - 1;
    this.#bundles.set(bundlePath, users);
    if (users === 0) this.#deadBundles++;
  }

  /** There is no child that runs any of them. */
  takeBack(): void {
    this.#serials.clear();
    this.#bundles.clear();
    this.#deadBundles = 0;
    for (const entry of this.#entries.values()) {
      entry.serial = null;
      entry.held = null;
    }
  }

  clear(): void {
    this.#entries.clear();
    this.#serials.clear();
  }

  /** A trigger, or all triggers of a bundle whose top level it was. */
  culprits(who: NonNullable<Culprit>): Entry[] {
    if (typeof who === "string") {
      return [...this.#serials.values()].filter(({ work }) => work.bundlePath === who);
    }
    const entry = this.#serials.get(who);
    return entry === undefined ? [] : [entry];
  }

  /** Those that run in the present child. */
  running(): TriggerWork[] {
    return [...this.#serials.values()].map(({ work }) => work);
  }
}
